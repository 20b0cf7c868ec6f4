#include <gtest/gtest.h>

#include "unmoor/ops/cases.h"
#include "unmoor/ops/product.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/noise/floor.h"

namespace unmoor {
namespace {

std::vector<NoiseFloor> floors_of(const std::string& text) {
  const CaseGraph built = build_case(parse_case(text));
  const Node& node = built.graph.node(NodeId{0});
  const OpCall call = call_for(built.graph, node);
  std::vector<Data> in;
  size_t next = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) in.push_back(call.constants[i] != nullptr ? Data(*call.constants[i]) : built.inputs.at(next++));
  const std::vector<DType> stored(node.outputs.size(), DType::F32);
  return noise_floor(node, in, stored, {.seed = 5});
}

TEST(NoiseThreads, a_spread_does_not_depend_on_them) {
  const Float64Help help{{}, std::make_shared<ThreadPool>(3)};
  for (const std::string text : {"Softmax f32[300,200]", "LayerNormalization f32[200,300] f32[300] f32[300]", "Gelu f32[100000]",
                                 "Add f32[300,200] f32[200]", "Exp f32[60000]", "Log f32[60000]", "ReduceMean f32[300,400] i64[1]{1}"}) {
    const std::vector<NoiseFloor> alone = floors_of(text);
    const Float64Scope scope(help);
    const std::vector<NoiseFloor> shared = floors_of(text);
    ASSERT_FALSE(alone.at(0).spread.empty()) << text;
    for (size_t i = 0; i < alone[0].spread.size(); ++i) {
      // Where no run is finite it is infinite, which equals itself.
      ASSERT_EQ(alone[0].spread[i], shared.at(0).spread[i]) << text << " element " << i;
    }
    EXPECT_EQ(doubles(alone[0].exact.tensor()).front(), doubles(shared[0].exact.tensor()).front()) << text;
  }
}

}  // namespace
}  // namespace unmoor
