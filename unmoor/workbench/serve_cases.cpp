#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/compare.h"
#include "unmoor/workbench/conformance.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t guard_bytes = 64;
constexpr std::byte guard{0xA5};
constexpr size_t alignment = 64;

// One kernel made ready for one case.
struct Attempt {
  const Kernel* kernel = nullptr;
  Prepared prepared = {};
  std::string problem = {};
};

// A case on its way: parsed, its expected values, and the kernels that take it.
struct Trial {
  CaseGraph built = {};
  std::vector<Data> inputs = {};  // Of the node, constants included; absent ones empty.
  std::unique_ptr<OpCall> call = nullptr;
  std::vector<Data> expected = {};
  std::vector<Attempt> attempts = {};
  std::string refusal = {};
  std::string problem = {};
};

bool known(const std::vector<std::optional<Type>>& types) {
  return std::ranges::all_of(types, [](const auto& type) { return !type || is_known(*type); });
}

void fill_trial(Trial& trial, const std::string& text) {
  trial.built = build_case(parse_case(text));
  const Graph& graph = trial.built.graph;
  const Node& node = graph.nodes().at(0);
  size_t next = 0;
  std::map<uint32_t, Data> given;
  for (const ValueId id : graph.inputs()) given[static_cast<uint32_t>(id)] = trial.built.inputs.at(next++);
  for (const ValueId id : node.inputs) {
    if (id == no_value) {
      trial.inputs.emplace_back();
    } else {
      trial.inputs.push_back(graph.value(id).constant ? *graph.value(id).constant : given.at(static_cast<uint32_t>(id)));
    }
  }
  trial.call = std::make_unique<OpCall>(call_for(graph, node));
  trial.call->outputs = infer_outputs(*trial.call);
  Outputs outputs(node.outputs.size());
  run_reference(*trial.call, trial.inputs, outputs);
  trial.expected = std::move(outputs.all());
}

void prepare_trial(Trial& trial, Device& device) {
  const OpCall& call = *trial.call;
  bool fixed = known(call.inputs);
  for (size_t i = 0; i < call.outputs.size(); ++i) fixed = fixed && (!call.wants_output(i) || is_known(call.outputs[i]));
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : device.kernels().find(call.node.op)) kernels.push_back(&kernel);
  if (device.kernels().generic() != nullptr) kernels.push_back(device.kernels().generic());
  for (const Kernel* kernel : kernels) {
    if (!fixed && kernel->prepare) {
      trial.refusal = "dynamic: the output's shape depends on data";
      continue;
    }
    const Support support = kernel->supports(call);
    if (!support) {
      trial.refusal = fmt::format("{}: {}: {}", kernel->name, name(support.reason), support.detail);
      continue;
    }
    Attempt attempt{kernel};
    try {
      if (kernel->prepare) attempt.prepared = kernel->prepare(call, device);
    } catch (const Error& error) {
      attempt.problem = fmt::format("it could not be prepared: {}", error.what());
    }
    trial.attempts.push_back(std::move(attempt));
  }
  if (kernels.empty()) trial.refusal = fmt::format("no-kernel: no kernel for {}", call.node.op);
}

size_t padded(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// The outputs of a kernel that works on buffers. Fails with Internal if it wrote behind one of them.
std::vector<Data> run_buffers(const Trial& trial, const Attempt& attempt, Device& device) {
  const OpCall& call = *trial.call;
  const auto stream = device.make_stream();
  std::vector<std::shared_ptr<Buffer>> held;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  for (const Data& data : trial.inputs) {
    inputs.emplace_back();
    if (!data) continue;
    held.push_back(device.allocate(data.tensor().bytes().size()));
    stream->upload(*held.back(), 0, data.tensor().bytes());
    inputs.back().buffer = held.back().get();
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    outputs.emplace_back();
    if (!call.wants_output(i)) continue;
    const size_t bytes = call.output(i).bytes();
    const std::vector<std::byte> dirty(padded(bytes) + guard_bytes, guard);
    held.push_back(device.allocate(dirty.size()));
    stream->upload(*held.back(), 0, dirty);
    stream->synchronize();
    outputs.back().buffer = held.back().get();
  }
  Operand workspace;
  if (attempt.prepared.workspace_bytes > 0) {
    held.push_back(device.allocate(attempt.prepared.workspace_bytes));
    workspace.buffer = held.back().get();
  }
  attempt.prepared.run(*stream, KernelArgs{inputs, outputs, workspace});
  stream->synchronize();
  std::vector<Data> results;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    results.emplace_back();
    if (!call.wants_output(i)) continue;
    const size_t bytes = call.output(i).bytes();
    std::vector<std::byte> all(padded(bytes) + guard_bytes);
    stream->download(all, *outputs[i].buffer, 0);
    stream->synchronize();
    if (std::any_of(all.begin() + static_cast<std::ptrdiff_t>(bytes), all.end(), [](std::byte each) { return each != guard; })) {
      fail(ErrorKind::Internal, "it wrote behind the end of output ", i);
    }
    Tensor tensor(call.output(i));
    if (bytes > 0) std::memcpy(tensor.writable_bytes().data(), all.data(), bytes);
    results.back() = tensor;
  }
  return results;
}

