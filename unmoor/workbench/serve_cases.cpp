#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "unmoor/base/error.h"
#include "unmoor/runtime/place.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/compare.h"
#include "unmoor/workbench/conformance.h"
#include "unmoor/workbench/onnx_tests.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t guard_bytes = 64;
constexpr std::byte guard{0xA5};
constexpr size_t alignment = 64;
constexpr size_t compiled_together = 256;  // Folders of ONNX's tests: their kernels share programs, and compilers start slowly.

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

// Memory behind which a guard lies, on the device.
std::shared_ptr<Buffer> guarded(Device& device, Stream& stream, size_t bytes) {
  const std::vector<std::byte> dirty(padded(bytes) + guard_bytes, guard);
  auto buffer = device.allocate(dirty.size());
  stream.upload(*buffer, 0, dirty);
  stream.synchronize();
  return buffer;
}

// Whether a kernel that works in place may write output 0 over input 0, as the planner decides it.
bool can_work_in_place(const Trial& trial, const Attempt& attempt) {
  const OpCall& call = *trial.call;
  return attempt.kernel->in_place && attempt.kernel->prepare && !trial.inputs.empty() && trial.inputs[0] && call.wants_output(0) &&
         call.input(0).bytes() == call.output(0).bytes();
}

// The outputs of a kernel that works on buffers; with `in_place` output 0 lies where input 0 does. Fails with Internal if it wrote behind one
// of them.
std::vector<Data> run_buffers(const Trial& trial, const Attempt& attempt, Device& device, bool in_place) {
  const OpCall& call = *trial.call;
  const auto stream = device.make_stream();
  std::vector<std::shared_ptr<Buffer>> held;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  for (const Data& data : trial.inputs) {
    inputs.emplace_back();
    if (!data) continue;
    held.push_back(guarded(device, *stream, data.tensor().bytes().size()));
    stream->upload(*held.back(), 0, data.tensor().bytes());
    inputs.back().buffer = held.back().get();
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    outputs.emplace_back();
    if (!call.wants_output(i)) continue;
    if (i == 0 && in_place) {
      outputs.back() = inputs[0];
      continue;
    }
    held.push_back(guarded(device, *stream, call.output(i).bytes()));
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

// The first element that is not the same, bits and signs of zero included; NaNs are all the same.
std::optional<size_t> first_difference(const Tensor& expected, const Tensor& actual) {
  const auto e = expected.bytes();
  const auto a = actual.bytes();
  if (std::ranges::equal(e, a)) return std::nullopt;
  if (!is_float(expected.dtype())) return 8 * static_cast<size_t>(std::ranges::mismatch(e, a).in1 - e.begin()) / bits_of(expected.dtype());
  const auto wanted = doubles(expected);
  const auto found = doubles(actual);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool both_nan = std::isnan(wanted[i]) && std::isnan(found[i]);
    if (!both_nan && (wanted[i] != found[i] || std::signbit(wanted[i]) != std::signbit(found[i]))) return i;
  }
  return std::nullopt;
}

// Moving operators are compared bit for bit.
std::string compare_moved(const Tensor& expected, const Tensor& actual) {
  if (!(expected.type() == actual.type())) return fmt::format("it gives {}, not {}", to_text(actual.type()), to_text(expected.type()));
  if (expected.dtype() == DType::String) return expected.strings() == actual.strings() ? "" : "strings differ";
  const auto at = first_difference(expected, actual);
  return at ? fmt::format("element {} differs", *at) : "";
}

std::string compare_output(const Data& expected, const Data& actual, Rounding rounding) {
  if (rounding == Rounding::MoveBits && expected.is_tensor() && actual.is_tensor()) return compare_moved(expected.tensor(), actual.tensor());
  const DType stored = expected.is_tensor() ? expected.tensor().dtype() : DType::F32;
  const Metrics metrics = compare(expected, actual, stored, std::nullopt);
  if (!metrics.problem.empty()) return metrics.problem;
  if (metrics.class_mismatch > 0) return fmt::format("{} elements are NaN or infinite on one side only", metrics.class_mismatch);
  if (rounding == Rounding::Quantise && !is_float(stored) && agrees_as_quantised(metrics)) return "";
  if (stored == DType::F16 || stored == DType::BF16) {
    // What is computed in float32 and rounded once falls to the next number at most; what a function loses may show once more.
    const double steps = rounding == Rounding::Function ? 2 : 1;
    if (within_steps(metrics, steps)) return "";
    return fmt::format("an element is {:.3g} steps of {} off, not {} at most", metrics.ulp_max, name(stored), steps);
  }
  if (metrics.over <= 1) return "";
  return fmt::format("element {} is off: {:.3g} times its tolerance (relative L2 error {:.3g})", metrics.worst, metrics.over, metrics.rel_l2);
}

// What is wrong with the results of one run; empty if nothing.
std::string problem_of(const Trial& trial, const std::vector<Data>& outputs) {
  const Op* const op = all_ops().find(trial.call->node.op);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!trial.call->wants_output(i)) continue;
    const std::string problem = compare_output(trial.expected[i], outputs[i], op->rounding);
    if (!problem.empty()) return fmt::format("output {}: {}", i, problem);
  }
  return {};
}

