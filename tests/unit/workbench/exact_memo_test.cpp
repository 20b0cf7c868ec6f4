#include "unmoor/workbench/noise/exact_memo.h"

#include <gtest/gtest.h>

#include "tests/unit/ops/one_call.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

TEST(ExactMemo, gives_products_and_convolutions_bit_for_bit) {
  const ExactMemo memo;
  size_t count = 0;
  for (const char* name : {"MatMul", "Conv", "Add", "Gemm"}) {
    for (const Case& one : cases_of(*all_ops().find(name), {DType::F64})) {
      SCOPED_TRACE(one.text);
      const CaseGraph built = build_case(one);
      const Node& node = built.graph.node(NodeId{0});
      const std::vector<Data> in = test::inputs_of(built, call_for(built.graph, node));
      const std::vector<double> wanted = doubles(reference_on(node, in).at(0).tensor());
      EXPECT_EQ(doubles(exact_on(node, in).at(0).tensor()), wanted);
      EXPECT_EQ(doubles(exact_on(node, in).at(0).tensor()), wanted) << "asked again";
      ++count;
    }
  }
  EXPECT_GT(count, 60U);
}

TEST(ExactMemo, keeps_a_product_for_the_same_tensors_and_attributes_only) {
  const auto ones = [](Shape shape, double value) {
    Tensor result(TensorType{DType::F64, std::move(shape)});
    std::ranges::fill(result.writable_span<double>(), value);
    return Data(result);
  };
  Node node;
  node.op = "MatMul";
  node.inputs = {ValueId{0}, ValueId{1}};
  node.outputs = {ValueId{2}};
  const Data a = ones({2, 3}, 1), b = ones({3, 4}, 2), c = ones({3, 4}, 5);
  const auto alone = [&](const Data& left, const Data& right) { return exact_on(node, std::vector<Data>{left, right}).at(0).tensor(); };
  EXPECT_FALSE(alone(a, b).shares_storage(alone(a, b))) << "there is no memo";
  const ExactMemo memo;
  const Tensor first = alone(a, b);
  EXPECT_TRUE(first.shares_storage(alone(a, b)));
  EXPECT_EQ(doubles(alone(a, c))[0], 15);
  EXPECT_EQ(doubles(first)[0], 6);
  const Tensor weights = Tensor::from<float>({2000}, std::vector<float>(2000, 0.5F));
  EXPECT_TRUE(wide_constant(weights).tensor().shares_storage(wide_constant(weights).tensor()));
  EXPECT_FALSE(wide_constant(weights).tensor().shares_storage(wide_constant(weights.clone()).tensor()));
}

}  // namespace
}  // namespace unmoor
