#include "unmoor/workbench/scan_nodes.h"

#include <fmt/format.h>

#include <algorithm>

namespace unmoor {
namespace {

constexpr double heavy_share = 0.01;  // Of the floating-point operations of the model.

std::string label(const Node& node) { return node.origin.name.empty() ? node.name : node.origin.name; }

template <class What>
void each_body(const Node& node, const std::string& prefix, const What& what) {
  for (const auto& [key, attribute] : node.attributes) {
    const auto* body = std::get_if<SubGraph>(&attribute);
    if (body != nullptr && *body != nullptr) what(**body, fmt::format("{}{}/{}/", prefix, label(node), key), key);
  }
}

// Floating-point operations of every node of a graph with inferred types, as far as these are known; bodies count once.
void add_flops(const Graph& typed, const std::string& prefix, std::map<std::string, double, std::less<>>& flops) {
  for (const Node& node : typed.nodes()) {
    each_body(node, prefix,
              [&](const Graph& body, const std::string& inside, const std::string&) { add_flops(body, inside, flops); });
    const OpCall call = call_for(typed, node);
    const auto known = [](const std::optional<Type>& type) { return !type || is_known(*type); };
    if (!std::ranges::all_of(call.inputs, known) ||
        !std::ranges::all_of(call.outputs, [](const Type& type) { return is_known(type); }))
      continue;
    flops[prefix + label(node)] += cost_of(call).flop;
  }
}

// The body of the same node in the graph with types; null if it is gone.
const Graph* typed_body(const Graph* typed, const std::string& node, const std::string& key) {
  if (typed == nullptr) return nullptr;
  for (const Node& each : typed->nodes()) {
    if (label(each) != node) continue;
    const auto found = each.attributes.find(key);
    const auto* body = found == each.attributes.end() ? nullptr : std::get_if<SubGraph>(&found->second);
    if (body != nullptr) return body->get();
  }
  return nullptr;
}

std::string dtype_text(const Type& type) {
  if (const auto* tensor = std::get_if<TensorType>(&type)) return std::string(name(tensor->dtype));
  if (const auto* sequence = std::get_if<SequenceType>(&type))
    return sequence->element == nullptr ? "" : fmt::format("seq({})", dtype_text(*sequence->element));
  if (const auto* optional = std::get_if<OptionalType>(&type))
    return optional->element == nullptr ? "" : fmt::format("optional({})", dtype_text(*optional->element));
  const auto& map = std::get<MapType>(type);
  return map.value == nullptr ? "" : fmt::format("map({},{})", name(map.key), dtype_text(*map.value));
}

AskedValue asked(const Value& value) {
  AskedValue result;
  result.dtype = dtype_text(value.type);
  result.constant = value.constant.has_value();
  const auto* tensor = std::get_if<TensorType>(&value.type);
  if (tensor != nullptr && tensor->shape.has_rank()) result.rank = static_cast<int>(tensor->shape.rank());
  result.fixed_shape = tensor == nullptr || tensor->is_known();
  return result;
}

bool is_small_integers(const Value& value) {
  constexpr int64_t few = 64;
  const auto* tensor = std::get_if<TensorType>(&value.type);
  if (tensor == nullptr || !(is_integer(tensor->dtype) || tensor->dtype == DType::Bool) || !tensor->is_known()) return false;
  return tensor->shape.rank() <= 1 && tensor->shape.elements() <= few;
}

template <class At>
CatalogQuestion made_question(const Node& node, const std::string& op, int64_t opset, const At& at) {
  CatalogQuestion question{op, opset, {}, {}, {}};
  const auto captures = node.attributes.find("captures");
  const auto* count = captures == node.attributes.end() ? nullptr : std::get_if<int64_t>(&captures->second);
  const size_t inputs = node.inputs.size() -
                        (count == nullptr ? 0 : std::min(node.inputs.size(), static_cast<size_t>(std::max<int64_t>(*count, 0))));
  const auto value = [&](ValueId id) { return id == no_value ? AskedValue{.present = false} : at(id); };
  for (size_t i = 0; i < inputs; ++i) question.inputs.push_back(value(node.inputs[i]));
  for (const ValueId id : node.outputs) question.outputs.push_back(value(id));
  for (const auto& [key, attribute] : node.attributes) {
    const bool is_data = std::holds_alternative<Tensor>(attribute) || std::holds_alternative<SubGraph>(attribute) ||
                         std::holds_alternative<std::vector<SubGraph>>(attribute) || std::holds_alternative<Type>(attribute);
    if (!is_data && key != "captures") question.attributes[key] = to_text(attribute);
  }
  return question;
}

}  // namespace

FileNodes::FileNodes(const Graph& file, const Graph& typed) {
  add_flops(typed, "", flops_);
  for (const auto& [name, flop] : flops_) total_ += flop;
  list(file, &typed, "", false, false);
}

bool FileNodes::any_heavy() const { return std::ranges::any_of(nodes_, &FileNode::heavy); }

// A matrix product, convolution, attention or recurrent network, whatever takes a share of the arithmetic, a body that holds one
// of these, or what nobody knows.
bool FileNodes::is_heavy(const Node& node, const std::string& prefix) const {
  const Op* const op = all_ops().find(node.op);
  if (op == nullptr || op->category == Category::Matrix || op->category == Category::Convolution ||
      op->category == Category::Attention || op->category == Category::Recurrent || op->category == Category::Trees) {
    return true;
  }
  const auto flop = flops_.find(prefix + label(node));
  if (flop != flops_.end() && total_ > 0 && flop->second >= heavy_share * total_) return true;
  bool inside = false;
  each_body(node, prefix, [&](const Graph& body, const std::string& place, const std::string&) {
    inside = inside || std::ranges::any_of(body.nodes(), [&](const Node& each) { return is_heavy(each, place); });
  });
  return inside;
}

// Lists a graph; `after`, `before`: whether something heavy lies around it.
void FileNodes::list(const Graph& graph, const Graph* typed, const std::string& prefix, bool after, bool before) {
  if (typed != nullptr && !values_.contains(typed)) {
    Names& names = values_[typed];
    for (const Value& value : typed->values()) {
      if (!value.origin.name.empty()) names.emplace(value.origin.name, &value);
    }
  }
  const size_t first = nodes_.size();
  for (const Node& node : graph.nodes()) {
    const Op* const op = all_ops().find(node.op);
    FileNode entry;
    entry.name = prefix + label(node);
    entry.op = node.origin.op.empty() ? node.op : node.origin.op;
    entry.category = op == nullptr ? "other" : std::string(name(op->category));
    entry.heavy = is_heavy(node, prefix);
    entry.shape_only = node.op == "Shape" || node.op == "Size";
    const auto flop = flops_.find(entry.name);
    entry.flop = flop == flops_.end() ? 0 : flop->second;
    entry.node = &node;
    entry.graph = &graph;
    entry.typed = typed;
    entry.small_integers = !node.outputs.empty() && std::ranges::all_of(node.outputs, [&](ValueId id) {
      return id == no_value || is_small_integers(typed_value(entry, id));
    });
    nodes_.push_back(std::move(entry));
  }
  mark_paths(graph, first, after, before);
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes()[i];
    const FileNode outer = nodes_[first + i];
    const bool again = node.op != "If" && outer.heavy;  // The next round follows.
    each_body(node, prefix, [&](const Graph& body, const std::string& place, const std::string& key) {
      list(body, typed_body(typed, label(node), key), place, outer.after_heavy || again, outer.before_heavy || again);
    });
  }
  // Reading a file may put small nodes before one whose old form it renews; they carry its name, and the last is the node itself.
  size_t kept = first;
  for (size_t i = first; i < nodes_.size(); ++i) {
    const bool is_part = i + 1 < first + count && nodes_[i].name == nodes_[i + 1].name;
    if (is_part) continue;
    if (kept != i) nodes_[kept] = std::move(nodes_[i]);
    ++kept;
  }
  nodes_.resize(kept);
}

