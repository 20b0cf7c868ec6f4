#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// A value as an exact run and several perturbed ones have it. Floating tensors are float64.
struct Sampled {
  Data exact = {};
  std::vector<Data> copies =
      {};  // Empty where all are as `exact`. One that is empty has failed: it could not go on, or has another shape.

  bool is_exact() const { return copies.empty(); }
  const Data& copy(size_t k) const { return copies.empty() ? exact : copies[k]; }
  explicit operator bool() const { return static_cast<bool>(exact); }
};

// The same data with floating tensors of 16 and 32 bits as float64.
Data in_float64(const Data& data);

// The call that a node is on these inputs, an absent one empty. Everything is known, so outputs are inferred. `node` and `in`
// must outlive it.
OpCall call_on(const Node& node, std::span<const Data> in);
// The reference's results. Fails as the operator does.
std::vector<Data> reference_on(const Node& node, std::span<const Data> in);

}  // namespace unmoor
