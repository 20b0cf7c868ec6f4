#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "unmoor/backends/cpu/amx/six-inl.h"

namespace unmoor::cpu {

namespace {

float flushed(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}
float from_bf16(uint16_t value) { return flushed(std::bit_cast<float>(uint32_t{value} << 16)); }

// What the instructions do, from Intel's Software Developer's Manual, volume 2. Sums are rounded to nearest; denormals are zeros
// on the way in and out. (Where a sum is just below the smallest normal and would be rounded to it, the processor may flush it.)
struct PortableTiles {
  using Register = std::array<std::byte, 1024>;
  static Register& at(size_t t) {
    thread_local std::array<Register, 8> registers;
    return registers[t];
  }

  static void configure() {
    for (size_t t = 0; t < 8; ++t) at(t) = {};
  }
  static void release() { configure(); }
  template <size_t t>
  static void zero() {
    at(t) = {};
  }
  template <size_t t>
  static void load(const void* from, size_t step) {
    for (size_t row = 0; row < 16; ++row) std::memcpy(at(t).data() + row * 64, static_cast<const std::byte*>(from) + row * step, 64);
  }
  template <size_t t>
  static void store(void* to, size_t step) {
    for (size_t row = 0; row < 16; ++row) std::memcpy(static_cast<std::byte*>(to) + row * step, at(t).data() + row * 64, 64);
  }
  template <size_t row, size_t column>
  static void dot() {
    dot(at(2 * row + column), at(4 + row), at(6 + column));
  }

  // Of a row of A and a column of B, even places and odd ones are added up apart, then both, then the sum that was there.
  static void dot(Register& sums, const Register& a, const Register& b) {
    std::array<float, 256> to;
    std::array<uint16_t, tile_values> x;
    std::array<uint16_t, tile_values> y;
    std::memcpy(to.data(), sums.data(), 1024);
    std::memcpy(x.data(), a.data(), 1024);
    std::memcpy(y.data(), b.data(), 1024);
    for (size_t m = 0; m < 16; ++m) {
      for (size_t n = 0; n < 16; ++n) {
        std::array<float, 2> part{};
        for (size_t k = 0; k < 16; ++k) {
          for (size_t u = 0; u < 2; ++u) part[u] = flushed(std::fma(from_bf16(x[m * 32 + 2 * k + u]), from_bf16(y[k * 32 + 2 * n + u]), part[u]));
        }
        to[m * 16 + n] = flushed(flushed(to[m * 16 + n]) + flushed(part[0] + part[1]));
      }
    }
    std::memcpy(sums.data(), to.data(), 1024);
  }
};

}  // namespace

const TileLoops& portable_tiles() {
  static constexpr TileLoops loops = SixProducts<PortableTiles>::loops("portable");
  return loops;
}

}  // namespace unmoor::cpu