// Runs it once, and again in place where the planner might.
std::string try_out(const Trial& trial, const Attempt& attempt, Device& device) {
  if (!attempt.problem.empty()) return attempt.problem;
  if (!attempt.kernel->prepare) return problem_of(trial, run_values(trial, attempt));
  const std::string problem = problem_of(trial, run_buffers(trial, attempt, device, false));
  if (!problem.empty() || !can_work_in_place(trial, attempt)) return problem;
  const std::string after = problem_of(trial, run_buffers(trial, attempt, device, true));
  return after.empty() ? after : fmt::format("in place, {}", after);
}

json judge(const Trial& trial, Device& device) {
  if (!trial.problem.empty()) return {{"verdict", "failed"}, {"detail", trial.problem}};
  if (trial.attempts.empty()) return {{"verdict", "refused"}, {"detail", trial.refusal}};
  std::string passed;
  std::string failed;
  bool only_generic = true;
  for (const Attempt& attempt : trial.attempts) {
    std::string problem;
    try {
      problem = try_out(trial, attempt, device);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (attempt.kernel != device.kernels().generic()) only_generic = false;
    std::string& list = problem.empty() ? passed : failed;
    list += fmt::format("{}{}{}{}", list.empty() ? "" : "; ", attempt.kernel->name, problem.empty() ? "" : ": ", problem);
  }
  if (!failed.empty()) return {{"verdict", "failed"}, {"detail", failed}};
  return {{"verdict", "passed"}, {"detail", passed}, {"generic", only_generic}};
}

// Where a planner would put a case's node: the state of its worst part, with the first refusal or the kernels.
json place_case(const std::string& text, const std::vector<std::shared_ptr<Device>>& devices) {
  try {
    const PlacedGraph placed = place(with_shapes(build_case(parse_case(text)).graph, {}), devices, {});
    std::string state = "host";
    std::string kernels;
    for (const Placement& each : placed.placements) {
      if (each.state == State::Fallback) {
        const Refusal& refusal = each.refusals.at(0);
        return {{"verdict", "fallback"}, {"detail", fmt::format("{}: {}", name(refusal.why.reason), refusal.why.detail)}};
      }
      if (each.state == State::Host) continue;
      if (state != "expanded") state = each.kernel == "cpu.generic" ? "generic" : name(each.state);
      kernels += fmt::format("{}{}", kernels.empty() ? "" : ", ", each.kernel);
    }
    return {{"verdict", state}, {"detail", kernels}, {"generic", state == "generic"}};
  } catch (const Error& error) {
    return {{"verdict", "unsupported"}, {"detail", error.what()}};
  }
}

// What was standard output; drivers that print go to standard error from now on.
std::FILE* take_output() {
  std::FILE* const output = ::fdopen(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "w");
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return output;
}

// All cases, before the first answer: whoever answers while others still write to it can wait for them for ever.
std::vector<std::string> read_cases() {
  std::vector<std::string> cases;
  for (std::string line; std::getline(std::cin, line);) cases.push_back(line);
  return cases;
}

// Compiles what was asked for. A kernel that cannot be compiled is told by the case that needs it.
void finish_preparation(Device& device) {
  try {
    device.finish_preparation();
  } catch (const Error&) {
    return;
  }
}

void say(std::FILE* output, const json& answer) {
  fmt::print(output, "{}\n", answer.dump(-1, ' ', false, json::error_handler_t::replace));
  std::fflush(output);
}

}  // namespace

int serve_cases(const OpenDevices& open) {
  std::FILE* const output = take_output();
  const auto devices = open();
  say(output, {{"opened", true}});
  std::vector<Trial> trials;
  for (const std::string& text : read_cases()) {
    Trial& trial = trials.emplace_back();
    try {
      fill_trial(trial, text);
      prepare_trial(trial, *devices[0]);
    } catch (const std::exception& error) {
      trial.problem = error.what();
    }
  }
  devices[0]->finish_preparation();
  say(output, {{"running", true}});
  for (const Trial& trial : trials) say(output, judge(trial, *devices[0]));
  return 0;
}

int serve_placements(const OpenDevices& open) {
  std::FILE* const output = take_output();
  const auto devices = open();
  say(output, {{"opened", true}});
  const auto cases = read_cases();
  say(output, {{"running", true}});
  for (const std::string& text : cases) say(output, place_case(text, devices));
  return 0;
}

int serve_onnx_tests(const OpenDevices& open) {
  std::FILE* const output = take_output();
  const auto devices = open();
  say(output, {{"opened", true}});
  const auto folders = read_cases();
  for (size_t from = 0; from < folders.size(); from += compiled_together) {
    const auto part = std::span(folders).subspan(from, std::min(compiled_together, folders.size() - from));
    if (!devices[0]->info().host) {  // Nothing is compiled on a host.
      say(output, {{"running", false}});
      for (const std::string& folder : part) prepare_onnx_test(folder, devices);
      finish_preparation(*devices[0]);
    }
    say(output, {{"running", true}});
    for (const std::string& folder : part) {
      const OnnxTestResult result = run_onnx_test(folder, devices);
      say(output, {{"verdict", result.verdict}, {"detail", result.detail}, {"generic", result.generic}});
    }
  }
  return 0;
}

}  // namespace unmoor
