#include "unmoor/backends/cpu/kernels/walk.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "unmoor/backends/cpu/simd/gemm.h"

namespace unmoor::cpu {

namespace {

struct Bytes16 {
  std::array<uint64_t, 2> parts;
};

// Drops axes of one element, and merges each axis into the next where stepping over it is the same on both sides.
StridedCopy merged(const StridedCopy& copy) {
  StridedCopy out = copy;
  out.dims.clear();
  out.in.clear();
  out.out.clear();
  for (size_t i = 0; i < copy.dims.size(); ++i) {
    if (copy.dims[i] == 1) continue;
    const auto dim = static_cast<int64_t>(copy.dims[i]);
    if (!out.dims.empty() && out.in.back() == copy.in[i] * dim && out.out.back() == copy.out[i] * dim) {
      out.dims.back() *= copy.dims[i];
      out.in.back() = copy.in[i];
      out.out.back() = copy.out[i];
    } else {
      out.dims.push_back(copy.dims[i]);
      out.in.push_back(copy.in[i]);
      out.out.push_back(copy.out[i]);
    }
  }
  return out;
}

}  // namespace

std::vector<int64_t> dense_steps(const Shape& shape) { return shape.strides(); }

size_t element_bytes(DType dtype) { return dtype != DType::String && bits_of(dtype) % 8 == 0 ? bits_of(dtype) / 8 : 0; }

PreparedCopy::PreparedCopy(const Machine& machine, const StridedCopy& copy) : machine_(machine), copy_(merged(copy)) {
  if (copy_.dims.empty()) {
    return;
  }
  const auto take = [this](size_t axis) {
    copy_.dims.erase(copy_.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    copy_.in.erase(copy_.in.begin() + static_cast<std::ptrdiff_t>(axis));
    copy_.out.erase(copy_.out.begin() + static_cast<std::ptrdiff_t>(axis));
  };
  run_ = copy_.dims.back();
  run_in_ = copy_.in.back();
  run_out_ = copy_.out.back();
  take(copy_.dims.size() - 1);
  const auto innermost = std::ranges::find(copy_.in, 1);
  if (copy_.element_bytes == 4 && run_in_ > 1 && run_out_ == 1 && innermost != copy_.in.end()) {
    const auto axis = static_cast<size_t>(innermost - copy_.in.begin());
    transposes_ = true;
    across_ = copy_.dims[axis];
    across_out_ = copy_.out[axis];
    take(axis);
  }
}

size_t PreparedCopy::rows() const {
  size_t count = 1;
  for (const size_t dim : copy_.dims) count *= dim;
  return count;
}

// out[i * across_out + j] = in[i + j * run_in], in blocks whose lines stay in L1.
void PreparedCopy::transpose_block(const float* in, float* out) const {
  const GemmLoops& loops = gemm_loops();
  constexpr size_t block = 32;
  for (size_t i = 0; i < across_; i += block) {
    for (size_t j = 0; j < run_; j += block) {
      loops.transpose(in + i + j * static_cast<size_t>(run_in_), static_cast<size_t>(run_in_), std::min(block, run_ - j), std::min(block, across_ - i),
                      out + i * static_cast<size_t>(across_out_) + j, static_cast<size_t>(across_out_));
    }
  }
}

template <class T>
void PreparedCopy::run_as(const T* in, T* out) const {
  const size_t per_row = run_ * across_;
  machine_.pool().ranges(rows(), 16384 / (per_row + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      auto from = static_cast<int64_t>(copy_.in_start);
      auto to = static_cast<int64_t>(copy_.out_start);
      size_t rest = row;
      for (size_t axis = copy_.dims.size(); axis-- > 0;) {
        const auto index = static_cast<int64_t>(rest % copy_.dims[axis]);
        rest /= copy_.dims[axis];
        from += index * copy_.in[axis];
        to += index * copy_.out[axis];
      }
      const T* const x = in + from;
      T* const y = out + to;
      if constexpr (sizeof(T) == 4) {
        if (transposes_) {
          transpose_block(reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y));
          continue;
        }
      }
      if (run_in_ == 1 && run_out_ == 1) {
        std::memcpy(y, x, run_ * sizeof(T));
      } else if (run_in_ == 0 && run_out_ == 1) {
        std::fill(y, y + run_, *x);
      } else {
        for (size_t i = 0; i < run_; ++i) y[static_cast<int64_t>(i) * run_out_] = x[static_cast<int64_t>(i) * run_in_];
      }
    }
  });
}

void PreparedCopy::run(const std::byte* in, std::byte* out) const {
  if (run_ * rows() == 0) {
    return;
  }
  switch (copy_.element_bytes) {
    case 1: run_as(reinterpret_cast<const uint8_t*>(in), reinterpret_cast<uint8_t*>(out)); break;
    case 2: run_as(reinterpret_cast<const uint16_t*>(in), reinterpret_cast<uint16_t*>(out)); break;
    case 4: run_as(reinterpret_cast<const uint32_t*>(in), reinterpret_cast<uint32_t*>(out)); break;
    case 8: run_as(reinterpret_cast<const uint64_t*>(in), reinterpret_cast<uint64_t*>(out)); break;
    default: run_as(reinterpret_cast<const Bytes16*>(in), reinterpret_cast<Bytes16*>(out)); break;
  }
}

}  // namespace unmoor::cpu
