#pragma once

#include <cstdint>
#include <string>

#include "unmoor/hal/kernel.h"

namespace unmoor::cpu {

// An input's or output's elements as T; null where it is absent.
template <class T = float>
const T* input_as(const KernelArgs& args, size_t i) {
  return i < args.inputs.size() ? reinterpret_cast<const T*>(args.inputs[i].host()) : nullptr;
}
template <class T = float>
T* output_as(const KernelArgs& args, size_t i) {
  return i < args.outputs.size() ? reinterpret_cast<T*>(args.outputs[i].host()) : nullptr;
}

// Indices, int64 or int32, of a tensor input.
class Indices {
 public:
  Indices(const KernelArgs& args, size_t i, bool wide)
      : wide_(wide ? input_as<int64_t>(args, i) : nullptr), narrow_(input_as<int32_t>(args, i)) {}
  int64_t operator[](size_t i) const { return wide_ != nullptr ? wide_[i] : narrow_[i]; }

 private:
  const int64_t* wide_;
  const int32_t* narrow_;
};

// The place that an index means on an axis of `size`: negative ones count from the end. Fails with InvalidArgument, naming `who`,
// outside of
// [-size, size), as the references do.
[[noreturn]] void fail_index(const std::string& who, int64_t index, int64_t size);
inline size_t checked_index(const std::string& who, int64_t index, int64_t size) {
  const int64_t place = index < 0 ? index + size : index;
  if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(size)) [[unlikely]]
    fail_index(who, index, size);
  return static_cast<size_t>(place);
}

// An element of 16 bytes, to be moved.
struct Bytes16 {
  uint64_t parts[2];
};
// Calls body with a zero of an unsigned type as wide as the elements: what only moves them does not ask for their dtype.
template <class Body>
void with_element(size_t bytes, Body&& body) {
  switch (bytes) {
    case 1:
      body(uint8_t{});
      break;
    case 2:
      body(uint16_t{});
      break;
    case 4:
      body(uint32_t{});
      break;
    case 8:
      body(uint64_t{});
      break;
    default:
      body(Bytes16{});
      break;
  }
}

}  // namespace unmoor::cpu
