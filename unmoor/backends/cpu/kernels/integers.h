#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/integer.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::cpu {

// Products of two centred bytes that an int32 certainly holds the sum of.
constexpr size_t most_exact_depth = 33000;

inline size_t padded_depth(size_t depth) {
  return (depth + IntegerProduct::depth_step - 1) / IntegerProduct::depth_step * IntegerProduct::depth_step;
}

// Signed or unsigned bytes, of a dtype known beforehand, where they lie.
class Bytes {
 public:
  explicit Bytes(DType dtype) : is_signed_(dtype == DType::I8) {}
  Bytes of(const KernelArgs& args, size_t i) const { return lying_at(i < args.inputs.size() ? args.inputs[i].host() : nullptr); }
  Bytes of(const Tensor& tensor) const { return lying_at(tensor.bytes().data()); }

  int16_t at(size_t i) const {
    return is_signed_ ? static_cast<int16_t>(reinterpret_cast<const int8_t*>(data_)[i])
                      : static_cast<int16_t>(reinterpret_cast<const uint8_t*>(data_)[i]);
  }
  // Elements [first, first + n) less `zero`.
  void centred(size_t first, size_t n, int16_t zero, int16_t* to) const {
    if (is_signed_) {
      const auto* const from = reinterpret_cast<const int8_t*>(data_) + first;
      for (size_t i = 0; i < n; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
    } else {
      const auto* const from = reinterpret_cast<const uint8_t*>(data_) + first;
      for (size_t i = 0; i < n; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
    }
  }
  bool is_signed() const { return is_signed_; }

  // What sums of products become: (sum + more)·factor / scale + zero.
  struct Scaling {
    double more, factor, scale, zero;
  };
  // y[first + i·step] = the i-th sum scaled, rounded with ties to even, and limited; NaN becomes the zero point.
  void put_row(std::byte* y, size_t first, size_t step, const int32_t* sums, size_t n, const Scaling& scaling) const {
    constexpr double most = 1e9;
    constexpr double rounding = 6755399441055744.0;  // 1.5·2^52.
    const double low = is_signed_ ? -128 : 0;
    const double high = is_signed_ ? 127 : 255;
    for (size_t i = 0; i < n; ++i) {
      double q = (static_cast<double>(sums[i]) + scaling.more) * scaling.factor / scaling.scale;
      q = q == q ? q : 0;
      q = q < most ? q : most;
      q = q > -most ? q : -most;
      q = (q + rounding) - rounding + scaling.zero;
      q = q < high ? q : high;
      q = q > low ? q : low;
      y[first + i * step] = static_cast<std::byte>(static_cast<int32_t>(q) & 0xff);
    }
  }

 private:
  Bytes lying_at(const std::byte* data) const {
    Bytes bytes = *this;
    bytes.data_ = data;
    return bytes;
  }

  bool is_signed_;
  const std::byte* data_ = nullptr;
};

}  // namespace unmoor::cpu
