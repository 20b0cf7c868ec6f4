#include "unmoor/backends/gpu/walk.h"

#include <algorithm>

#include "unmoor/base/error.h"

namespace unmoor::gpu {

int64_t Walk::elements() const {
  int64_t count = 1;
  for (const auto dim : dims) count *= dim;
  return count;
}

std::vector<int64_t> broadcast_strides(const Shape& shape, const Shape& to) {
  const auto dense = shape.strides();
  std::vector<int64_t> result(to.rank(), 0);
  const size_t lead = to.rank() - shape.rank();
  for (size_t axis = 0; axis < shape.rank(); ++axis) result[lead + axis] = shape[axis] == 1 ? 0 : dense[axis];
  return result;
}

Walk collapsed(const Walk& walk) {
  Walk result;
  result.strides.resize(walk.strides.size());
  for (size_t axis = 0; axis < walk.rank(); ++axis) {
    const auto dim = walk.dims[axis];
    if (dim == 1) continue;
    const bool joins = !result.dims.empty() && std::ranges::all_of(walk.strides, [&](const auto& strides) {
      const auto operand = static_cast<size_t>(&strides - walk.strides.data());
      return result.strides[operand].back() == strides[axis] * dim;
    });
    for (size_t operand = 0; operand < walk.strides.size(); ++operand) {
      if (joins) {
        result.strides[operand].back() = walk.strides[operand][axis];
      } else {
        result.strides[operand].push_back(walk.strides[operand][axis]);
      }
    }
    if (joins) {
      result.dims.back() *= dim;
    } else {
      result.dims.push_back(dim);
    }
  }
  return result;
}

Walk padded(Walk walk, size_t rank) {
  if (walk.rank() >= rank) return walk;
  const auto missing = static_cast<std::ptrdiff_t>(rank - walk.rank());
  walk.dims.insert(walk.dims.begin(), static_cast<size_t>(missing), 1);
  for (auto& strides : walk.strides) strides.insert(strides.begin(), static_cast<size_t>(missing), 0);
  return walk;
}

Support sizes_fit(const OpCall& call) {
  const auto fits = [](const Type& type) {
    const auto* const tensor = std::get_if<TensorType>(&type);
    return tensor != nullptr && tensor->is_known() && tensor->shape.elements() <= most_elements;
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] && !is_known(*call.inputs[i])) return no(Reason::Dynamic, "input ", i, " is ", to_text(*call.inputs[i]));
    if (call.inputs[i] && !fits(*call.inputs[i])) {
      return no(Reason::Size, "input ", i, " is ", to_text(*call.inputs[i]), ", more than ", most_elements, " elements");
    }
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.wants_output(i)) continue;
    if (!is_known(call.outputs[i])) return no(Reason::Dynamic, "output ", i, " is ", to_text(call.outputs[i]));
    if (!fits(call.outputs[i])) {
      return no(Reason::Size, "output ", i, " is ", to_text(call.outputs[i]), ", more than ", most_elements, " elements");
    }
  }
  return yes();
}

}  // namespace unmoor::gpu