void FileNodes::mark_paths(const Graph& graph, size_t first, bool after_outside, bool before_outside) {
  std::vector<bool> after(graph.values().size());
  std::vector<bool> before(graph.values().size());
  const auto any = [](const std::vector<ValueId>& ids, const std::vector<bool>& marks) {
    return std::ranges::any_of(ids, [&](ValueId id) { return id != no_value && marks[Graph::index(id)]; });
  };
  const auto set = [](const std::vector<ValueId>& ids, std::vector<bool>& marks) {
    for (const ValueId id : ids) {
      if (id != no_value) marks[Graph::index(id)] = true;
    }
  };
  if (after_outside) set(graph.inputs(), after);
  if (before_outside) set(graph.outputs(), before);
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    FileNode& node = nodes_[first + i];
    node.after_heavy = any(graph.nodes()[i].inputs, after);
    if ((node.after_heavy || node.heavy) && !node.shape_only) set(graph.nodes()[i].outputs, after);
  }
  for (size_t i = count; i-- > 0;) {
    FileNode& node = nodes_[first + i];
    node.before_heavy = any(graph.nodes()[i].outputs, before);
    if ((node.before_heavy || node.heavy) && !node.shape_only) set(graph.nodes()[i].inputs, before);
  }
}

const Value& FileNodes::typed_value(const FileNode& node, ValueId id) const {
  const Value& own = node.graph->value(id);
  const auto names = values_.find(node.typed);
  if (names == values_.end() || own.origin.name.empty()) return own;
  const auto found = names->second.find(own.origin.name);
  return found == names->second.end() ? own : *found->second;
}

CatalogQuestion FileNodes::question(const FileNode& node) const {
  return made_question(*node.node, node.op, node.node->origin.opset, [&](ValueId id) {
    const Value& value = typed_value(node, id);
    AskedValue result = asked(value);
    const bool is_own = &value == &node.graph->value(id);
    if (is_own && result.rank < 0) result.dtype.clear();          // Neither inferred nor declared.
    // Inference computed it and what uses it ahead: a value with a name that is gone there.
    const bool was_inferred = node.typed != nullptr && node.typed != node.graph;
    if (is_own && was_inferred && !value.origin.name.empty()) result.constant = true;
    return result;
  });
}

CatalogQuestion question_of(const Graph& graph, const Node& node, const std::string& op, int64_t opset) {
  return made_question(node, op, opset, [&](ValueId id) { return asked(graph.value(id)); });
}

std::string signature(const CatalogQuestion& question) {
  std::string key = fmt::format("{}|{}", question.op, question.opset);
  const auto add = [&key](const std::vector<AskedValue>& values) {
    key += '|';
    for (const AskedValue& value : values) {
      key += fmt::format("{}{}{}{}{},", value.dtype, value.rank, value.present ? "" : "-", value.constant ? "c" : "",
                         value.fixed_shape ? "" : "?");
    }
  };
  add(question.inputs);
  add(question.outputs);
  for (const auto& [name, text] : question.attributes) key += fmt::format("|{}={}", name, text);
  return key;
}

std::string priority_of(const FileNode& node, std::string_view state, bool any_heavy, bool has_form) {
  if (state == "expanded" || (has_form && (state == "fallback" || state == "unsupported"))) return "P2";
  if (state != "fallback" && state != "unsupported") return "";
  return !any_heavy || node.heavy || (node.after_heavy && node.before_heavy) ? "P0" : "P1";
}

}  // namespace unmoor
