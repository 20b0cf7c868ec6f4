#include "unmoor/formats/onnx/import.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/constants.h"
#include "unmoor/formats/onnx/contrib.h"
#include "unmoor/formats/onnx/draft.h"
#include "unmoor/formats/onnx/limits.h"
#include "unmoor/formats/onnx/opset_rules.h"
#include "unmoor/formats/onnx/opsets.h"
#include "unmoor/formats/onnx/order.h"

namespace unmoor::onnx {
namespace {

constexpr size_t deepest_call = 64;

using Arguments = std::map<std::string_view, Attribute>;

// What a node's names mean: those of one graph, or of one call of a function.
struct Scope {
  GraphDraft& draft;
  const Opsets& opsets;
  const Arguments* arguments = nullptr;  // Attributes of the call; null outside of functions.
  std::string prefix = {};               // "call/" inside a call.
  Given values = {};
  std::unordered_map<std::string_view, const Type*> types = {};         // As declared.
  std::unordered_map<std::string_view, std::string_view> renamed = {};  // Outputs of the call, as the caller names them.
  std::unordered_set<std::string_view> used = {};
};

class Importer {
 public:
  explicit Importer(const ModelDef& model);
  Graph run() { return graph(model_.graph, model_.opsets, nullptr, {}, nullptr); }

 private:
  struct Captured {
    std::string_view name;
    ValueId outer;
  };

  // `outer` is what `captured` lies in.
  Graph graph(const GraphDef& def, const Opsets& opsets, const Arguments* arguments, const std::vector<Captured>& captured,
              GraphDraft* outer);
  void add_captured(const GraphDef& def, Scope& scope, const std::vector<Captured>& captured, GraphDraft& outer);
  void add_nodes(const std::vector<NodeDef>& nodes, Scope& scope);
  void add_node(const NodeDef& def, std::string name, Scope& scope);
  void add_plain_node(const NodeDef& def, const std::string& name, Scope& scope);
  void add_constant(const NodeDef& def, const Scope& scope, Given& values);
  void inline_call(const NodeDef& def, const FunctionDef& function, const std::string& name, Scope& scope);
  const FunctionDef* function_of(const NodeDef& def) const;
  Attributes attributes_of(const NodeDef& def, const Scope& scope);
  void add_bodies(const NodeDef& def, Node& node, Scope& scope);
  std::vector<ValueId> inputs_of(const NodeDef& def, const Scope& scope) const;

