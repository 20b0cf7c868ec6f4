#include "bench/micro/subject.h"

#include <cstring>
#include <vector>

#include "unmoor/hal/kernel.h"
#include "unmoor/ops/cases.h"
#include "unmoor/runtime/session.h"

namespace unmoor::bench {

namespace {

// Memory of one prepared kernel, and the kernel.
struct Held {
  std::shared_ptr<Device> device;
  Prepared prepared;
  std::unique_ptr<Stream> stream;
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  Operand workspace;

  Operand place(size_t bytes, const Tensor* content = nullptr) {
    buffers.push_back(device->allocate(bytes));
    std::byte* const host = buffers.back()->host();
    if (content != nullptr) {
      std::memcpy(host, content->bytes().data(), bytes);
    } else {
      std::memset(host, 0, bytes);
    }
    return {buffers.back().get(), 0};
  }
};

const Kernel* first_kernel(const Device& device, const OpCall& call) {
  for (const Kernel& kernel : device.kernels().find(call.node.op)) {
    if (kernel.prepare && kernel.supports(call)) {
      return &kernel;
    }
  }
  return nullptr;
}

std::function<void()> run_kernel(const std::shared_ptr<Device>& device, const CaseGraph& graph, const OpCall& call,
                                 const Kernel& kernel) {
  const auto held = std::make_shared<Held>();  // Shared: a std::function is copied.
  held->device = device;
  held->prepared = kernel.prepare(call, *device);
  held->stream = device->make_stream();
  size_t next = 0;
  for (size_t i = 0; i < call.node.inputs.size(); ++i) {
    const ValueId id = call.node.inputs[i];
    const Tensor* const constant = id == no_value ? nullptr : graph.graph.constant_tensor(id);
    const Tensor* const tensor = id == no_value || constant != nullptr ? constant : &graph.inputs.at(next++).tensor();
    const bool unused = i < held->prepared.unused_inputs.size() && held->prepared.unused_inputs[i];
    held->inputs.push_back(tensor == nullptr || unused ? Operand{} : held->place(tensor->bytes().size(), tensor));
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    held->outputs.push_back(call.wants_output(i) ? held->place(call.output(i).bytes()) : Operand{});
  }
  held->workspace = held->place(held->prepared.workspace_bytes);
  return [held] {
    held->prepared.run(*held->stream, {held->inputs, held->outputs, held->workspace});
    held->stream->synchronize();
  };
}

std::function<void()> run_plan(const std::shared_ptr<Device>& device, const CaseGraph& graph) {
  const auto session = std::make_shared<Session>(make_plan(graph.graph, {device}, {}));
  NamedData inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    inputs.emplace(graph.graph.value(graph.graph.inputs().at(i)).name, graph.inputs[i]);
  }
  return [session, inputs] { (void)session->time_runs(inputs, 1, 0); };
}

// The same with constants in memory of their own: what a device packs, it shares among all users of one constant.
CaseGraph with_own_weights(CaseGraph graph) {
  for (size_t i = 0; i < graph.graph.values().size(); ++i) {
    const ValueId id{static_cast<uint32_t>(i)};
    if (const Tensor* const tensor = graph.graph.constant_tensor(id)) {
      graph.graph.mutable_value(id).constant = tensor->clone();
    }
  }
  return graph;
}

Subject make_subject(const std::shared_ptr<Device>& device, CaseGraph graph) {
  const OpCall call = call_for(graph.graph, graph.graph.nodes().back());
  const Cost cost = cost_of(call);
  if (const Kernel* const kernel = first_kernel(*device, call)) {
    return {run_kernel(device, graph, call, *kernel), kernel->name, cost};
  }
  return {run_plan(device, graph), "planned", cost};
}

}  // namespace

std::vector<Subject> make_subjects(const std::shared_ptr<Device>& device, std::string_view text, size_t bytes) {
  const CaseGraph graph = build_case(parse_case(text));
  std::vector<Subject> subjects;
  double moved = 0;
  do {
    subjects.push_back(make_subject(device, with_own_weights(graph)));
    moved += subjects.back().cost.bytes;
  } while (moved < static_cast<double>(bytes) && subjects.back().cost.bytes > 0);
  return subjects;
}

}  // namespace unmoor::bench
