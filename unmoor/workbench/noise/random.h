#pragma once

#include <cstddef>
#include <cstdint>

namespace unmoor {

// Random numbers by position, so that a spread does not depend on threads or on what was drawn before. SplitMix64 (Steele, Lea
// and Flood, "Fast splittable pseudorandom number generators", 2014), keyed by a seed, a copy and a stream. Immutable: any
// thread.
class NoiseRandom {
 public:
  NoiseRandom(uint64_t seed, uint64_t copy, uint64_t stream) : key_(mixed(mixed(mixed(seed) + copy) + stream)) {}

  uint64_t bits(size_t i) const { return mixed(key_ + 0x9e3779b97f4a7c15U * static_cast<uint64_t>(i)); }
  double unit(size_t i) const { return static_cast<double>(bits(i) >> 11) * 0x1p-53; }  // In [0, 1).
  double around(size_t i) const { return 2 * unit(i) - 1; }                             // In [-1, 1).
  // Mean 0 and deviation 1: the sum of four parts of one word (Irwin and Hall), within 3.5. Only second moments are made of it.
  double normal(size_t i) const {
    const uint64_t word = bits(i);
    double sum = 0;
    for (int part = 0; part < 64; part += 16) sum += static_cast<double>((word >> part) & 0xffffU) + 0.5;
    constexpr double deviation = 37837.22671;  // Of the sum: 65536/√3.
    return (sum - 131072) / deviation;
  }

 private:
  static uint64_t mixed(uint64_t z) {
    z += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  uint64_t key_;
};

}  // namespace unmoor
