#pragma once

#include "unmoor/ops/formula.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {

// What operators share whose weights are whole numbers of a few bits, packed into bytes, the first in the low bits.

// Fails with Unsupported unless there are 2, 4 or 8 bits.
void require_packed_bits(const OpCall& call, int64_t bits);
// Fails with InvalidModel unless a block has a power of two of elements, and at least 16.
void require_block(const OpCall& call, int64_t block);
int64_t ceil_div(int64_t a, int64_t b);

// Number `i` of the bytes, `bits` of up to 8 each; one may lie across two bytes.
inline uint8_t packed_at(std::span<const uint8_t> bytes, size_t bits, size_t i) {
  const size_t from = i * bits;
  unsigned window = bytes[from / 8];
  if (from % 8 + bits > 8) window |= static_cast<unsigned>(bytes[from / 8 + 1]) << 8;
  return static_cast<uint8_t>((window >> (from % 8)) & ((1U << bits) - 1));
}
// The bytes' numbers as an expansion: a tensor of this shape in the formula's dtype.
ValueId add_unpacked(Formula& f, ValueId bytes, int64_t bits, std::vector<int64_t> shape);

}  // namespace unmoor
