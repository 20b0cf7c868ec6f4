#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <unordered_map>
#include <unordered_set>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/onnx/fields.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/formats/onnx/types.h"
#include "unmoor/formats/onnx/write_tensor.h"

namespace unmoor {
namespace {

using namespace onnx;
using protozero::pbf_writer;

// Attention came with opset 23; later ones added inputs and attributes.
int64_t attention_opset(const Node& node) {
  constexpr size_t mask = 3, nonpad = 6;
  for (const char* window : {"left_window_size", "right_window_size"}) {
    const auto found = node.attributes.find(window);
    const auto* size = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
    if (size != nullptr && *size != -1) return 25;
  }
  const auto has = [&node](size_t i) { return i < node.inputs.size() && node.inputs[i] != no_value; };
  return has(nonpad) || (has(mask) && node.origin.opset >= 24) ? 24 : 23;
}

// Opset 23 is what runtimes know today; these operators came later.
int64_t opset_for(std::string_view op, const Node& node) {
  if (op == "Attention") return attention_opset(node);
  static const std::map<std::string_view, int64_t> later{{"Swish", 24},   {"TensorScatter", 24},   {"BitCast", 26},
                                                         {"CumProd", 26}, {"LinearAttention", 27}, {"CausalConvWithState", 27},
                                                         {"SwiGLU", 28}};
  const auto found = later.find(op);
  return found == later.end() ? 23 : found->second;
}

// In opset 5 of ai.onnx.ml the older tree operators are deprecated.
int64_t ml_opset_for(std::string_view op) { return op == "TreeEnsemble" ? 5 : 4; }

struct OpName {
  std::string domain, name;
};

OpName split(const std::string& op) {
  const size_t colon = op.rfind(':');
  return colon == std::string::npos ? OpName{"", op} : OpName{op.substr(0, colon), op.substr(colon + 1)};
}

size_t constant_bytes(const Data& data) {
  size_t bytes = data.is_tensor() ? data.tensor().bytes().size() : 0;
  if (data.is_tensor() && data.tensor().dtype() == DType::String) {
    for (const auto& text : data.tensor().strings()) bytes += text.size() + 2;
  }
  if (data.is_sequence()) {
    for (const auto& item : data.sequence().items) bytes += constant_bytes(item);
  }
  return bytes;
}

bool has_body(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const auto& entry) {
    return std::holds_alternative<SubGraph>(entry.second) || std::holds_alternative<std::vector<SubGraph>>(entry.second);
  });
}

class Writer {
 public:
  std::string model(const Graph& graph);

 private:
  using Names = std::vector<std::string>;  // By value; empty if it has none yet.

  std::string new_name(const std::string& wanted);
  // `names` has those of captured inputs, `captured` in number, which are not declared.
  void write_graph(pbf_writer writer, const Graph& graph, Names names, size_t captured);
  void write_outputs(pbf_writer& writer, const Graph& graph, Names& names, bool is_body);
  void write_constant(pbf_writer& writer, const Data& data, const std::string& name);
  void write_node(pbf_writer& writer, const Graph& graph, const Node& node, const Names& names);
  void write_attribute(pbf_writer& writer, const std::string& name, const Attribute& attribute,
                       const std::vector<std::string>& captured);
  void write_body(pbf_writer writer, const Graph& body, const std::vector<std::string>& captured);
  void note(const Node& node);
  void count(size_t bytes);  // Of constants. Fails with Unsupported where a file cannot hold them.

  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, size_t> numbers_;  // By stem: the last one given out.
  std::map<std::string, int64_t> opsets_{{"", 23}};
  size_t bytes_ = 0;
};

std::string Writer::new_name(const std::string& wanted) {
  const std::string stem = wanted.empty() ? "value" : wanted;
  std::string name = stem;
  if (taken_.insert(name).second) return name;
  size_t& number = numbers_.try_emplace(stem, 1).first->second;
  do {
    name = cat(stem, '#', ++number);
  } while (!taken_.insert(name).second);
  return name;
}

void Writer::count(size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > most_bytes)
    fail(ErrorKind::Unsupported, "the model's constants take more than the 2 GiB that an ONNX file can hold");
}

void Writer::note(const Node& node) {
  const auto [domain, name] = split(node.op);
  auto& version = opsets_[domain];
  const int64_t wanted = domain.empty()                                    ? opset_for(name, node)
                         : domain == "ai.onnx.ml"                          ? ml_opset_for(name)
                         : domain == "unmoor" || domain == "com.microsoft" ? 1
                                                                           : node.origin.opset;
  version = std::max({version, wanted, int64_t{1}});
}

