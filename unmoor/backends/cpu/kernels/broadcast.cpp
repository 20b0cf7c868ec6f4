#include "unmoor/backends/cpu/kernels/broadcast.h"

#include <algorithm>

namespace unmoor::cpu {

Broadcast::Offsets Broadcast::offsets(size_t row) const {
  Offsets at = {};
  for (size_t axis = dims.size(); axis-- > 0 && row != 0;) {
    const size_t index = row % dims[axis];
    row /= dims[axis];
    for (size_t k = 0; k < at.size(); ++k) {
      at[k] += index * strides[axis][k];
    }
  }
  return at;
}

namespace {

// By output axis: the step of each input, 0 where it is broadcast.
std::vector<Broadcast::Offsets> strides_of(const OpCall& call, size_t inputs, size_t rank) {
  std::vector<Broadcast::Offsets> strides(rank, Broadcast::Offsets{});
  for (size_t k = 0; k < inputs; ++k) {
    const Shape& shape = call.input(k).shape;
    size_t step = 1;
    for (size_t i = 0; i < shape.rank(); ++i) {
      const auto dim = static_cast<size_t>(shape[shape.rank() - 1 - i]);
      strides[rank - 1 - i][k] = dim == 1 ? 0 : step;
      step *= dim;
    }
  }
  return strides;
}

}  // namespace

Broadcast broadcast_of(const OpCall& call, size_t inputs) {
  const Shape& shape = call.output(0).shape;
  const std::vector<Broadcast::Offsets> strides = strides_of(call, inputs, shape.rank());
  Broadcast plan;
  // Merged from the last axis: an outer axis joins the one inside it if every input steps over it as over one long axis.
  std::vector<size_t> dims;
  std::vector<Broadcast::Offsets> steps;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    const auto dim = static_cast<size_t>(shape[axis]);
    if (dim == 1) {
      continue;
    }
    const bool joins = !dims.empty() && std::ranges::all_of(std::array<size_t, 3>{0, 1, 2}, [&](size_t k) {
      return strides[axis][k] == steps.back()[k] * dims.back();
    });
    if (joins) {
      dims.back() *= dim;
    } else {
      dims.push_back(dim);
      steps.push_back(strides[axis]);
    }
  }
  if (!dims.empty()) {
    plan.inner = dims[0];
    for (size_t k = 0; k < Broadcast::most_inputs; ++k) {
      plan.moves[k] = steps[0][k] != 0;
    }
  }
  for (size_t i = dims.size(); i-- > 1;) {
    plan.dims.push_back(dims[i]);
    plan.strides.push_back(steps[i]);
    plan.rows *= dims[i];
  }
  return plan;
}

}  // namespace unmoor::cpu
