#include "unmoor/backends/cpu/kernels/fourier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace unmoor::cpu {

namespace {

constexpr size_t most_by_definition = 48;

Complex turned(size_t turns, size_t length, bool conjugate) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(length);
  return {std::cos(angle), conjugate ? -std::sin(angle) : std::sin(angle)};
}

}  // namespace

Fourier::Fourier(size_t length, bool inverse) : length_(length), inverse_(inverse), size_(length) {
  const bool power = std::has_single_bit(length);
  if (!power && length <= most_by_definition) {
    for (size_t i = 0; i < length; ++i) turns_.push_back(turned(i, length, !inverse));
    return;
  }
  if (!power) size_ = std::bit_ceil(2 * length);
  for (size_t i = 0; i < size_ / 2; ++i) turns_.push_back(turned(i, size_, true));
  if (power) return;
  // Bluestein 1970: nk = (n² + k² - (k - n)²) / 2.
  for (size_t n = 0; n < length; ++n) chirp_.push_back(turned(n * n % (2 * length), 2 * length, !inverse));
  spectrum_.resize(size_);
  for (size_t n = 0; n < length; ++n) spectrum_[n] = spectrum_[(size_ - n) % size_] = chirp_[n].conjugate();
  radix_two(spectrum_, false);
}

// In place (Cooley and Tukey 1965); with conjugated turns it is the inverse, not yet divided.
void Fourier::radix_two(std::vector<Complex>& x, bool conjugate) const {
  const size_t size = x.size();
  for (size_t i = 1, j = 0; i < size; ++i) {
    size_t bit = size >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j |= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t half = 1; half < size; half *= 2) {
    const size_t step = size / (2 * half);
    for (size_t first = 0; first < size; first += 2 * half) {
      Complex* const low = &x[first];
      Complex* const high = low + half;
      for (size_t k = 0; k < half; ++k) {
        const Complex turn = conjugate ? turns_[k * step].conjugate() : turns_[k * step];
        const Complex odd = turn * high[k];
        high[k] = low[k] - odd;
        low[k] = low[k] + odd;
      }
    }
  }
}

void Fourier::by_definition(std::span<Complex> x, Scratch& scratch) const {
  scratch.a.assign(x.begin(), x.end());
  for (size_t k = 0; k < length_; ++k) {
    Complex sum;
    size_t turn = 0;
    for (const Complex& value : scratch.a) {
      sum = sum + value * turns_[turn];
      turn += k;
      if (turn >= length_) turn -= length_;
    }
    x[k] = sum;
  }
}

void Fourier::by_chirp(std::span<Complex> x, Scratch& scratch) const {
  scratch.a.assign(size_, {});
  for (size_t n = 0; n < length_; ++n) scratch.a[n] = x[n] * chirp_[n];
  radix_two(scratch.a, false);
  for (size_t i = 0; i < size_; ++i) scratch.a[i] = scratch.a[i] * spectrum_[i];
  radix_two(scratch.a, true);
  const double part = 1 / static_cast<double>(size_);
  for (size_t k = 0; k < length_; ++k) x[k] = scratch.a[k] * Complex{chirp_[k].re * part, chirp_[k].im * part};
}

void Fourier::run(std::span<Complex> x, Scratch& scratch) const {
  if (!chirp_.empty()) {
    by_chirp(x, scratch);
  } else if (turns_.size() == length_ && length_ > 1) {
    by_definition(x, scratch);
  } else {
    scratch.a.assign(x.begin(), x.end());
    radix_two(scratch.a, inverse_);
    std::ranges::copy(scratch.a, x.begin());
  }
  if (!inverse_) return;
  const double part = 1 / static_cast<double>(length_);
  for (Complex& value : x) value = {value.re * part, value.im * part};
}

}  // namespace unmoor::cpu
