#include "unmoor/workbench/noise/sampled.h"

#include "unmoor/ops/real.h"
#include "unmoor/tensor/unset.h"

namespace unmoor {

Data in_float64(const Data& data) {
  if (data.is_tensor()) {
    const DType dtype = data.tensor().dtype();
    if (dtype == DType::F16 || dtype == DType::BF16) return float64_tensor(data.tensor());
    if (dtype != DType::F32) return data;
    Tensor result = unset_tensor({DType::F64, data.tensor().shape()});
    const auto to = result.writable_span<double>();
    side_by_side_ranges(to.size(), 1, [&](size_t begin, size_t end) { widen(data.tensor(), begin, to.subspan(begin, end - begin)); });
    return result;
  }
  if (data.is_sequence()) {
    Sequence result;
    for (const Data& item : data.sequence().items) result.items.push_back(in_float64(item));
    return result;
  }
  return data;
}

OpCall call_on(const Node& node, std::span<const Data> in) {
  OpCall call{node, {}, {}, {}};
  for (const Data& data : in) {
    call.inputs.push_back(data ? std::optional<Type>(type_of(data)) : std::nullopt);
    call.constants.push_back(data.is_tensor() ? &data.tensor() : nullptr);
  }
  call.outputs = infer_outputs(call);
  return call;
}

std::vector<Data> reference_on(const Node& node, std::span<const Data> in) {
  const OpCall call = call_on(node, in);
  Outputs outputs(node.outputs.size());
  run_reference(call, in, outputs);
  return std::move(outputs.all());
}

}  // namespace unmoor
