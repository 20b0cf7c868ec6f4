#include "unmoor/workbench/inputs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/formats/npy.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

Shape parse_dims(std::string_view text, std::string_view whole) {
  Shape shape;
  if (!text.empty() && text.front() == '[') text.remove_prefix(1);
  if (!text.empty() && text.back() == ']') text.remove_suffix(1);
  while (!text.empty()) {
    int64_t dim = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (problem != std::errc() || dim < 0) fail(ErrorKind::InvalidArgument, "'", whole, "' is no shape; write it as x:1x3x224x224");
    shape.push_back(dim);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if ((text.front() != 'x' && text.front() != ',') || text.size() == 1) {
      fail(ErrorKind::InvalidArgument, "'", whole, "' is no shape; write it as x:1x3x224x224");
    }
    text.remove_prefix(1);
  }
  return shape;
}

uint64_t mixed(uint64_t state) {  // splitmix64
  state += 0x9E3779B97F4A7C15U;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31);
}

uint64_t text_seed(std::string_view text) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  return hash;
}

double unit(uint64_t seed, uint64_t index) { return (static_cast<double>(mixed(seed ^ mixed(index)) >> 11) + 0.5) * 0x1p-53; }

bool ends_with(const std::string& text, std::string_view end) { return text.size() >= end.size() && text.ends_with(end); }

// Nothing in a .pb says what it holds: the input's type does, where it is no tensor.
Data read_one(const std::string& path, const ValueInfo* wanted) {
  if (!ends_with(path, ".pb")) return read_npy(path);
  const bool is_tensor = wanted == nullptr || std::holds_alternative<TensorType>(wanted->type);
  return read_onnx_tensor(path, is_tensor ? nullptr : &wanted->type);
}

}  // namespace

InputShapes parse_shapes(const std::string& text) {
  InputShapes shapes;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = rest.find(';');
    const std::string_view item = rest.substr(0, end);
    const size_t colon = item.rfind(':');
    if (colon == std::string_view::npos || colon == 0) fail(ErrorKind::InvalidArgument, "'", item, "' is no shape; write it as x:1x3x224x224");
    shapes[std::string(item.substr(0, colon))] = parse_dims(item.substr(colon + 1), item);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return shapes;
}

namespace {

// All unknown dimensions at `size`, first axes at 1. Inputs without a rank are left out.
InputShapes shapes_of_size(const Graph& graph, const InputShapes& given, int64_t size) {
  InputShapes shapes = given;
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    const auto* type = std::get_if<TensorType>(&value.type);
    if (type == nullptr || !type->shape.has_rank() || shapes.contains(value.name)) continue;
    Shape shape = type->shape;
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] < 0) shape.set(axis, axis == 0 ? 1 : size);
    }
    shapes[value.name] = shape;
  }
  return shapes;
}

bool fits(const Graph& graph, const InputShapes& shapes) {
  try {
    (void)with_shapes(graph, shapes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

ChosenShapes choose_shapes(const Graph& graph, const InputShapes& given) {
  constexpr std::array<int64_t, 16> sizes{8, 16, 32, 48, 64, 96, 128, 160, 192, 224, 256, 320, 384, 512, 576, 640};
  const InputShapes ones = shapes_of_size(graph, given, 1);
  const bool open = std::ranges::any_of(graph.inputs(), [&](ValueId id) { return !given.contains(graph.value(id).name) && !is_known(graph.value(id).type); });
  if (!open || fits(graph, ones)) return {ones, ""};
  for (const int64_t size : sizes) {
    InputShapes shapes = shapes_of_size(graph, given, size);
    if (!fits(graph, shapes)) continue;
    std::string list;
    for (const auto& [name, shape] : shapes) {
      if (!given.contains(name)) list += cat(list.empty() ? "" : ", ", name, " ", shape);
    }
    return {shapes, cat("the model does not take sizes of 1: chosen were ", list, "; give others with --shapes")};
  }
  return {ones, ""};
}

NamedData read_inputs(const std::vector<std::string>& texts, const std::vector<ValueInfo>& wanted) {
  NamedData inputs;
  for (const std::string& text : texts) {
    if (ends_with(text, ".npz") && text.find('=') == std::string::npos) {
      for (auto& [name, tensor] : read_npz(text)) inputs[name] = std::move(tensor);
      continue;
    }
    const size_t equals = text.rfind('=');
    if (equals != std::string::npos) {
      const std::string name = text.substr(0, equals);
      const auto found = std::ranges::find(wanted, name, &ValueInfo::name);
      inputs[name] = read_one(text.substr(equals + 1), found == wanted.end() ? nullptr : &*found);
    } else if (wanted.size() == 1) {
      inputs[wanted[0].name] = read_one(text, &wanted[0]);
    } else {
      fail(ErrorKind::InvalidArgument, "the model has ", wanted.size(), " inputs; say which one '", text, "' is for: NAME=", text);
    }
  }
  for (const auto& [name, data] : inputs) {
    bool known = false;
    std::string names;
    for (const ValueInfo& input : wanted) {
      known = known || input.name == name;
      names += cat(names.empty() ? "" : ", ", input.name);
    }
    if (!known) fail(ErrorKind::InvalidArgument, "the model has no input '", name, "'; its inputs are: ", names);
  }
  return inputs;
}

Data generate_input(const ValueInfo& input, const GeneratorOptions& options) {
  const auto* declared = std::get_if<TensorType>(&input.type);
  if (declared == nullptr) fail(ErrorKind::InvalidArgument, "input '", input.name, "' is no tensor and must be given");
  TensorType type = *declared;
  if (const auto found = options.shapes.find(input.name); found != options.shapes.end()) type.shape = found->second;
  if (!type.shape.has_rank()) {
    fail(ErrorKind::InvalidArgument, "input '", input.name, "' has no declared rank: give its shape with --shapes or its values with -i");
  }
  for (size_t i = 0; i < type.shape.rank(); ++i) {
    if (type.shape[i] < 0) type.shape.set(i, 1);
  }
  Tensor tensor(type);
  if (type.dtype == DType::String) return tensor;
  const uint64_t seed = mixed(options.seed) ^ text_seed(input.name);
  std::vector<double> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    const double first = unit(seed, 2 * i);
    if (!is_float(type.dtype)) {
      values[i] = first < 0.5 ? 0 : 1;
    } else if (options.range) {
      values[i] = options.range->first + first * (options.range->second - options.range->first);
    } else {
      values[i] = std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * unit(seed, 2 * i + 1));
    }
  }
  store(tensor, values);
  return tensor;
}

}  // namespace unmoor
