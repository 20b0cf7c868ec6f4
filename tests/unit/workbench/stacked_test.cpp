#include "unmoor/workbench/noise/stacked.h"

#include <gtest/gtest.h>

#include "tests/unit/ops/one_call.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

Data moved(const Data& data, double by) {
  std::vector<double> values = doubles(data.tensor());
  for (size_t i = 0; i < values.size(); ++i) values[i] += by * static_cast<double>(i % 7);
  Tensor result(data.tensor().type());
  store(result, std::span<const double>(values));
  return result;
}

std::vector<Sampled> sampled_inputs(const CaseGraph& built, const OpCall& call) {
  std::vector<Sampled> in;
  for (Data& each : test::inputs_of(built, call)) in.push_back({std::move(each), {}});
  in[0].copies = {moved(in[0].exact, 0.01), moved(in[0].exact, -0.02)};
  return in;
}

TEST(Stacked, gives_what_each_copy_alone_gives) {
  size_t count = 0;
  for (const char* name : {"MatMul", "Gemm", "unmoor:FusedMatMul"}) {
    for (const Case& one : cases_of(*all_ops().find(name), {DType::F64})) {
      SCOPED_TRACE(one.text);
      const CaseGraph built = build_case(one);
      const Node& node = built.graph.node(NodeId{0});
      const std::vector<Sampled> in = sampled_inputs(built, call_for(built.graph, node));
      if (!can_stack(node, in)) continue;
      ++count;
      const Sampled found = run_stacked(node, in);
      ASSERT_EQ(found.copies.size(), 2U);
      std::vector<Data> plain;
      for (const Sampled& each : in) plain.push_back(each.exact);
      for (size_t k = 0; k <= 2; ++k) {
        if (k > 0) plain[0] = in[0].copies[k - 1];
        const Tensor wanted = reference_on(node, plain).at(0).tensor();
        const Tensor made = (k == 0 ? found.exact : found.copies[k - 1]).tensor();
        ASSERT_EQ(made.type(), wanted.type());
        EXPECT_EQ(doubles(made), doubles(wanted)) << "copy " << k;
      }
    }
  }
  EXPECT_GT(count, 20U);
}

TEST(Stacked, is_not_for_inputs_that_count_rows_or_differ) {
  const auto stacks = [](const std::string& text) {
    const CaseGraph built = build_case(parse_case(text));
    const Node& node = built.graph.node(NodeId{0});
    return can_stack(node, sampled_inputs(built, call_for(built.graph, node)));
  };
  EXPECT_TRUE(stacks("MatMul f64[3,4] f64[4,5]"));
  EXPECT_FALSE(stacks("MatMul f64[2,3,4] f64[2,4,5]"));  // A matrix for each item.
  EXPECT_FALSE(stacks("MatMul f64[4] f64[4,5]"));
  EXPECT_FALSE(stacks("Gemm f64[4,3] f64[4,5] transA=1"));
  EXPECT_FALSE(stacks("Gemm f64[3,4] f64[4,5] f64[3,1]"));
  EXPECT_TRUE(stacks("Gemm f64[3,4] f64[4,5] f64[1,5]"));
  EXPECT_FALSE(stacks("Add f64[3,4] f64[3,4]"));
  EXPECT_FALSE(stacks("Conv f64[1,3,8,8] f64[4,3,3,3]"));  // Goes image by image: no weights are read less.
}

}  // namespace
}  // namespace unmoor
