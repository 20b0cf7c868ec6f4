#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {
namespace {

// Sums of rows that lie a line apart: [2000, 64] to [64], of numbers of one sign.
TEST(CpuReduce, the_rounding_of_a_long_sum_of_columns_does_not_grow_with_its_length) {
  constexpr size_t rows = 2000;
  constexpr size_t columns = 64;
  Tensor x = random_floats(Shape{rows, columns}, 3);
  for (float& value : x.writable_span<float>()) value = 2 + value;
  const auto device = open_cpu(1);
  for (const std::string op : {"ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceMean"}) {
    std::vector<double> wanted(columns);
    for (size_t i = 0; i < rows * columns; ++i) {
      const double value = x.span<float>()[i];
      wanted[i % columns] += (op == "ReduceSumSquare" ? value * value : value) / (op == "ReduceMean" ? double{rows} : 1);
    }
    const Tensor axes = Tensor::from<int64_t>({1}, {0});
    const ByHand call{op, {x, axes}, {false, true}, {{DType::F32, Shape{columns}}}, {{"keepdims", int64_t{0}}}};
    const Tensor found = run_by_hand(*device, call).at(0);
    // A row after the other would be off by some ten roundings; blocks of 32 are by less than 4.
    EXPECT_LT(relative_error(found, wanted), 4 * std::ldexp(1.0, -24)) << op;
  }
}

}  // namespace
}  // namespace unmoor::test
