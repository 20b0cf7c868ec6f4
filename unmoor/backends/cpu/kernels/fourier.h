#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace unmoor::cpu {

// A complex number, with products that do not look for infinities as std::complex's do.
struct Complex {
  double re = 0, im = 0;

  Complex operator+(Complex other) const { return {re + other.re, im + other.im}; }
  Complex operator-(Complex other) const { return {re - other.re, im - other.im}; }
  Complex operator*(Complex other) const { return {re * other.re - im * other.im, re * other.im + im * other.re}; }
  Complex conjugate() const { return {re, -im}; }
};

// The discrete Fourier transform of one length, or its inverse, with all that it needs worked out. Immutable.
class Fourier {
 public:
  static constexpr size_t longest = size_t{1} << 24;

  // length: 1 to longest.
  Fourier(size_t length, bool inverse);
  // Memory for a transform, of the calling thread.
  struct Scratch {
    std::vector<Complex> a, b;
  };
  // x: `length` numbers, replaced by their spectrum. An inverse one is divided by the length.
  void run(std::span<Complex> x, Scratch& scratch) const;

 private:
  void radix_two(std::vector<Complex>& x, bool conjugate) const;
  void by_definition(std::span<Complex> x, Scratch& scratch) const;
  void by_chirp(std::span<Complex> x, Scratch& scratch) const;

  size_t length_;
  bool inverse_;
  size_t size_;                    // Of the power of two that is transformed.
  std::vector<Complex> turns_;     // By definition: e^(∓2πi n/length). Else e^(-2πi n/size) of the first half.
  std::vector<Complex> chirp_;     // e^(∓πi n²/length); empty where the length is a power of two.
  std::vector<Complex> spectrum_;  // Of the chirp's conjugate.
};

}  // namespace unmoor::cpu