std::vector<Data> run_values(const Trial& trial, const Attempt& attempt) {
  Outputs outputs(trial.call->node.outputs.size());
  attempt.kernel->evaluate(*trial.call, trial.inputs, outputs);
  return std::move(outputs.all());
}

// Moving operators are compared bit for bit, signs of zero included.
std::string compare_moved(const Tensor& expected, const Tensor& actual) {
  if (!(expected.type() == actual.type())) return fmt::format("it gives {}, not {}", to_text(actual.type()), to_text(expected.type()));
  if (expected.dtype() == DType::String) return expected.strings() == actual.strings() ? "" : "strings differ";
  const auto e = expected.bytes();
  const auto a = actual.bytes();
  if (std::ranges::equal(e, a)) return "";
  const auto at = static_cast<size_t>(std::ranges::mismatch(e, a).in1 - e.begin());
  return fmt::format("bytes differ from byte {} on", at);
}

// What two random draws must have in common.
std::string compare_type(const Data& expected, const Data& actual) {
  if (!expected.is_tensor() || !actual.is_tensor()) return expected.is_tensor() == actual.is_tensor() ? "" : "it is of another kind";
  if (expected.tensor().type() == actual.tensor().type()) return "";
  return fmt::format("it is {}, not {}", to_text(actual.tensor().type()), to_text(expected.tensor().type()));
}

std::string compare_output(const Data& expected, const Data& actual, Rounding rounding) {
  if (rounding == Rounding::MoveBits && expected.is_tensor() && actual.is_tensor()) return compare_moved(expected.tensor(), actual.tensor());
  const DType stored = expected.is_tensor() ? expected.tensor().dtype() : DType::F32;
  const Metrics metrics = compare(expected, actual, stored, std::nullopt);
  if (!metrics.problem.empty()) return metrics.problem;
  if (metrics.class_mismatch > 0) return fmt::format("{} elements are NaN or infinite on one side only", metrics.class_mismatch);
  if (rounding == Rounding::Quantise && !is_float(stored) && agrees_as_quantised(metrics)) return "";
  if (metrics.over <= 1) return "";
  return fmt::format("element {} is off: {:.3g} times its tolerance (relative L2 error {:.3g})", metrics.worst, metrics.over, metrics.rel_l2);
}

json judge(const Trial& trial, Device& device) {
  if (!trial.problem.empty()) return {{"verdict", "failed"}, {"detail", trial.problem}};
  if (trial.attempts.empty()) return {{"verdict", "refused"}, {"detail", trial.refusal}};
  const Op* const op = all_ops().find(trial.call->node.op);
  std::string passed;
  std::string failed;
  bool only_generic = true;
  for (const Attempt& attempt : trial.attempts) {
    std::string problem = attempt.problem;
    try {
      const auto outputs = !problem.empty() ? std::vector<Data>() : attempt.kernel->prepare ? run_buffers(trial, attempt, device) : run_values(trial, attempt);
      for (size_t i = 0; i < outputs.size() && problem.empty(); ++i) {
        if (!trial.call->wants_output(i)) continue;
        problem = op->category == Category::Sampling ? compare_type(trial.expected[i], outputs[i])
                                                     : compare_output(trial.expected[i], outputs[i], op->rounding);
        if (!problem.empty()) problem = fmt::format("output {}: {}", i, problem);
      }
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (attempt.kernel != device.kernels().generic()) only_generic = false;
    std::string& list = problem.empty() ? passed : failed;
    list += fmt::format("{}{}{}{}", list.empty() ? "" : "; ", attempt.kernel->name, problem.empty() ? "" : ": ", problem);
  }
  if (!failed.empty()) return {{"verdict", "failed"}, {"detail", failed}};
  return {{"verdict", "passed"}, {"detail", op->category == Category::Sampling ? "random" : passed}, {"generic", only_generic}};
}

}  // namespace

int serve_cases(const OpenDevices& open) {
  std::FILE* const output = ::fdopen(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "w");
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const auto devices = open();
  fmt::print(output, "{{\"opened\":true}}\n");
  std::fflush(output);
  std::vector<Trial> trials;
  std::string line;
  while (std::getline(std::cin, line)) {
    Trial& trial = trials.emplace_back();
    try {
      fill_trial(trial, line);
      prepare_trial(trial, *devices[0]);
    } catch (const std::exception& error) {
      trial.problem = error.what();
    }
  }
  devices[0]->finish_preparation();
  fmt::print(output, "{{\"running\":true}}\n");
  for (const Trial& trial : trials) {
    fmt::print(output, "{}\n", judge(trial, *devices[0]).dump(-1, ' ', false, json::error_handler_t::replace));
    std::fflush(output);
  }
  return 0;
}

}  // namespace unmoor
