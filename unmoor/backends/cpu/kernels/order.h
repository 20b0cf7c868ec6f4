#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace unmoor::cpu {

// Numbers in the order of floats: both zeros are one, NaN is above all.
inline uint32_t order_of(float value) {
  if (std::isnan(value)) return UINT32_MAX;
  const auto bits = std::bit_cast<uint32_t>(value + 0.0F);  // -0 becomes 0.
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

}  // namespace unmoor::cpu
