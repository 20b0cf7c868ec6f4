#include "unmoor/tensor/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace unmoor {
namespace {

const double infinity = std::numeric_limits<double>::infinity();

TEST(Convert, reads_every_float16_and_bfloat16_of_a_tensor_as_it_reads_one) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    Tensor all(TensorType{dtype, Shape{65536}});
    for (size_t i = 0; i < 65536; ++i) {
      all.writable_bytes()[2 * i] = static_cast<std::byte>(i & 255U);
      all.writable_bytes()[2 * i + 1] = static_cast<std::byte>(i >> 8U);
    }
    const std::vector<double> values = doubles(all);
    for (size_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      const auto wanted = static_cast<double>(dtype == DType::F16 ? from_f16(bits) : from_bf16(bits));
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(values[i])) << i;
      } else {
        EXPECT_EQ(std::bit_cast<uint64_t>(values[i]), std::bit_cast<uint64_t>(wanted)) << i;
      }
    }
  }
}

TEST(Convert, float16_rounds_to_nearest_even_and_overflows_to_infinity) {
  EXPECT_EQ(to_f16(1.0), 0x3C00);
  EXPECT_EQ(to_f16(-2.0), 0xC000);
  EXPECT_EQ(to_f16(65504.0), 0x7BFF);
  EXPECT_EQ(to_f16(65519.9), 0x7BFF);
  EXPECT_EQ(to_f16(65520.0), 0x7C00);
  EXPECT_EQ(to_f16(std::ldexp(1.0, -24)), 0x0001);
  EXPECT_EQ(to_f16(std::ldexp(1.0, -25)), 0x0000);
  EXPECT_EQ(to_f16(1.0 + std::ldexp(1.0, -11)), 0x3C00);
  EXPECT_EQ(to_f16(1.0 + 3 * std::ldexp(1.0, -11)), 0x3C02);
  EXPECT_EQ(to_f16(-0.0), 0x8000);
}

TEST(Convert, every_small_float_pattern_survives_the_round_trip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = from_f16(half);
    if (!std::isnan(wide)) {
      EXPECT_EQ(to_f16(static_cast<double>(wide)), half);
    }
    const float brain = from_bf16(half);
    if (!std::isnan(brain)) {
      EXPECT_EQ(to_bf16(static_cast<double>(brain)), half);
    }
  }
  for (const DType dtype : {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ}) {
    for (uint32_t bits = 0; bits < 256; ++bits) {
      const float wide = from_f8(dtype, static_cast<uint8_t>(bits));
      if (!std::isnan(wide)) {
        EXPECT_EQ(to_f8(dtype, static_cast<double>(wide), false), bits) << name(dtype);
      }
    }
  }
}

TEST(Convert, float8_saturates_or_not_as_asked) {
  EXPECT_EQ(to_f8(DType::F8E4M3FN, 1000, true), 0x7E);
  EXPECT_EQ(to_f8(DType::F8E4M3FN, 1000, false), 0x7F);
  EXPECT_EQ(to_f8(DType::F8E5M2, infinity, true), 0x7B);
  EXPECT_EQ(to_f8(DType::F8E5M2, infinity, false), 0x7C);
  EXPECT_EQ(to_f8(DType::F8E4M3FNUZ, -infinity, false), 0x80);
}

TEST(Convert, unaligned_bytes_are_read_as_they_are) {
  alignas(8) std::array<std::byte, 9> bytes{};
  const float value = 1.5F;
  std::memcpy(bytes.data() + 1, &value, 4);
  const Tensor tensor = Tensor::view({DType::F32, {2}}, std::span(bytes).subspan(1), nullptr);
  EXPECT_EQ(doubles(tensor)[0], 1.5);
  EXPECT_EQ(tensor.span<float>()[0], 1.5F);
  EXPECT_GE(Tensor::aligned_copy_bytes(), 8U);
}

TEST(Convert, four_bit_elements_are_packed_low_first) {
  Tensor tensor(TensorType{DType::I4, {3}});
  store(tensor, std::vector<int64_t>{-1, 7, -8});
  EXPECT_EQ(std::to_integer<int>(tensor.bytes()[0]), 0x7F);
  EXPECT_EQ(integers(tensor), (std::vector<int64_t>{-1, 7, -8}));
}

}  // namespace
}  // namespace unmoor
