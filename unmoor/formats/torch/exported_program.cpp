#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/formats/torch/readers.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr uint64_t most_json = uint64_t{1} << 30;  // Bytes of one JSON text.
constexpr int64_t schema_major = 8;                // torch/_export/serde/schema.py of torch 2.7 to 2.13.

// Element types by PyTorch's number of them in that schema.
std::string dtype_of(const json& number) {
  static const std::map<int64_t, std::string> names{{1, "uint8"},          {2, "int8"},            {3, "int16"},      {4, "int32"},
                                                    {5, "int64"},          {6, "float16"},         {7, "float32"},    {8, "float64"},
                                                    {9, "complex32"},      {10, "complex64"},      {11, "complex128"}, {12, "bool"},
                                                    {13, "bfloat16"},      {28, "uint16"},         {29, "float8e4m3fn"}, {30, "float8e5m2"},
                                                    {31, "float8e4m3fnuz"}, {32, "float8e5m2fnuz"}, {33, "float8e8m0"}, {34, "uint32"},
                                                    {35, "uint64"}};
  const auto found = number.is_number_integer() ? names.find(number.get<int64_t>()) : names.end();
  return found == names.end() ? "" : found->second;
}

json read_entry(ZipReader& archive, size_t place) {
  const auto& entry = archive.entries()[place];
  const auto bytes = archive.read(place, most_json);
  return read_torch_json({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, entry.name);
}

// What stands under a key; null if the value is no object or lacks it.
const json& at(const json& value, const char* key) {
  static const json nothing;
  if (!value.is_object()) return nothing;
  const auto found = value.find(key);
  return found == value.end() ? nothing : *found;
}

std::string text_at(const json& value, const char* key) {
  const json& found = at(value, key);
  return found.is_string() ? found.get<std::string>() : std::string();
}

// "s77" of a size that is one symbol, "s77, s5" of an expression of several; empty of a number. PyTorch writes an expression as sympy
// spells it out: Mul(Integer(2), Symbol('s77', positive=True)).
std::string symbol_of(const json& size) {
  const std::string text = text_at(at(size, "as_expr"), "expr_str");
  constexpr std::string_view mark = "Symbol('";
  std::string names;
  for (size_t start = text.find(mark); start != std::string::npos; start = text.find(mark, start)) {
    start += mark.size();
    const std::string name = text.substr(start, text.find('\'', start) - start);
    if (cat(", ", names, ",").find(cat(" ", name, ",")) == std::string::npos) names += cat(names.empty() ? "" : ", ", name);
  }
  return names.empty() ? text : names;
}

// A size that only the data tells is called u0, u1… by PyTorch.
bool is_of_data(const std::string& symbol) {
  for (size_t i = 0; i + 1 < symbol.size(); ++i) {
    const bool starts_word = i == 0 || (std::isalnum(static_cast<unsigned char>(symbol[i - 1])) == 0 && symbol[i - 1] != '_');
    if (symbol[i] == 'u' && starts_word && std::isdigit(static_cast<unsigned char>(symbol[i + 1])) != 0) return true;
  }
  return false;
}

class Program {
 public:
  Program(ZipReader& archive, std::string root, TorchFile& file) : archive_(archive), root_(std::move(root)), file_(file) {}

  void read(const json& content) {
    const json& module = at(content, "graph_module");
    ranges_ = at(content, "range_constraints");
    const json& graph = at(module, "graph");
    if (!at(graph, "nodes").is_array()) fail(ErrorKind::InvalidModel, "the program has no graph of nodes");
    read_graph(graph, "");
    for (const json& spec : at(at(module, "signature"), "input_specs")) {
      for (const char* kind : {"parameter", "buffer", "tensor_constant"}) {
        const auto value = file_.values.find(text_at(at(at(spec, kind), "arg"), "name"));
        if (value != file_.values.end()) value->second.constant = true;
      }
      const std::string user = text_at(at(at(at(spec, "user_input"), "arg"), "as_tensor"), "name");
      if (!user.empty()) add_dynamic(user, at(at(graph, "tensor_values"), user.c_str()));
    }
  }

  // The tensors that a list of weights or constants names, each in an entry of its own.
  void read_weights(const std::string& folder) {
    for (size_t i = 0; i < archive_.entries().size(); ++i) {
      const std::string& name = archive_.entries()[i].name;
      if (!name.starts_with(cat(root_, folder)) || !name.ends_with("_config.json")) continue;
      const json config = read_entry(archive_, i);
      for (const auto& [tensor, entry] : at(config, "config").items()) add_tensor(tensor, entry, cat(root_, folder));
    }
  }

 private:
  void add_tensor(const std::string& name, const json& entry, const std::string& folder) {
    const std::string path = cat(folder, text_at(entry, "path_name"));
    const size_t* const place = archive_.find(path);
    if (place == nullptr) fail(ErrorKind::InvalidModel, "the file has no entry '", path, "', in which tensor '", name, "' lies");
    const json& meta = at(entry, "tensor_meta");
    if (meta.is_null()) return;  // A constant that is no tensor.
    TorchTensor tensor{name, dtype_of(at(meta, "dtype")), {}, path, 0};
    double elements = 1;
    for (const json& size : at(meta, "sizes")) {
      const json& number = at(size, "as_int");
      if (!number.is_number_unsigned()) fail(ErrorKind::InvalidModel, "tensor '", name, "' has a size that is no number");
      tensor.shape.push_back(number.get<int64_t>());
      elements *= static_cast<double>(tensor.shape.back());
    }
    tensor.bytes = elements * static_cast<double>(torch_dtype(tensor.dtype).bits) / 8;
    const auto held = static_cast<double>(archive_.entries()[*place].bytes);
    if (tensor.bytes > held && at(entry, "use_pickle") != json(true) && at(meta, "strides").size() == tensor.shape.size() && !is_expanded(meta))
      fail(ErrorKind::InvalidModel, "tensor '", name, "' needs ", tensor.bytes, " bytes; its entry has ", held);
    if (storages_.insert(path).second) file_.stored_bytes += held;
    file_.tensors.push_back(std::move(tensor));
  }

  // Whether elements share bytes, by a stride of zero.
  static bool is_expanded(const json& meta) {
    return std::ranges::any_of(at(meta, "strides"), [](const json& stride) { return at(stride, "as_int") == json(0); });
  }

  void read_graph(const json& graph, const std::string& prefix) {
    for (const auto& [name, meta] : at(graph, "tensor_values").items()) {
      TorchValue value{dtype_of(at(meta, "dtype")), at(meta, "sizes").is_array() ? static_cast<int>(at(meta, "sizes").size()) : -1, true, false, false};
      for (const json& size : at(meta, "sizes")) {
        value.fixed = value.fixed && !at(size, "as_int").is_null();
        value.of_data = value.of_data || is_of_data(symbol_of(size));
      }
      file_.values.emplace(prefix + name, std::move(value));
    }
    for (const json& node : at(graph, "nodes")) read_node(node, prefix);
  }

  // Names of the tensors in an argument or result, and the graphs in it.
  struct Found {
    std::vector<std::string> tensors;
    std::vector<std::pair<std::string, const json*>> graphs;
  };
  static void find(const json& argument, const std::string& prefix, Found& found) {
    for (const char* key : {"as_tensor", "as_optional_tensor"}) {
      const json& inside = at(argument, key);
      const std::string name = text_at(inside, "name").empty() ? text_at(at(inside, "as_tensor"), "name") : text_at(inside, "name");
      if (!name.empty()) found.tensors.push_back(prefix + name);
    }
    for (const char* key : {"as_tensors", "as_optional_tensors", "as_nested_tensors"}) {
      for (const json& each : at(argument, key)) {
        const std::string name = text_at(each, "name").empty() ? text_at(at(each, "as_tensor"), "name") : text_at(each, "name");
        if (!name.empty()) found.tensors.push_back(prefix + name);
        for (const json& inner : each.is_array() ? each : json::array()) {
          if (const std::string deep = text_at(inner, "name"); !deep.empty()) found.tensors.push_back(prefix + deep);
        }
      }
    }
    if (const json& graph = at(argument, "as_graph"); graph.is_object()) found.graphs.emplace_back(text_at(graph, "name"), &at(graph, "graph"));
  }

  void read_node(const json& node, const std::string& prefix) {
    Found inputs, outputs;
    for (const json& input : at(node, "inputs")) find(at(input, "arg"), prefix, inputs);
    for (const json& output : at(node, "outputs")) find(output, prefix, outputs);
    const std::string op = op_of(text_at(node, "target"));
    if (op.empty() || is_of_host(op, inputs.tensors.empty() && outputs.tensors.empty() && inputs.graphs.empty())) {
      ++file_.host_calls;
      return;
    }
    std::string name = text_at(node, "name");
    if (name.empty() && !outputs.tensors.empty()) name = outputs.tensors[0].substr(prefix.size());
    if (name.empty()) name = cat("node ", file_.calls.size());
    const std::string path = prefix + name;
    file_.calls.push_back({path, op, "", inputs.tensors, outputs.tensors, inputs.tensors.size()});
    for (const auto& [graph, content] : inputs.graphs) read_graph(*content, cat(path, "/", graph, "/"));
  }

  // "torch.ops.aten.add_.Tensor" as "aten::add.Tensor": in place or not, it is the same kernel. Empty of what is no operator.
  static std::string op_of(std::string_view target) {
    constexpr std::string_view start = "torch.ops.";
    if (!target.starts_with(start)) return "";
    target.remove_prefix(start.size());
    const size_t first = target.find('.');
    if (first == std::string_view::npos) return "";
    const size_t second = target.find('.', first + 1);
    std::string_view name = target.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
    if (name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
    const std::string_view overload = second == std::string_view::npos ? "default" : target.substr(second + 1);
    return overload == "default" ? cat(target.substr(0, first), "::", name) : cat(target.substr(0, first), "::", name, ".", overload);
  }

  // Sizes, numbers and checks of them: Python and the host do that beside the work.
  static bool is_of_host(const std::string& op, bool without_tensors) {
    static constexpr std::array<std::string_view, 6> checks{"aten::_assert_scalar", "aten::_assert_tensor_metadata", "aten::_assert_async",
                                                            "aten::sym_constrain_range", "aten::sym_constrain_range_for_size", "aten::_assert_async.msg"};
    return without_tensors || op.starts_with("aten::sym_") || std::ranges::find(checks, op) != checks.end();
  }

  void add_dynamic(const std::string& name, const json& meta) {
    size_t axis = 0;
    for (const json& size : at(meta, "sizes")) {
      const std::string symbol = symbol_of(size);
      if (!symbol.empty()) {
        const json& range = at(ranges_, symbol.c_str());
        const auto number = [](const json& value) { return value.is_number_integer() ? std::to_string(value.get<int64_t>()) : std::string("any"); };
        file_.dynamic_inputs.push_back(
            range.is_null() ? cat(name, "[", axis, "] ", symbol) : cat(name, "[", axis, "] ", symbol, ", ", number(at(range, "min_val")), " to ", number(at(range, "max_val"))));
      }
      ++axis;
    }
  }

  ZipReader& archive_;
  std::string root_;
  TorchFile& file_;
  json ranges_;
  std::set<std::string> storages_;
};

}  // namespace

TorchFile read_exported_program(ZipReader& archive, const std::string& root) {
  std::vector<size_t> models;
  for (size_t i = 0; i < archive.entries().size(); ++i) {
    const std::string& name = archive.entries()[i].name;
    if (name.starts_with(cat(root, "models/")) && name.ends_with(".json")) models.push_back(i);
  }
  if (models.size() != 1) fail(ErrorKind::Unsupported, "the file holds ", models.size(), " programs; one is read: save each in a file of its own");
  const json content = read_entry(archive, models[0]);
  const json& major = at(at(content, "schema_version"), "major");
  if (major != json(schema_major))
    fail(ErrorKind::Unsupported, "the program has schema ", major.dump(), "; ", schema_major, " is read, which torch 2.7 to 2.13 write");
  TorchFile file;
  file.kind = TorchFile::Kind::Program;
  const std::string torch = text_at(content, "torch_version");
  file.described = cat("program of torch.export", torch.empty() ? "" : ", written by torch ", torch.substr(0, torch.find('+')));
  Program program(archive, root, file);
  program.read(content);
  program.read_weights("data/weights/");
  program.read_weights("data/constants/");
  return file;
}

}  // namespace unmoor
