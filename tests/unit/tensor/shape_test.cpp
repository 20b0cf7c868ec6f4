#include "unmoor/tensor/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "unmoor/base/error.h"
#include "unmoor/tensor/tensor.h"

namespace unmoor {
namespace {

ErrorKind kind_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::Internal;
}

// 2^62 elements of 4 bytes are 2^64 bytes: cut to 64 bits, none.
TEST(Shape, the_bytes_of_a_huge_tensor_do_not_wrap_to_a_small_number) {
  for (const DType dtype : {DType::F32, DType::F64, DType::C128, DType::I4}) {
    for (int power = 40; power < 63; ++power) {
      size_t bytes = 0;
      const TensorType type{dtype, {int64_t{1} << power}};
      if (kind_of([&] { bytes = type.bytes(); }) == ErrorKind::InvalidArgument) continue;
      EXPECT_EQ(bytes, (size_t{1} << power) / 8 * bits_of(dtype)) << to_text(type);
    }
    EXPECT_EQ(kind_of([&] { Tensor(TensorType{dtype, {int64_t{1} << 62}}); }), ErrorKind::InvalidArgument) << name(dtype);
  }
}

TEST(Shape, an_axis_past_the_rank_is_an_error) {
  Shape shape{2, 3};
  EXPECT_EQ(kind_of([&] { (void)shape[2]; }), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of([&] { shape.set(2, 1); }), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of([&] { shape.set_symbol(2, "n"); }), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of([&] { shape.elements(0, 3); }), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of([&] { Shape().elements(0, 1); }), ErrorKind::InvalidArgument);
}

TEST(Shape, strides_that_do_not_fit_are_an_error) {
  EXPECT_EQ(kind_of([] { Shape({int64_t{1} << 40, int64_t{1} << 40, -1}).strides(); }), ErrorKind::InvalidArgument);
  EXPECT_EQ(Shape({2, 0, -1, 3}).strides(), (std::vector<int64_t>{3, 3, 3, 1}));
}

TEST(Tensor, strings_that_do_not_fit_in_memory_are_an_error) {
  EXPECT_EQ(kind_of([] { Tensor(TensorType{DType::String, {int64_t{1} << 58}}); }), ErrorKind::OutOfMemory);
  EXPECT_EQ(kind_of([] { Tensor(TensorType{DType::String, {int64_t{1} << 50}}); }), ErrorKind::OutOfMemory);
}

TEST(Shape, broadcasting_keeps_what_is_known) {
  const auto text = [](Shape a, Shape b) { return to_text(broadcast(a, b)); };
  EXPECT_EQ(text({-1, 3}, {1}), "[?,3]");
  EXPECT_EQ(text({-1}, {4}), "[4]");
  EXPECT_EQ(text({0}, {1}), "[0]");
  EXPECT_EQ(text({5, 1, 2}, {3, 1}), "[5,3,2]");
  Shape batch{-1, 2};
  batch.set_symbol(0, "batch");
  Shape other{-1, 2};
  other.set_symbol(0, "other");
  EXPECT_EQ(text(batch, batch), "[batch,2]");
  EXPECT_EQ(text(batch, other), "[?,2]");
  EXPECT_EQ(kind_of([] { broadcast({2}, {3}); }), ErrorKind::InvalidArgument);
}

}  // namespace
}  // namespace unmoor
