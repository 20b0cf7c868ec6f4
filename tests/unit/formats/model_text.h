#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/onnx/onnx.h"

// Small ONNX files made by hand, field by field, so that they can be wrong in any way. A message is the concatenation of its
// fields.
namespace unmoor::model_text {

inline std::string bytes(uint32_t field, std::string_view value) {
  std::string text;
  protozero::pbf_writer(text).add_bytes(field, value.data(), value.size());
  return text;
}
inline std::string number(uint32_t field, int64_t value) {
  std::string text;
  protozero::pbf_writer(text).add_int64(field, value);
  return text;
}
inline std::string real(uint32_t field, float value) {
  std::string text;
  protozero::pbf_writer(text).add_float(field, value);
  return text;
}

inline std::string attribute(std::string_view name, int64_t value) {
  return bytes(5, bytes(1, name) + number(3, value) + number(20, 2));
}
inline std::string attribute(std::string_view name, float value) {
  return bytes(5, bytes(1, name) + real(2, value) + number(20, 1));
}
inline std::string attribute(std::string_view name, std::string_view value) {
  return bytes(5, bytes(1, name) + bytes(4, value) + number(20, 3));
}
inline std::string attribute(std::string_view name, const std::vector<int64_t>& values) {
  std::string text = bytes(1, name);
  for (const int64_t value : values) text += number(8, value);
  return bytes(5, text + number(20, 7));
}
inline std::string graph_attribute(std::string_view name, std::string_view graph) {
  return bytes(5, bytes(1, name) + bytes(6, graph) + number(20, 5));
}
inline std::string tensor_attribute(std::string_view name, std::string_view tensor) {
  return bytes(5, bytes(1, name) + bytes(5, tensor) + number(20, 4));
}
// An attribute of a function's node that takes its value from the call.
inline std::string referring_attribute(std::string_view name, std::string_view reference, int64_t kind) {
  return bytes(5, bytes(1, name) + bytes(21, reference) + number(20, kind));
}

using Names = std::vector<std::string_view>;

// As a field of a graph; `more` are attributes and further fields.
inline std::string node(std::string_view op, const Names& inputs, const Names& outputs, std::string_view more = "",
                        std::string_view name = "", uint32_t field = 1) {
  std::string text;
  for (const auto input : inputs) text += bytes(1, input);
  for (const auto output : outputs) text += bytes(2, output);
  if (!name.empty()) text += bytes(3, name);
  return bytes(field, text + bytes(4, op) + std::string(more));
}

inline std::string type(int64_t dtype, const std::vector<int64_t>& dims) {
  std::string shape;
  for (const int64_t dim : dims) shape += bytes(1, number(1, dim));
  return bytes(1, number(1, dtype) + bytes(2, shape));
}
inline std::string value(uint32_t field, std::string_view name, std::string_view type_text) {
  return bytes(field, bytes(1, name) + (type_text.empty() ? "" : bytes(2, type_text)));
}
inline std::string input(std::string_view name, const std::vector<int64_t>& dims = {2, 3}, int64_t dtype = 1) {
  return value(11, name, type(dtype, dims));
}
inline std::string output(std::string_view name) { return value(12, name, ""); }

inline std::string tensor(std::string_view name, int64_t dtype, const std::vector<int64_t>& dims, std::string_view data_fields) {
  std::string text;
  for (const int64_t dim : dims) text += number(1, dim);
  return text + number(2, dtype) + bytes(8, name) + std::string(data_fields);
}
inline std::string floats(const std::vector<float>& values) {
  return bytes(9, std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * 4));
}
inline std::string integers(const std::vector<int64_t>& values) {
  return bytes(9, std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * 8));
}
inline std::string initializer(std::string_view tensor_text) { return bytes(5, tensor_text); }

inline std::string opset(int64_t version, std::string_view domain = "", uint32_t field = 8) {
  return bytes(field, bytes(1, domain) + number(2, version));
}
inline std::string model(std::string_view graph, int64_t version = 21, std::string_view more = "") {
  return number(1, 8) + bytes(7, graph) + opset(version) + std::string(more);
}

// A folder with one model in it.
class ModelFile {
 public:
  explicit ModelFile(std::string_view text) { write_file(path(), text); }
  std::string path(std::string_view name = "model.onnx") const { return cat(folder_.path(), '/', name); }
  Model read() const { return read_onnx(path()); }

 private:
  TemporaryFolder folder_;
};

inline Graph read_text(std::string_view text) { return ModelFile(text).read().graph; }
// The error's text, or nothing.
inline std::string error_of(std::string_view text) {
  try {
    read_text(text);
  } catch (const Error& error) {
    return cat(name(error.kind()), ": ", error.what());
  }
  return "";
}

// "Conv(x,w)->y; Relu(y)->z": constants in capitals as they are named.
inline std::string summary(const Graph& graph) {
  std::string text;
  const auto list = [&graph](const std::vector<ValueId>& ids) {
    std::string names;
    for (size_t i = 0; i < ids.size(); ++i) names += cat(i == 0 ? "" : ",", ids[i] == no_value ? "" : graph.value(ids[i]).name);
    return names;
  };
  for (const auto& node : graph.nodes())
    text += cat(text.empty() ? "" : "; ", node.op, '(', list(node.inputs), ")->", list(node.outputs));
  return text;
}

}  // namespace unmoor::model_text
