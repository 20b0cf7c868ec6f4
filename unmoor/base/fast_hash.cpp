#include "unmoor/base/fast_hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace unmoor {
namespace {

constexpr size_t lanes = 8;                      // Independent multiplications, so that none waits for the one before.
constexpr uint64_t factor = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: odd, so multiplying loses nothing.
constexpr uint64_t word_factor = 0xc2b2ae3d27d4eb4f;

// xxHash64's round. The word is multiplied by itself first: else a change of its top bit would be undone by one of a single bit in the next.
uint64_t step(uint64_t lane, uint64_t word) { return std::rotl(lane + word * word_factor, 31) * factor; }

// MurmurHash3's finalizer: each bit of the input turns about half of the result's.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

}  // namespace

FastHash fast_hash(std::span<const std::byte> bytes, FastHash seed) {
  std::array<uint64_t, lanes> state{};
  for (size_t i = 0; i < lanes; ++i) state[i] = mixed((i % 2 == 0 ? seed.low : seed.high) + (i + 1) * factor);
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  std::array<uint64_t, lanes> words{};
  for (; left >= sizeof words; at += sizeof words, left -= sizeof words) {
    std::memcpy(words.data(), at, sizeof words);
    for (size_t i = 0; i < lanes; ++i) state[i] = step(state[i], words[i]);
  }
  words.fill(0);
  if (left > 0) std::memcpy(words.data(), at, left);
  for (size_t i = 0; i < lanes; ++i) state[i] = step(state[i], words[i]);
  FastHash hash{mixed(bytes.size() + seed.low), mixed(bytes.size() + seed.high + factor)};
  for (const uint64_t lane : state) {
    hash.low = mixed(hash.low ^ lane);
    hash.high = mixed(hash.high + lane * factor);
  }
  return hash;
}

FastHash fast_hash(std::string_view text, FastHash seed) { return fast_hash(std::as_bytes(std::span(text)), seed); }

}  // namespace unmoor
