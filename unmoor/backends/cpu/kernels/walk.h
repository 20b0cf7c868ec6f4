#pragma once

#include <vector>

#include "unmoor/backends/cpu/machine.h"

namespace unmoor::cpu {

// A copy between two strided views of `dims`, slowest first. Steps and starts are in elements; input steps may be zero or
// negative, output steps are those of a dense tensor or of a box within one.
struct StridedCopy {
  size_t element_bytes = 4;  // 1, 2, 4, 8 or 16.
  std::vector<size_t> dims = {};
  std::vector<int64_t> in = {};
  std::vector<int64_t> out = {};
  size_t in_start = 0;
  size_t out_start = 0;
};

// A strided copy made ready: axes are merged where both sides allow it, and the way of copying is chosen.
class PreparedCopy {
 public:
  PreparedCopy(const Machine& machine, const StridedCopy& copy);
  void run(const std::byte* in, std::byte* out) const;

 private:
  template <class T>
  void run_as(const T* in, T* out) const;
  void transpose_block(const float* in, float* out) const;
  size_t rows() const;

  const Machine& machine_;
  StridedCopy copy_;       // Without the innermost axis, or the two of a transpose.
  size_t run_ = 1;         // The innermost axis: length and steps.
  int64_t run_in_ = 1;
  int64_t run_out_ = 1;
  bool transposes_ = false;  // The innermost output axis and the axis `across` that the input has innermost.
  size_t across_ = 1;
  int64_t across_out_ = 1;
};

// Steps of a dense tensor of these dimensions.
std::vector<int64_t> dense_steps(const Shape& shape);
// Bytes of one element, or 0 where elements are not whole bytes or are strings.
size_t element_bytes(DType dtype);

}  // namespace unmoor::cpu
