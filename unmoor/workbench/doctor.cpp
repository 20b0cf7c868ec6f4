#include "unmoor/workbench/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/json.h"
#include "unmoor/ops/builder.h"
#include "unmoor/runtime/session.h"
#include "unmoor/workbench/compare.h"
#include "unmoor/workbench/inputs.h"
#include "unmoor/workbench/machine_facts.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr int64_t side = 64;

// Relu(a b), small enough to be quick and big enough to use the device.
Graph check_graph() {
  Graph graph;
  const TensorType square{DType::F32, {side, side}};
  std::vector<ValueId> inputs{graph.add_input("a", square), graph.add_input("b", square)};
  for (const char* const op : {"MatMul", "Relu"}) {
    Node node;
    node.name = op;
    node.op = op;
    node.origin.name = op;
    node.origin.op = op;
    node.inputs = inputs;
    Value value;
    value.name = std::string(op) + "_output";
    value.type = square;
    node.outputs = {graph.add_value(std::move(value))};
    inputs = node.outputs;
    graph.add_node(std::move(node));
  }
  graph.mark_output(inputs[0], "y");
  return graph;
}

NamedData check_inputs() {
  NamedData inputs;
  for (const char* const name : {"a", "b"}) {
    inputs[name] = generate_input({name, TensorType{DType::F32, {side, side}}, "", ""}, {});
  }
  return inputs;
}

// The expected values by plain loops of its own.
Tensor expected_values(const NamedData& inputs) {
  const auto a = inputs.at("a").tensor().span<float>();
  const auto b = inputs.at("b").tensor().span<float>();
  Tensor expected(TensorType{DType::F64, {side, side}});
  const auto out = expected.writable_span<double>();
  constexpr auto n = static_cast<size_t>(side);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += static_cast<double>(a[i * n + j]) * static_cast<double>(b[j * n + k]);
      out[i * n + k] = std::max(sum, 0.0);
    }
  }
  return expected;
}

// How long a warm checked run takes. Fails with Device if the device refuses it or gives other numbers.
double check_device(const std::vector<std::shared_ptr<Device>>& devices) {
  PlanOptions options;
  options.fallback = Fallback::Forbid;
  Session session(make_plan(check_graph(), devices, options));
  const NamedData inputs = check_inputs();
  const NamedData outputs = session.run(inputs);
  const Metrics metrics = compare(expected_values(inputs), outputs.at("y"), DType::F32, std::nullopt);
  if (!metrics.fine()) {
    fail(ErrorKind::Device, "Relu(MatMul) gives wrong numbers: ",
         metrics.problem.empty() ? fmt::format("relative L2 error {:.3g}", metrics.rel_l2) : metrics.problem);
  }
  const auto times = session.time_runs(inputs, 5, 0);
  return *std::ranges::min_element(times);
}

json kernels_of(const Device& device) {
  json kernels = json::object();
  for (const auto& [op, list] : device.kernels().all()) {
    for (const Kernel& kernel : list) kernels[op].push_back(kernel.name);
  }
  if (const Kernel* const generic = device.kernels().generic()) kernels["*"].push_back(generic->name);
  return kernels;
}

json describe(const DeviceInfo& info) {
  json versions = json::object();
  for (const auto& [what, version] : info.versions) versions[what] = version;
  for (const auto& [what, state] : info.features) versions[what] = state;
  if (!info.arch.empty()) versions["arch"] = info.arch;
  return {{"name", info.id}, {"hardware", info.name}, {"versions", versions}, {"state", "ready"}, {"reason", ""}, {"check_ms", 0},
          {"kernels", json::object()}};
}

}  // namespace

json probe_backend(Backend& backend, const std::function<std::shared_ptr<Device>()>& host) {
  const Availability here = backend.probe();
  json result{{"devices", json::array()}, {"libraries", here.libraries}, {"reason", here.reason}};
  for (size_t i = 0; i < here.devices.size(); ++i) {
    json device = describe(here.devices[i]);
    try {
      std::vector<std::shared_ptr<Device>> devices;
      devices.reserve(2);
      devices.push_back(backend.open(i));
      if (!devices[0]->info().host) devices.push_back(host());
      device = describe(devices[0]->info());
      device["kernels"] = kernels_of(*devices[0]);
      device["check_ms"] = check_device(devices);
    } catch (const std::exception& error) {
      device["state"] = "broken";
      device["reason"] = error.what();
    }
    result["devices"].push_back(std::move(device));
  }
  result["mapped"] = mapped_libraries();
  return result;
}

DoctorResult doctor(const std::vector<PlatformToProbe>& platforms, const ProbeInChild& probe) {
  DoctorResult result;
  for (const PlatformToProbe& platform : platforms) {
    if (!platform.absent.empty()) {
      result.devices.push_back({platform.name, platform.name, "absent", platform.absent, ""});
      continue;
    }
    const ProbeAnswer answer = probe(platform.name);
    const json found = read_json(answer.json);
    if (!answer.ended.empty() || !found.is_object()) {
      result.devices.push_back({platform.name, platform.name, "broken", answer.ended.empty() ? "its probe gave no answer" : answer.ended, ""});
      continue;
    }
    for (const auto& device : found.at("devices")) {
      DoctorResult::Found entry{device.at("name"), platform.name, device.at("state"), device.at("reason"), device.at("hardware")};
      entry.check_ms = device.at("check_ms");
      entry.versions = device.at("versions").get<std::map<std::string, std::string>>();
      entry.kernels = device.at("kernels").get<std::map<std::string, std::vector<std::string>>>();
      result.devices.push_back(std::move(entry));
    }
    if (found.at("devices").empty()) {
      result.devices.push_back({platform.name, platform.name, "absent", found.at("reason").get<std::string>(), ""});
    }
    for (const auto& path : found.at("libraries")) {
      const auto text = path.get<std::string>();
      result.libraries.push_back({std::filesystem::path(text).filename().string(), {text}, text});
    }
    std::ranges::copy(found.at("mapped").get<std::vector<std::string>>(), std::back_inserter(result.mapped));
  }
  return result;
}

DoctorResult::Collected collected_from(const Machine& machine) {
  const auto first = [&](const char* file) {
    const auto lines = machine.lines(file);
    return lines.empty() ? std::string() : lines[0];
  };
  const std::string mark = first("/outputs/collected");
  DoctorResult::Collected collected{mark.substr(mark.rfind(' ') + 1), first("/outputs/uname")};
  constexpr std::string_view key = "PRETTY_NAME=";
  for (std::string line : machine.lines("/etc/os-release")) {
    if (!line.starts_with(key)) continue;
    std::erase(line, '"');
    collected.system += cat(collected.system.empty() ? "" : ", ", line.substr(key.size()));
  }
  return collected;
}

void DoctorResult::judge(const Machine& machine) {
  python = python_facts(machine);
  pairs = judge_versions(version_facts(machine, python));
  const std::vector<LibraryCopies> copies = library_copies(machine);
  for (const LibraryCopies& each : copies) {
    const auto opened = std::ranges::find(libraries, each.name, &Library::name);
    if (opened != libraries.end()) {
      opened->paths = each.paths;
      if (std::ranges::find(opened->paths, opened->used) == opened->paths.end()) opened->paths.push_back(opened->used);
    } else if (!each.used.empty()) {
      libraries.push_back({each.name, each.paths, each.used});
    }
  }
  std::ranges::sort(libraries, {}, &Library::name);
  for (const std::string& line : machine.lines("/outputs/variables")) {
    if (const size_t equals = line.find('='); equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  faults = machine_faults(machine, pairs, copies, python, engines);
}

}  // namespace unmoor