void write_value(pbf_writer& writer, uint32_t field, const std::string& name, const Type& type) {
  pbf_writer value(writer, field);
  value.add_string(value_field::name, name);
  // An input needs a type; elsewhere one of unknown rank may be unknown altogether, and says more when it is left out.
  const auto* const tensor = std::get_if<TensorType>(&type);
  if (field == graph_field::input || tensor == nullptr || tensor->shape.has_rank())
    write_type(pbf_writer(value, value_field::type), type);
}

void Writer::write_constant(pbf_writer& writer, const Data& data, const std::string& name) {
  count(constant_bytes(data));
  if (data.is_tensor()) {
    write_tensor(pbf_writer(writer, graph_field::initializer), data.tensor(), name);
    return;
  }
  if (!data.is_sequence())
    fail(ErrorKind::Unsupported, "constant '", name, "' is a map or an empty optional, which ONNX cannot hold");
  std::vector<std::string> items;
  for (const auto& item : data.sequence().items) {
    items.push_back(new_name(cat(name, "/item")));
    if (!item.is_tensor()) fail(ErrorKind::Unsupported, "constant '", name, "' is a sequence of other things than tensors");
    write_tensor(pbf_writer(writer, graph_field::initializer), item.tensor(), items.back());
  }
  pbf_writer node(writer, graph_field::node);
  for (const auto& item : items) node.add_string(node_field::input, item);
  node.add_string(node_field::output, name);
  node.add_string(node_field::op_type, items.empty() ? "SequenceEmpty" : "SequenceConstruct");
}

void Writer::write_graph(pbf_writer writer, const Graph& graph, Names names, size_t captured) {
  const bool is_body = !names.empty();
  names.resize(graph.values().size());
  // At the top, inputs and outputs keep their names; all others follow.
  if (!is_body) {
    for (const ValueId id : graph.inputs()) names[Graph::index(id)] = new_name(graph.value(id).name);
    std::vector<bool> is_made(graph.values().size());
    for (const auto& node : graph.nodes()) {
      for (const ValueId id : node.outputs) {
        if (id != no_value) is_made[Graph::index(id)] = true;
      }
    }
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const size_t value = Graph::index(graph.outputs()[i]);
      if (taken_.insert(graph.output_names()[i]).second && is_made[value] && names[value].empty())
        names[value] = graph.output_names()[i];
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) names[i] = new_name(graph.values()[i].name);
  }
  writer.add_string(graph_field::name, graph.name().empty() ? "graph" : graph.name());
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& value = graph.values()[i];
    if (value.constant) write_constant(writer, *value.constant, names[i]);
  }
  for (const auto& node : graph.nodes()) write_node(writer, graph, node, names);
  for (size_t i = 0; i + captured < graph.inputs().size(); ++i) {
    const ValueId id = graph.inputs()[i];
    write_value(writer, graph_field::input, names[Graph::index(id)], graph.value(id).type);
  }
  write_outputs(writer, graph, names, is_body);
}

// An output needs its name, and in a body a node of its own: an Identity stands in where that is not so.
void Writer::write_outputs(pbf_writer& writer, const Graph& graph, Names& names, bool is_body) {
  std::unordered_set<size_t> passed;
  for (const ValueId id : graph.inputs()) passed.insert(Graph::index(id));
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueId id = graph.outputs()[i];
    const auto& value = graph.value(id);
    std::string name = names[Graph::index(id)];
    const bool is_first = passed.insert(Graph::index(id)).second;
    const bool is_direct = !value.constant && (is_body ? is_first : name == graph.output_names()[i]);
    if (!is_direct) {
      const std::string from = name;
      name = is_body ? new_name(graph.output_names()[i]) : graph.output_names()[i];
      pbf_writer node(writer, graph_field::node);
      node.add_string(node_field::input, from);
      node.add_string(node_field::output, name);
      node.add_string(node_field::op_type, "Identity");
    }
    write_value(writer, graph_field::output, name, value.type);
  }
}