  const ModelDef& model_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionDef*> functions_;
  FreeNames free_names_;
  std::vector<const FunctionDef*> calls_;  // Being inlined, outermost first.
  Limits limits_;
};

Importer::Importer(const ModelDef& model) : model_(model) {
  for (const auto& function : model.functions) {
    if (!functions_.emplace(std::tuple(function.domain, function.name, function.overload), &function).second) {
      fail(ErrorKind::InvalidModel, "function '", function.name, "' is defined twice");
    }
  }
}

std::string_view file_name(const Scope& scope, std::string_view name, std::string& buffer) {
  if (const auto found = scope.renamed.find(name); found != scope.renamed.end()) return found->second;
  if (scope.prefix.empty()) return name;
  buffer = cat(scope.prefix, name);
  return buffer;
}

void define(Scope& scope, std::string_view name, ValueId value) {
  if (!scope.values.emplace(name, value).second) fail(ErrorKind::InvalidModel, "value '", name, "' is defined twice");
}

void read_types(Scope& scope, const std::vector<ValueDef>& values) {
  for (const auto& value : values) {
    if (value.type) scope.types.emplace(value.name, &*value.type);
  }
}

Graph Importer::graph(const GraphDef& def, const Opsets& opsets, const Arguments* arguments,
                      const std::vector<Captured>& captured, GraphDraft* outer) {
  GraphDraft draft;
  draft.graph.set_name(std::string(def.name));
  Scope scope{draft, opsets, arguments};
  std::unordered_set<std::string_view> inputs;
  for (const auto& input : def.inputs) inputs.insert(input.name);
  // A body takes values for all its inputs; at the top, a constant that is listed as an input stays a constant.
  for (const auto& constant : def.constants) {
    if (outer == nullptr || !inputs.contains(constant.name)) {
      define(scope, constant.name, draft.add_constant(constant.name, constant.tensor));
    }
  }
  for (const auto& input : def.inputs) {
    if (outer == nullptr && scope.values.contains(input.name)) continue;
    if (input.name.empty()) fail(ErrorKind::InvalidModel, "an input of graph '", def.name, "' has no name");
    if (outer == nullptr && !input.type) fail(ErrorKind::InvalidModel, "input '", input.name, "' has no type");
    define(scope, input.name, draft.add_input(input.name, input.type));
  }
  if (outer != nullptr) {
    limits_.open_body(captured.size());
    if (!calls_.empty()) limits_.add_nodes(captured.size() + def.inputs.size() + def.constants.size());
    if (!calls_.empty()) limits_.add_copies(def.outputs.size() + def.values.size());
    add_captured(def, scope, captured, *outer);
  }
  read_types(scope, def.values);
  read_types(scope, def.outputs);
  for (const auto& output : def.outputs) {
    if (!scope.used.insert(output.name).second && outer == nullptr)
      fail(ErrorKind::InvalidModel, "output '", output.name, "' is listed twice");
  }
  add_nodes(def.nodes, scope);
  for (const auto& output : def.outputs) {
    const auto found = scope.values.find(output.name);
    if (found == scope.values.end()) {
      fail(ErrorKind::InvalidModel, "output '", output.name, "' of graph '", def.name, "' is made by no node");
    }
    draft.graph.mark_output(found->second, std::string(output.name));
  }
  if (outer != nullptr) limits_.close_body();
  return std::move(draft.graph);
}

void Importer::add_captured(const GraphDef& def, Scope& scope, const std::vector<Captured>& captured, GraphDraft& outer) {
  const auto opset = scope.opsets.find("ai.onnx");
  const bool is_old = opset != scope.opsets.end() && opset->second < 13;  // Then rewriting may ask for types.
  const auto& free = free_names_.of(def);
  const std::unordered_set<std::string_view> needed(free.begin(), free.end());
  for (const auto& [name, id] : captured) {
    // Of two branches, one may capture what the other does not, or defines: then it is an input without a use.
    const bool is_needed = needed.contains(name);
    const auto& value = outer.graph.value(id);
    if (value.constant) {
      if (is_needed) define(scope, name, scope.draft.add_constant(name, *value.constant));
      continue;
    }
    const ValueId inner = scope.draft.add_input(name, is_old ? outer.type(id) : outer.declared(id));
    if (is_needed) define(scope, name, inner);
  }
}

void Importer::add_nodes(const std::vector<NodeDef>& nodes, Scope& scope) {
  std::unordered_map<std::string_view, size_t> times;
  for (const auto& node : nodes) {
    ++times[node.name];
    scope.used.insert(node.inputs.begin(), node.inputs.end());
    for (const auto name : free_names_.of(node)) scope.used.insert(name);
  }
  for (const size_t i : sorted_order(nodes, scope.values, free_names_)) {
    const NodeDef& def = nodes[i];
    const bool has_name = !def.name.empty() && times[def.name] == 1;
    const auto output = std::ranges::find_if(def.outputs, [](std::string_view name) { return !name.empty(); });
    const std::string name = has_name ? std::string(def.name) : cat(def.op, ':', output == def.outputs.end() ? "" : *output);
    try {
      add_node(def, scope.draft.new_node_name(cat(scope.prefix, name)), scope);
    } catch (Error& error) {
      error.note(cat("in ", description(def)));
      throw;
    }
  }
}

void Importer::add_node(const NodeDef& def, std::string name, Scope& scope) {
  if (!calls_.empty()) {
    limits_.add_nodes(std::max<size_t>(def.outputs.size(), 1));
    limits_.add_copies(def.inputs.size() + (def.outputs.size() + 2) * name.size() / 8);
  }
  if (const FunctionDef* const function = function_of(def)) {
    inline_call(def, *function, name, scope);
  } else if (def.domain.empty() && def.op == "Constant") {
    add_constant(def, scope, scope.values);
  } else {
    add_plain_node(def, name, scope);
  }
}

const FunctionDef* Importer::function_of(const NodeDef& def) const {
  const auto found = functions_.find({def.domain, def.op, def.overload});
  return found == functions_.end() ? nullptr : found->second;
}

Attributes Importer::attributes_of(const NodeDef& def, const Scope& scope) {
  Attributes result;
  for (const auto& attribute : def.attributes) {
    const Attribute* value = attribute.value ? &*attribute.value : nullptr;
    if (!attribute.reference.empty()) {
      if (scope.arguments == nullptr) {
        fail(ErrorKind::InvalidModel, "attribute '", attribute.name, "' refers to one of a function, but is in none");
      }
      const auto found = scope.arguments->find(attribute.reference);
      if (found == scope.arguments->end()) continue;
      value = &found->second;
    }
    if (value == nullptr) continue;
    if (!calls_.empty()) limits_.add_copy(*value);
    if (!result.emplace(attribute.name, *value).second) {
      fail(ErrorKind::InvalidModel, "attribute '", attribute.name, "' is given twice");
    }
  }
  return result;
}

void Importer::add_constant(const NodeDef& def, const Scope& scope, Given& values) {
  if (def.outputs.size() != 1 || def.outputs[0].empty()) fail(ErrorKind::InvalidModel, "a Constant needs one output");
  std::string buffer;
  const auto name = file_name(scope, def.outputs[0], buffer);
  values.emplace(def.outputs[0], scope.draft.add_constant(name, constant_value(attributes_of(def, scope))));
}

std::vector<ValueId> Importer::inputs_of(const NodeDef& def, const Scope& scope) const {
  std::vector<ValueId> inputs;
  for (const auto name : def.inputs) {
    const auto found = scope.values.find(name);
    inputs.push_back(name.empty() || found == scope.values.end() ? no_value : found->second);
  }
  return inputs;
}

void Importer::add_plain_node(const NodeDef& def, const std::string& name, Scope& scope) {
  const auto version = scope.opsets.find(def.domain.empty() ? std::string_view("ai.onnx") : def.domain);
  const int64_t opset = version == scope.opsets.end() ? 0 : version->second;
  Node node;
  node.name = name;
  node.op = full_op(def);
  node.inputs = inputs_of(def, scope);
  while (!node.inputs.empty() && node.inputs.back() == no_value) node.inputs.pop_back();
  node.attributes = attributes_of(def, scope);
  node.origin.name = name;
  node.origin.op = node.op;
  node.origin.opset = opset;
  add_bodies(def, node, scope);

  NodeDraft draft(scope.draft, std::move(node), opset);
  for (const auto output : def.outputs) draft.uses.push_back(!output.empty() && scope.used.contains(output));
  if (def.domain.empty()) modernize(draft);
  if (def.domain == "com.microsoft") modernize_contrib(draft);
  if (def.domain == "ai.onnx.ml") modernize_ml(draft);
  if (def.domain == "com.microsoft") split_fused(draft);
  std::string buffer;
  for (size_t i = 0; i < def.outputs.size(); ++i) {
    const auto output = def.outputs[i];
    if (output.empty() || i >= draft.uses.size()) {
      draft.node.outputs.push_back(no_value);
      continue;
    }
    const auto type = scope.types.find(output);
    draft.node.outputs.push_back(
        scope.draft.add_value(file_name(scope, output, buffer), type == scope.types.end() ? nullptr : type->second, true));
    scope.values.emplace(output, draft.node.outputs.back());
  }
  while (!draft.node.outputs.empty() && draft.node.outputs.back() == no_value) draft.node.outputs.pop_back();
  scope.draft.graph.add_node(std::move(draft.node));
}

void Importer::add_bodies(const NodeDef& def, Node& node, Scope& scope) {
  if (std::ranges::all_of(def.attributes, [](const auto& attribute) { return attribute.graphs.empty(); })) return;
  // Inputs before the captured ones may be absent at the end, and must stay in their places.
  node.inputs.resize(def.inputs.size(), no_value);
  std::vector<Captured> captured;
  int64_t count = 0;
  for (const auto name : free_names_.of(def)) {
    const auto found = scope.values.find(name);
    if (found == scope.values.end() || found->second == no_value) {
      fail(ErrorKind::InvalidModel, "its body uses value '", name, "', which is absent");
    }
    captured.push_back({name, found->second});
    if (scope.draft.graph.value(found->second).constant) continue;
    ++count;
    node.inputs.push_back(found->second);
  }
  for (const auto& attribute : def.attributes) {
    if (attribute.graphs.empty()) continue;
    std::vector<SubGraph> graphs;
    for (const auto& body : attribute.graphs) {
      graphs.push_back(std::make_shared<const Graph>(graph(body, scope.opsets, scope.arguments, captured, &scope.draft)));
    }
    Attribute value = attribute.is_list ? Attribute(std::move(graphs)) : Attribute(std::move(graphs[0]));
    if (!node.attributes.emplace(attribute.name, std::move(value)).second) {
      fail(ErrorKind::InvalidModel, "attribute '", attribute.name, "' is given twice");
    }
  }
  node.attributes["captures"] = count;
}

void Importer::inline_call(const NodeDef& def, const FunctionDef& function, const std::string& name, Scope& scope) {
  if (std::ranges::find(calls_, &function) != calls_.end()) {
    fail(ErrorKind::InvalidModel, "function '", function.name, "' calls itself");
  }
  if (calls_.size() >= deepest_call) fail(ErrorKind::InvalidModel, "functions are nested more than ", deepest_call, " deep");
  if (def.inputs.size() > function.inputs.size() || def.outputs.size() > function.outputs.size()) {
    fail(ErrorKind::InvalidModel, "function '", function.name, "' has ", function.inputs.size(), " inputs and ",
         function.outputs.size(), " outputs, not ", def.inputs.size(), " and ", def.outputs.size());
  }
  limits_.add_copies(function.inputs.size() + function.outputs.size() + function.values.size() + function.opsets.size());
  Arguments arguments;
  for (const auto& attribute : function.defaults) {
    if (!attribute.value) continue;
    limits_.add_copy(*attribute.value);
    arguments.insert_or_assign(attribute.name, *attribute.value);
  }
  const Attributes given = attributes_of(def, scope);
  for (const auto& attribute : def.attributes) {
    if (!attribute.graphs.empty()) fail(ErrorKind::Unsupported, "graphs as attributes of functions are not supported");
    const auto value = given.find(attribute.name);
    if (value != given.end()) arguments.insert_or_assign(attribute.name, value->second);
  }
  Opsets opsets = scope.opsets;
  for (const auto& [domain, version] : function.opsets) opsets[domain] = version;

  Scope inner{scope.draft, opsets, &arguments, cat(name, '/')};
  const auto inputs = inputs_of(def, scope);
  for (size_t i = 0; i < function.inputs.size(); ++i) define(inner, function.inputs[i], i < inputs.size() ? inputs[i] : no_value);
  std::vector<std::string> names(def.outputs.size());
  for (size_t i = 0; i < def.outputs.size(); ++i) {
    if (!def.outputs[i].empty()) inner.renamed.emplace(function.outputs[i], file_name(scope, def.outputs[i], names[i]));
    const auto type = scope.types.find(def.outputs[i]);
    if (type != scope.types.end()) inner.types.emplace(function.outputs[i], type->second);
  }
  read_types(inner, function.values);
  inner.used.insert(function.outputs.begin(), function.outputs.end());
  calls_.push_back(&function);
  add_nodes(function.nodes, inner);
  calls_.pop_back();

  std::unordered_set<std::string_view> passed;
  for (size_t i = 0; i < def.outputs.size(); ++i) {
    if (def.outputs[i].empty()) continue;
    const auto found = inner.values.find(function.outputs[i]);
    if (found == inner.values.end() || found->second == no_value) {
      fail(ErrorKind::InvalidModel, "output '", function.outputs[i], "' of function '", function.name, "' is made by no node");
    }
    const bool is_input = std::ranges::find(function.inputs, function.outputs[i]) != function.inputs.end();
    if (!is_input && passed.insert(function.outputs[i]).second) {
      scope.values.emplace(def.outputs[i], found->second);
      continue;
    }
    // The caller's name stands for a value that has another: an Identity keeps both.
    Node identity;
    identity.name = scope.draft.new_node_name(cat(name, "/Identity"));
    identity.op = "Identity";
    identity.inputs = {found->second};
    identity.origin.name = name;
    identity.origin.op = full_op(def);
    identity.outputs = {scope.draft.add_value(file_name(scope, def.outputs[i], names[i]), nullptr, true)};
    scope.values.emplace(def.outputs[i], identity.outputs[0]);
    scope.draft.graph.add_node(std::move(identity));
  }
}

void check_opsets(const ModelDef& model) {
  const auto check_one = [](const Opsets& opsets, const std::string& domain, int64_t newest) {
    const auto found = opsets.find(domain);
    if (found == opsets.end()) return;
    if (found->second > newest) {
      fail(ErrorKind::Unsupported, "the model uses opset ", found->second, " of ", domain, "; the newest one known here is ", newest);
    }
    if (found->second < 1) fail(ErrorKind::InvalidModel, "opset ", found->second, " of ", domain, " does not exist");
  };
  const auto check = [&](const Opsets& opsets) {
    check_one(opsets, "ai.onnx", newest_opset);
    check_one(opsets, "ai.onnx.ml", newest_ml_opset);
  };
  check(model.opsets);
  for (const auto& function : model.functions) check(function.opsets);
}

}  // namespace

Graph import_graph(const ModelDef& model) {
  check_opsets(model);
  return Importer(model).run();
}

}  // namespace unmoor::onnx
