#include <algorithm>
#include <array>
#include <memory>

#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/passes/pass.h"
#include "unmoor/tensor/unset.h"

namespace unmoor {
namespace {

bool is_widened(DType dtype) { return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }
DType wide(DType dtype) { return is_widened(dtype) ? DType::F64 : dtype; }

std::shared_ptr<const Type> wide(const std::shared_ptr<const Type>& type);

Type wide(const Type& type) {
  if (const auto* tensor = std::get_if<TensorType>(&type)) return TensorType{wide(tensor->dtype), tensor->shape};
  if (const auto* sequence = std::get_if<SequenceType>(&type)) return SequenceType{wide(sequence->element)};
  if (const auto* optional = std::get_if<OptionalType>(&type)) return OptionalType{wide(optional->element)};
  const auto& map = std::get<MapType>(type);
  return MapType{map.key, wide(map.value)};
}

std::shared_ptr<const Type> wide(const std::shared_ptr<const Type>& type) {
  return type ? std::make_shared<const Type>(wide(*type)) : nullptr;
}

Tensor wide(const Tensor& tensor) {
  if (!tensor || !is_widened(tensor.dtype())) return tensor;
  return float64_tensor(tensor);
}

Data wide(const Data& data) {
  if (data.is_tensor()) return wide(data.tensor());
  if (data.is_sequence()) {
    Sequence result;
    for (const Data& item : data.sequence().items) result.items.push_back(wide(item));
    return result;
  }
  if (!data.is_map()) return data;
  Map result{data.map().keys, {}};
  for (const Data& item : data.map().values) result.values.push_back(wide(item));
  return result;
}

SubGraph wide(const SubGraph& graph) { return graph ? std::make_shared<const Graph>(widened(*graph)) : nullptr; }

Attribute wide(const Attribute& attribute) {
  if (const auto* tensor = std::get_if<Tensor>(&attribute)) return wide(*tensor);
  if (const auto* type = std::get_if<Type>(&attribute)) return wide(*type);
  if (const auto* graph = std::get_if<SubGraph>(&attribute)) return wide(*graph);
  if (const auto* graphs = std::get_if<std::vector<SubGraph>>(&attribute)) {
    std::vector<SubGraph> result;
    for (const SubGraph& graph : *graphs) result.push_back(wide(graph));
    return result;
  }
  return attribute;
}

// What gives float32 unless it is told otherwise must be told.
void set_defaults(Node& node) {
  constexpr std::array<std::string_view, 4> with_dtype{"RandomNormal", "RandomUniform", "SequenceEmpty", "TfIdfVectorizer"};
  constexpr std::array<std::string_view, 4> windows{"HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"};
  constexpr std::array<std::string_view, 12> learned{"CastMap",      "FeatureVectorizer", "LabelEncoder",  "LinearClassifier",
                                                     "LinearRegressor", "Normalizer",     "OneHotEncoder", "SVMClassifier",
                                                     "SVMRegressor", "Scaler",            "TreeEnsembleClassifier",
                                                     "TreeEnsembleRegressor"};
  const std::string_view ml = "ai.onnx.ml:";
  const auto is_in = [&node](const auto& names) { return std::ranges::find(names, node.op) != names.end(); };
  if (node.op == "ConstantOfShape") node.attributes.try_emplace("value", Tensor::from<double>({1}, {0.0}));
  if (is_in(with_dtype)) node.attributes.try_emplace("dtype", onnx_number(DType::F32));
  if (is_in(windows)) node.attributes.try_emplace("output_datatype", onnx_number(DType::F32));
  if (node.op.starts_with(ml) && std::ranges::find(learned, std::string_view(node.op).substr(ml.size())) != learned.end()) {
    node.attributes.try_emplace("output_dtype", onnx_number(DType::F32));
  }
}

}  // namespace

Graph widened(const Graph& graph) {
  constexpr std::array<std::string_view, 5> dtype_keys{"to", "dtype", "output_dtype", "output_datatype", "softmax_precision"};
  Graph result = graph;
  for (size_t i = 0; i < result.values().size(); ++i) {
    Value& value = result.mutable_value(ValueId{static_cast<uint32_t>(i)});
    value.type = wide(value.type);
    if (value.constant) value.constant = wide(*value.constant);
  }
  for (size_t i = 0; i < result.nodes().size(); ++i) {
    Node& node = result.mutable_node(NodeId{static_cast<uint32_t>(i)});
    for (auto& [key, attribute] : node.attributes) attribute = wide(attribute);
    set_defaults(node);
    for (const std::string_view key : dtype_keys) {
      const auto found = node.attributes.find(key);
      const auto* number = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
      const auto dtype = number == nullptr ? std::nullopt : dtype_numbered(*number);
      if (dtype && is_widened(*dtype)) found->second = onnx_number(DType::F64);
    }
  }
  return result;
}

}  // namespace unmoor