void Writer::write_node(pbf_writer& writer, const Graph& graph, const Node& node, const Names& names) {
  note(node);
  const auto name_of = [&](ValueId id) { return id == no_value ? std::string() : names[Graph::index(id)]; };
  size_t inputs = node.inputs.size();
  std::vector<std::string> captured;
  const auto found = node.attributes.find("captures");
  // Without a body it is a foreign operator's own.
  const bool has_captures = found != node.attributes.end() && std::holds_alternative<int64_t>(found->second) && has_body(node);
  if (has_captures) {
    const auto count = static_cast<size_t>(std::get<int64_t>(found->second));
    if (count > inputs)
      fail(ErrorKind::InvalidArgument, "node '", node.name, "' captures ", count, " values, but has ", inputs, " inputs");
    inputs -= count;
    for (size_t i = inputs; i < node.inputs.size(); ++i) captured.push_back(name_of(node.inputs[i]));
  }
  const auto [domain, op] = split(node.op);
  {
    pbf_writer inner(writer, graph_field::node);
    for (size_t i = 0; i < inputs; ++i) inner.add_string(node_field::input, name_of(node.inputs[i]));
    for (const ValueId id : node.outputs) inner.add_string(node_field::output, name_of(id));
    inner.add_string(node_field::name, node.name);
    inner.add_string(node_field::op_type, op);
    for (const auto& [key, value] : node.attributes) {
      if (has_captures && key == "captures") continue;
      write_attribute(inner, key, value, captured);
    }
    if (!domain.empty()) inner.add_string(node_field::domain, domain);
  }
  for (const ValueId id : node.outputs) {
    const bool is_output = std::ranges::find(graph.outputs(), id) != graph.outputs().end();
    if (id == no_value || is_output) continue;
    const auto& type = graph.value(id).type;
    const auto* const tensor = std::get_if<TensorType>(&type);
    if (tensor != nullptr && tensor->shape.has_rank()) write_value(writer, graph_field::value_info, name_of(id), type);
  }
}

void Writer::write_attribute(pbf_writer& writer, const std::string& name, const Attribute& attribute,
                             const std::vector<std::string>& captured) {
  pbf_writer inner(writer, node_field::attribute);
  inner.add_string(attribute_field::name, name);
  const auto kind = [&inner](AttributeKind value) { inner.add_enum(attribute_field::type, static_cast<int32_t>(value)); };
  if (const auto* integer = std::get_if<int64_t>(&attribute)) {
    kind(AttributeKind::Int);
    inner.add_int64(attribute_field::i, *integer);
  } else if (const auto* real = std::get_if<float>(&attribute)) {
    kind(AttributeKind::Float);
    inner.add_float(attribute_field::f, *real);
  } else if (const auto* text = std::get_if<std::string>(&attribute)) {
    kind(AttributeKind::String);
    inner.add_bytes(attribute_field::s, *text);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute)) {
    kind(AttributeKind::Ints);
    inner.add_packed_int64(attribute_field::ints, integers->begin(), integers->end());
  } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute)) {
    kind(AttributeKind::Floats);
    inner.add_packed_float(attribute_field::floats, reals->begin(), reals->end());
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute)) {
    kind(AttributeKind::Strings);
    for (const auto& item : *texts) inner.add_bytes(attribute_field::strings, item);
  } else if (const auto* tensor = std::get_if<Tensor>(&attribute)) {
    kind(AttributeKind::Tensor);
    count(tensor->bytes().size());
    write_tensor(pbf_writer(inner, attribute_field::t), *tensor, "");
  } else if (const auto* type = std::get_if<Type>(&attribute)) {
    kind(AttributeKind::Type);
    write_type(pbf_writer(inner, attribute_field::tp), *type);
  } else if (const auto* body = std::get_if<SubGraph>(&attribute)) {
    kind(AttributeKind::Graph);
    write_body(pbf_writer(inner, attribute_field::g), **body, captured);
  } else if (const auto* bodies = std::get_if<std::vector<SubGraph>>(&attribute)) {
    kind(AttributeKind::Graphs);
    for (const auto& item : *bodies) write_body(pbf_writer(inner, attribute_field::graphs), *item, captured);
  }
}

void Writer::write_body(pbf_writer writer, const Graph& body, const std::vector<std::string>& captured) {
  if (captured.size() > body.inputs().size()) fail(ErrorKind::InvalidArgument, "a body has fewer inputs than captured values");
  Names names(std::max<size_t>(body.values().size(), 1));
  for (size_t i = 0; i < captured.size(); ++i) {
    names[Graph::index(body.inputs()[body.inputs().size() - captured.size() + i])] = captured[i];
  }
  write_graph(std::move(writer), body, std::move(names), captured.size());
}

std::string Writer::model(const Graph& graph) {
  std::string bytes;
  pbf_writer writer(bytes);
  // Fields may come in any order, and only afterwards are the opsets known.
  write_graph(pbf_writer(writer, model_field::graph), graph, {}, 0);
  const int64_t opset = opsets_[""];
  writer.add_int64(model_field::ir_version, opset <= 23 ? 10 : opset == 24 ? 11 : 13);
  writer.add_string(model_field::producer_name, "unmoor");
  for (const auto& [domain, version] : opsets_) {
    pbf_writer import(writer, model_field::opset_import);
    import.add_string(opset_field::domain, domain);
    import.add_int64(opset_field::version, version);
  }
  return bytes;
}

}  // namespace

void write_onnx(const Graph& graph, const std::string& path) { write_file(path, Writer().model(graph)); }

}  // namespace unmoor
