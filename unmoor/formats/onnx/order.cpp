#include "unmoor/formats/onnx/order.h"

#include <functional>
#include <queue>
#include <unordered_set>

#include "unmoor/base/error.h"

namespace unmoor::onnx {

const std::vector<std::string_view>& FreeNames::of(const GraphDef& graph) {
  if (const auto found = known_.find(&graph); found != known_.end()) return found->second;
  std::unordered_set<std::string_view> seen{""};
  for (const auto& input : graph.inputs) seen.insert(input.name);
  for (const auto& constant : graph.constants) seen.insert(constant.name);
  for (const auto& node : graph.nodes) seen.insert(node.outputs.begin(), node.outputs.end());
  std::vector<std::string_view> names;
  const auto use = [&](std::string_view name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  for (const auto& node : graph.nodes) {
    for (const auto name : node.inputs) use(name);
    for (const auto name : of(node)) use(name);
  }
  for (const auto& output : graph.outputs) use(output.name);
  return known_.emplace(&graph, std::move(names)).first->second;
}

std::vector<std::string_view> FreeNames::of(const NodeDef& node) {
  std::vector<std::string_view> names;
  std::unordered_set<std::string_view> seen;
  for (const auto& attribute : node.attributes) {
    for (const auto& graph : attribute.graphs) {
      for (const auto name : of(graph)) {
        if (seen.insert(name).second) names.push_back(name);
      }
    }
  }
  return names;
}

namespace {

// Which node makes which name.
std::unordered_map<std::string_view, size_t> makers(const std::vector<NodeDef>& nodes, const Given& given) {
  std::unordered_map<std::string_view, size_t> result;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto name : nodes[i].outputs) {
      if (name.empty()) continue;
      const auto [found, is_new] = result.emplace(name, i);
      if (!is_new) {
        fail(ErrorKind::InvalidModel, "value '", name, "' is made twice, by ", description(nodes[found->second]), " and ",
             description(nodes[i]));
      }
      if (given.contains(name)) {
        fail(ErrorKind::InvalidModel, "value '", name, "', made by ", description(nodes[i]),
             ", is an input or a constant already");
      }
    }
  }
  return result;
}

}  // namespace

std::vector<size_t> sorted_order(const std::vector<NodeDef>& nodes, const Given& given, FreeNames& free_names) {
  const auto made_by = makers(nodes, given);
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> waits_for(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto use = [&](std::string_view name) {
      if (name.empty() || given.contains(name)) return;
      const auto maker = made_by.find(name);
      if (maker == made_by.end())
        fail(ErrorKind::InvalidModel, description(nodes[i]), " uses value '", name, "', which nothing makes");
      users[maker->second].push_back(i);
      ++waits_for[i];
    };
    for (const auto name : nodes[i].inputs) use(name);
    for (const auto name : free_names.of(nodes[i])) use(name);
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const size_t user : users[next]) {
      if (--waits_for[user] == 0) ready.push(user);
    }
  }
  if (order.size() == nodes.size()) return order;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] == 0) continue;
    const auto in_cycle = [&](std::string_view name) {
      const auto maker = made_by.find(name);
      return maker != made_by.end() && waits_for[maker->second] > 0;
    };
    for (const auto name : nodes[i].inputs) {
      if (in_cycle(name))
        fail(ErrorKind::InvalidModel, "cycle: ", description(nodes[i]), " waits for value '", name, "' that waits for it");
    }
    fail(ErrorKind::InvalidModel, "cycle: ", description(nodes[i]), " waits, in its body, for a value that waits for it");
  }
  return order;
}

}  // namespace unmoor::onnx
