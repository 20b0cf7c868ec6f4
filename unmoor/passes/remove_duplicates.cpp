#include <cstring>
#include <string>
#include <unordered_map>

#include "unmoor/base/error.h"
#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

constexpr size_t few_bytes = 256;  // Constants up to this are compared by content, others by where they lie.

// A text that is equal for equal constants, or empty if that cannot be told cheaply.
std::string constant_key(const Value& value) {
  if (!value.constant || !value.constant->is_tensor()) return "";
  const Tensor& tensor = value.constant->tensor();
  if (tensor.dtype() == DType::String || !tensor) return "";
  const auto bytes = tensor.bytes();
  std::string key = cat(tensor.type(), " ");
  if (bytes.size() <= few_bytes) {
    key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else {
    key += cat("at ", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(bytes.data())));
  }
  return key;
}

bool merge_constants(Rewriter& r) {
  bool changed = false;
  std::unordered_map<std::string, ValueId> seen;
  for (size_t i = 0; i < r.graph().values().size(); ++i) {
    const ValueId id{static_cast<uint32_t>(i)};
    if (r.users(id).empty()) continue;
    std::string key = constant_key(r.value(id));
    if (key.empty()) continue;
    const auto [at, is_new] = seen.emplace(std::move(key), id);
    if (is_new || r.is_output(id)) continue;
    r.replace_value(id, at->second);
    changed = true;
  }
  return changed;
}

template <class T>
void append_raw(std::string& key, const std::vector<T>& items) {
  key += cat(items.size(), " ");
  key.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
}

// A text that is equal for nodes that compute the same, or empty for those that must stay apart.
std::string node_key(const Node& node) {
  if (!is_deterministic(node)) return "";
  std::string key = cat(node.op, " ", node.outputs.size(), "(");
  append_raw(key, node.inputs);
  for (const auto& [name, attribute] : node.attributes) {
    key += cat(") ", name, ":", attribute.index(), "=");
    if (const auto* integer = std::get_if<int64_t>(&attribute)) {
      key += cat(*integer);
    } else if (const auto* text = std::get_if<std::string>(&attribute)) {
      key += cat(text->size(), " ", *text);
    } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute)) {
      append_raw(key, *integers);
    } else if (const auto* real = std::get_if<float>(&attribute)) {
      append_raw(key, std::vector<float>{*real});
    } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute)) {
      append_raw(key, *reals);
    } else {
      return "";
    }
  }
  return key;
}

}  // namespace

bool remove_duplicates(Rewriter& r) {
  bool changed = merge_constants(r);
  std::unordered_map<std::string, NodeId> seen;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) {
    std::string key = node_key(r.node(id));
    if (key.empty()) continue;
    const auto [at, is_new] = seen.emplace(std::move(key), id);
    if (is_new) continue;
    const Node& node = r.node(id);
    const Node& same = r.node(at->second);
    bool replaceable = true;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      replaceable &= node.outputs[i] == no_value || (same.outputs[i] != no_value && !r.is_output(node.outputs[i]));
    }
    if (!replaceable) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_value) r.replace_value(node.outputs[i], same.outputs[i]);
    }
    r.remove(id);
    changed = true;
  }
  return changed;
}

}  // namespace unmoor
