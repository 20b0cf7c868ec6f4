#include "unmoor/hal/support.h"

#include <algorithm>

namespace unmoor {

std::string_view name(Reason reason) {
  switch (reason) {
    case Reason::None: return "none";
    case Reason::NoKernel: return "no-kernel";
    case Reason::DType: return "dtype";
    case Reason::Rank: return "rank";
    case Reason::Attribute: return "attribute";
    case Reason::Layout: return "layout";
    case Reason::Size: return "size";
    case Reason::Dynamic: return "dynamic";
    case Reason::Opset: return "opset";
    case Reason::DeviceFeature: return "device-feature";
    case Reason::Denied: return "denied";
  }
  return "none";
}

Support input_is(const OpCall& call, size_t input, std::initializer_list<DType> allowed) {
  if (!call.has(input)) return yes();
  const auto* tensor = std::get_if<TensorType>(&*call.inputs[input]);
  if (tensor == nullptr) return no(Reason::DType, "input ", input, " is no tensor");
  if (std::find(allowed.begin(), allowed.end(), tensor->dtype) != allowed.end()) return yes();
  std::string wanted;
  for (const DType dtype : allowed) wanted += cat(wanted.empty() ? "" : ", ", dtype);
  return no(Reason::DType, "input ", input, " is ", tensor->dtype, ", not ", wanted);
}

Support inputs_are(const OpCall& call, std::initializer_list<DType> allowed) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (Support answer = input_is(call, i, allowed); !answer) return answer;
  }
  return yes();
}

Support rank_at_most(const OpCall& call, size_t input, size_t rank) {
  if (!call.has(input) || call.input(input).shape.rank() <= rank) return yes();
  return no(Reason::Rank, "input ", input, " has rank ", call.input(input).shape.rank(), ", not at most ", rank);
}

Support integer_is(const OpCall& call, std::string_view key, int64_t wanted, int64_t otherwise) {
  const int64_t found = call.integer(key, otherwise);
  return found == wanted ? yes() : no(Reason::Attribute, key, " is ", found, ", not ", wanted);
}

Support is_constant(const OpCall& call, size_t input) {
  if (!call.has(input) || call.constant(input) != nullptr) return yes();
  return no(Reason::Dynamic, "input ", input, " is not a constant");
}

Support is_row_of(const OpCall& call, size_t input, size_t axis) {
  if (!call.has(input)) return yes();
  const Shape& x = call.input(0).shape;
  const Shape& shape = call.input(input).shape;
  bool same = shape.rank() <= x.rank();
  for (size_t i = 0; same && i < x.rank(); ++i) {  // From the last axis on; axes that are missing are 1.
    const int64_t dim = i < shape.rank() ? shape[shape.rank() - 1 - i] : 1;
    same = dim == (x.rank() - 1 - i >= axis ? x[x.rank() - 1 - i] : 1);
  }
  return same ? yes() : no(Reason::Size, "input ", input, " is ", shape, ", not one element for each place of ", x, " from axis ", axis, " on");
}

}  // namespace unmoor
