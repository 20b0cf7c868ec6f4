#include "unmoor/runtime/memory.h"

#include <algorithm>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/runtime/place.h"

namespace unmoor {
namespace {

constexpr size_t alignment = 64;

// One block of an arena: a value, or several that follow each other in place.
struct Block {
  size_t device = 0;
  size_t bytes = 0;
  size_t first = 0;  // Steps at which it is alive, both included.
  size_t last = 0;
  std::vector<size_t> values = {};
};

class Lifetimes {
 public:
  Lifetimes(const Graph& graph, const std::vector<Placement>& placements, const std::vector<Step>& steps, size_t host)
      : graph_(graph), placements_(placements), steps_(steps), host_(host), excluded_(graph.values().size()) {
    for (size_t i = 0; i < graph.values().size(); ++i) excluded_[i] = graph.values()[i].constant || !has_bytes(graph.values()[i].type);
    for (const ValueId id : graph.inputs()) on_host_outside_.push_back(Graph::index(id));
    for (const ValueId id : graph.outputs()) on_host_outside_.push_back(Graph::index(id));
    std::ranges::sort(on_host_outside_);
  }

  std::vector<Block> blocks() {
    for (size_t at = 0; at < steps_.size(); ++at) find_last_uses(at);
    for (size_t at = 0; at < steps_.size(); ++at) make_blocks(at);
    return std::move(blocks_);
  }

 private:
  using Place = std::pair<size_t, size_t>;  // Device and value.

  // Strings live beside the bytes of their tensor, so no arena holds them.
  static bool has_bytes(const Type& type) {
    const auto* tensor = std::get_if<TensorType>(&type);
    return tensor != nullptr && tensor->is_known() && tensor->dtype != DType::String;
  }

  bool is_planned(size_t device, size_t value) const {
    if (excluded_[value]) return false;
    return device != host_ || !std::ranges::binary_search(on_host_outside_, value);
  }

  void touch(size_t device, ValueId id, size_t at) {
    if (id != no_value && is_planned(device, Graph::index(id))) last_use_[{device, Graph::index(id)}] = at;
  }

  void find_last_uses(size_t at) {
    if (const auto* copy = std::get_if<CopyStep>(&steps_[at])) {
      touch(copy->from, copy->value, at);
      touch(copy->to, copy->value, at);
      return;
    }
    const auto& placement = placement_of(steps_[at]);
    const Node& node = graph_.node(placement.node);
    for (const ValueId id : node.inputs) touch(placement.device, id, at);
    for (const ValueId id : node.outputs) touch(placement.device, id, at);
  }

  const Placement& placement_of(const Step& step) const {
    const auto* run = std::get_if<RunStep>(&step);
    return placements_[run != nullptr ? run->placement : std::get<CallStep>(step).placement];
  }

  void make_blocks(size_t at) {
    if (const auto* copy = std::get_if<CopyStep>(&steps_[at])) {
      open_block(copy->to, Graph::index(copy->value), at);
      return;
    }
    const auto* run = std::get_if<RunStep>(&steps_[at]);
    const auto& placement = placement_of(steps_[at]);
    const Node& node = graph_.node(placement.node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == no_value) continue;
      if (i == 0 && run != nullptr && run->kernel != nullptr && run->kernel->in_place && reuse_input(placement.device, node, at)) continue;
      open_block(placement.device, Graph::index(node.outputs[i]), at);
    }
  }

  size_t bytes_of(size_t value) const { return std::get<TensorType>(graph_.values()[value].type).bytes(); }

  bool reuse_input(size_t device, const Node& node, size_t at) {
    if (node.inputs.empty() || node.inputs[0] == no_value) return false;
    const size_t input = Graph::index(node.inputs[0]);
    const size_t output = Graph::index(node.outputs[0]);
    const auto found = block_of_.find({device, input});
    if (found == block_of_.end() || !is_planned(device, output) || last_use_[{device, input}] != at) return false;
    if (bytes_of(input) != bytes_of(output) || std::ranges::count(node.inputs, node.inputs[0]) != 1) return false;
    Block& block = blocks_[found->second];
    block.values.push_back(output);
    block.last = last_use_[{device, output}];
    block_of_[{device, output}] = found->second;
    return true;
  }

  void open_block(size_t device, size_t value, size_t at) {
    if (!is_planned(device, value) || block_of_.contains({device, value})) return;
    block_of_[{device, value}] = blocks_.size();
    const size_t rounded = (std::max<size_t>(bytes_of(value), 1) + alignment - 1) / alignment * alignment;
    blocks_.push_back({device, rounded, at, last_use_[{device, value}], {value}});
  }

  const Graph& graph_;
  const std::vector<Placement>& placements_;
  const std::vector<Step>& steps_;
  size_t host_;
  std::vector<bool> excluded_;
  std::vector<size_t> on_host_outside_;
  std::map<Place, size_t> last_use_;
  std::map<Place, size_t> block_of_;
  std::vector<Block> blocks_;
};

constexpr size_t most_bytes = size_t{1} << 62;  // Of an arena: more than any machine has, and sums below it do not overflow.

// Biggest first, each at the lowest offset that is free during its whole life.
void assign_offsets(std::vector<Block>& blocks, MemoryPlan& plan) {
  std::ranges::stable_sort(blocks, [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  struct Taken {
    size_t from;
    size_t to;
    const Block* block;
  };
  std::vector<std::vector<Taken>> taken(plan.arena_bytes.size());
  for (const Block& block : blocks) {
    auto& others = taken[block.device];  // Sorted by where they start.
    size_t offset = 0;
    for (const Taken& other : others) {
      if (other.block->last < block.first || block.last < other.block->first) continue;
      if (offset + block.bytes <= other.from) break;
      offset = std::max(offset, other.to);
    }
    if (offset > most_bytes - block.bytes) fail(ErrorKind::OutOfMemory, "the values of this graph need more than 2^62 bytes at once");
    const Taken entry{offset, offset + block.bytes, &block};
    others.insert(std::ranges::upper_bound(others, entry.from, {}, &Taken::from), entry);
    plan.arena_bytes[block.device] = std::max(plan.arena_bytes[block.device], entry.to);
    for (const size_t value : block.values) plan.slots[block.device][value] = {offset, block.bytes, true};
  }
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const std::vector<Placement>& placements, const std::vector<Step>& steps, size_t devices,
                       size_t host) {
  MemoryPlan plan;
  plan.arena_bytes.resize(devices);
  plan.workspace_bytes.resize(devices);
  plan.slots.assign(devices, std::vector<Slot>(graph.values().size()));
  auto blocks = Lifetimes(graph, placements, steps, host).blocks();
  assign_offsets(blocks, plan);
  for (const Step& step : steps) {
    const auto* run = std::get_if<RunStep>(&step);
    if (run == nullptr || run->prepared == nullptr) continue;
    size_t& bytes = plan.workspace_bytes[placements[run->placement].device];
    bytes = std::max(bytes, run->prepared->workspace_bytes);
  }
  return plan;
}

}  // namespace unmoor
