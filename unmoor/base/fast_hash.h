#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace unmoor {

// 128 bits that tell contents apart, at the speed of memory. Not made to withstand somebody who looks for collisions: use Sha256
// there.
struct FastHash {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const FastHash&) const = default;
};

// Every change of one 8-byte word changes the result. The same on every machine of the same byte order. Any thread.
FastHash fast_hash(std::span<const std::byte> bytes, FastHash seed = {});
FastHash fast_hash(std::string_view text, FastHash seed = {});

}  // namespace unmoor
