#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unmoor::fuzz {

// What a fuzzer's bytes decide, one question after the other. Once they are used up every answer is 0, which is always the plainest one.
class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  uint64_t number(size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8U | byte();
    return value;
  }
  // In [0, count), which is at least 1.
  size_t below(size_t count) { return static_cast<size_t>(number(count > 256 ? 2 : 1)) % count; }
  // True rarely: for one value of a byte in `n`, never the value 0.
  bool once_in(size_t n) { return below(n) == n - 1; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::span<const uint8_t> bytes_;
};

// Mixes a number (the finaliser of SplitMix64).
constexpr uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace unmoor::fuzz
