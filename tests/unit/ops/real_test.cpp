#include "unmoor/ops/real.h"

#include <gtest/gtest.h>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

Tensor counted(DType dtype, Shape shape) {
  Tensor result(TensorType{dtype, std::move(shape)});
  std::vector<double> values(result.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 97) - 40.5;
  store(result, std::span<const double>(values));
  return result;
}

// Element by element, by the strides of both.
std::vector<double> one_by_one(const Tensor& a, const Tensor& b, const Shape& shape) {
  const std::vector<double> x = doubles(a), y = doubles(b);
  std::vector<double> result(static_cast<size_t>(shape.elements()));
  walk<2>(shape, {broadcast_strides(a.shape(), shape), broadcast_strides(b.shape(), shape)},
          [&](size_t i, const std::array<int64_t, 2>& at) { result[i] = 3 * x[static_cast<size_t>(at[0])] - y[static_cast<size_t>(at[1])]; });
  return result;
}

const Float64Help& two_threads() {
  static const Float64Help help{{}, std::make_shared<ThreadPool>(2)};
  return help;
}

TEST(Reals, combine_broadcast_operands_of_any_form_and_dtype_on_any_number_of_threads) {
  const std::vector<std::pair<Shape, Shape>> pairs{
      {{2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}, {4}},       {{3, 1}, {2, 1, 5}},     {{}, {7}},        {{5}, {}},          {{}, {}},
      {{0, 4}, {4}},          {{1, 3, 1, 1}, {2, 3, 4, 5}}, {{2, 3, 4, 5}, {1, 3, 1, 1}}, {{4, 1, 6}, {4, 5, 1}}, {{1, 1}, {1}}, {{3, 1, 1}, {3, 1, 2}},
      {{128, 1000}, {1, 1000}}, {{128, 1000}, {128, 1}}, {{256, 1, 600}, {256, 1, 1}}};
  for (const auto& [a_shape, b_shape] : pairs) {
    const Shape shape = broadcast(a_shape, b_shape);
    for (const DType dtype : {DType::F64, DType::F32}) {
      SCOPED_TRACE(cat(a_shape, " and ", b_shape, " ", dtype));
      const Tensor a = counted(dtype, a_shape);
      const Tensor b = counted(dtype, b_shape);
      const std::vector<double> wanted = one_by_one(a, b, shape);
      const auto combined = [&] {
        Tensor result(TensorType{dtype, shape});
        combine_reals(a, b, result, [](double x, double y) { return 3 * x - y; });
        return doubles(result);
      };
      EXPECT_EQ(combined(), wanted);
      const Float64Scope scope(two_threads());
      EXPECT_EQ(combined(), wanted);
    }
  }
}

TEST(Reals, are_read_where_they_lie_if_they_are_float64) {
  const Tensor wide = counted(DType::F64, {3, 5});
  const Tensor narrow = counted(DType::F16, {3, 5});
  EXPECT_EQ(RealInput(wide).data(), wide.span<double>().data());
  const RealInput read(narrow);
  EXPECT_EQ(std::vector<double>(read.numbers().begin(), read.numbers().end()), doubles(narrow));
}

TEST(Reals, ranges_cover_everything_once) {
  const Float64Scope scope(two_threads());
  for (const size_t total : {0, 1, 7, 100000, 100001}) {
    std::vector<int> visits(total);
    side_by_side_ranges(total, 10, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) ++visits[i];
    });
    EXPECT_EQ(visits, std::vector<int>(total, 1)) << total;
  }
}

}  // namespace
}  // namespace unmoor
