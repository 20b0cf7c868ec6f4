#pragma once

#include <memory>

#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {

// While it lives, the last few large constants that were widened on its thread, and the last few products and convolutions, are kept:
// who asks for one again, of the very same tensors, gets it without another run. For a kernel that is run exactly, and exactly again
// beside its noise. One thread; ends in reverse order.
class ExactMemo {
 public:
  ExactMemo();
  ~ExactMemo();
  ExactMemo(const ExactMemo&) = delete;
  ExactMemo& operator=(const ExactMemo&) = delete;

 private:
  struct Held;
  friend Data wide_constant(const Data& constant);
  friend std::vector<Data> exact_on(const Node& node, std::span<const Data> in);
  static ExactMemo*& current();

  std::unique_ptr<Held> held_;
  ExactMemo* before_;
};

// Input `i` of a node, a constant of the file, as the node reads it: in float64, but of a table that rows are only taken from.
Data constant_of(const Node& node, size_t i, const Data& constant);
// As in_float64 and reference_on, out of the memo of this thread where there is one. A convolution's bias is added to the product.
Data wide_constant(const Data& constant);
std::vector<Data> exact_on(const Node& node, std::span<const Data> in);

}  // namespace unmoor
