#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/base/error.h"
#include "unmoor/formats/npy.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/archive.h"
#include "unmoor/workbench/dump.h"
#include "unmoor/workbench/keep_list.h"
#include "unmoor/workbench/statistics_dump.h"

namespace unmoor::cli {
namespace {

using nlohmann::json;

struct Statistics {
  double low = 0;
  double high = 0;
  double mean = 0;
  size_t nan = 0;
  size_t infinite = 0;
};

// Over the finite elements.
Statistics statistics_of(const Tensor& tensor) {
  Statistics result;
  if (tensor.dtype() == DType::String || tensor.dtype() == DType::C64 || tensor.dtype() == DType::C128) return result;
  size_t finite = 0;
  double sum = 0;
  for (const double value : doubles(tensor)) {
    result.nan += std::isnan(value) ? 1 : 0;
    result.infinite += std::isinf(value) ? 1 : 0;
    if (!std::isfinite(value)) continue;
    result.low = finite == 0 ? value : std::min(result.low, value);
    result.high = finite == 0 ? value : std::max(result.high, value);
    sum += value;
    ++finite;
  }
  result.mean = finite == 0 ? 0 : sum / static_cast<double>(finite);
  return result;
}

// Where a value is no tensor: how many items it has, and how they start.
std::string describe_items(const std::string& name, const Data& data, json& entry) {
  constexpr size_t width = 60;
  const size_t count = data.is_map() ? data.map().values.size() : data.is_sequence() ? data.sequence().items.size() : 0;
  entry["items"] = count;
  entry["value"] = short_value(data, width);
  if (!data.is_sequence() || count == 0) return fmt::format("{} = {}\n", shortened(name, 28), short_value(data, width));
  return fmt::format("{}: {} items, the first is {}\n", shortened(name, 28), count, short_value(data.sequence().items[0], width));
}

void describe_outputs(const NamedData& outputs, json& result, std::string& text) {
  Table table({"output", "dtype", "shape", "min", "max", "mean", "nan", "inf"}, "lllrrrrr");
  result["outputs"] = json::array();
  std::string items;
  for (const auto& [name, data] : outputs) {
    json entry = type_json(name, type_of(data));
    if (data.is_tensor()) {
      const Statistics found = statistics_of(data.tensor());
      entry["min"] = number(found.low);
      entry["max"] = number(found.high);
      entry["mean"] = number(found.mean);
      entry["nan"] = found.nan;
      entry["inf"] = found.infinite;
      table.add({shortened(name, 28), std::string(unmoor::name(data.tensor().dtype())), to_text(data.tensor().shape()), short_number(found.low),
                 short_number(found.high), short_number(found.mean), std::to_string(found.nan), std::to_string(found.infinite)});
    } else {
      for (const char* key : {"min", "max", "mean"}) entry[key] = nullptr;
      entry["nan"] = entry["inf"] = 0;
      table.add({shortened(name, 28), to_text(type_of(data)), "", "", "", "", "", ""});
      items += describe_items(name, data, entry);
    }
    result["outputs"].push_back(std::move(entry));
  }
  text += table.text() + items;
}

bool is_listed(const std::vector<std::string>& list, const std::string& name) { return list.empty() || std::ranges::find(list, name) != list.end(); }

// A step stands for every node that it fuses.
bool is_asked(const PlacementInfo& placed, const Options& options) {
  const bool named = is_listed(options.nodes, placed.node) ||
                     std::ranges::any_of(placed.also, [&](const std::string& node) { return is_listed(options.nodes, node); });
  return named && is_listed(options.ops, placed.op);
}

std::string refusal_line(const PlacementInfo::Refused& refused) {
  return fmt::format("  not {}: {}: {}", refused.kernel.empty() ? refused.device : refused.kernel, refused.reason, refused.detail);
}

// Fails with InvalidArgument if the options ask for nodes or operators, and none of them is in the plan.
std::string explain(const PlanInfo& plan, const Options& options) {
  if (std::ranges::none_of(plan.placements, [&](const PlacementInfo& placed) { return is_asked(placed, options); }) && !plan.placements.empty()) {
    fail(ErrorKind::InvalidArgument, "no step of the plan is a node or an operator that was asked for");
  }
  Table table({"node", "op", "device", "kernel", "state"});
  std::string text;
  for (const PlacementInfo& placed : plan.placements) {
    if (!is_asked(placed, options)) continue;
    table.add({shortened(placed.node, 30), shortened(placed.op, 20), placed.device, placed.kernel, placed.state});
    for (const auto& refused : placed.refusals) {
      if (options.kernels || placed.state == "fallback") table.add({refusal_line(refused)});
    }
    for (const auto& later : placed.later) {
      if (options.kernels) table.add({later.reason.empty() ? fmt::format("  after it {}", later.kernel) : refusal_line(later)});
    }
  }
  text += table.text();
  for (const std::string& note : plan.notes) text += wrapped(note);
  for (const CopyInfo& copy : plan.copies) {
    text += fmt::format("copy {} from {} to {}: {}\n", shortened(copy.value, 30), copy.from, copy.to, short_bytes(static_cast<double>(copy.bytes)));
  }
  return text;
}

std::string plan_line(const PlanInfo& plan) {
  if (plan.placements.empty() && is_engine(plan.devices.at(0))) {
    std::string versions;
    for (const auto& [what, version] : plan.versions.at(0)) versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", what, version);
    return wrapped(fmt::format("run by {}: {}", plan.devices[0], versions));
  }
  size_t bytes = 0;
  for (const CopyInfo& copy : plan.copies) bytes += copy.bytes;
  std::string text = fmt::format("{} steps on {}", plan.placements.size(), plan.devices[0]);
  if (plan.devices.size() > 1) {
    text += fmt::format("; {} fell back to {}; {} copies, {}", plan.fallback_nodes, plan.devices.back(), plan.copies.size(),
                        short_bytes(static_cast<double>(bytes)));
  }
  text += "\n";
  std::istringstream lines(plan.fallback_summary);
  for (std::string line; std::getline(lines, line);) text += wrapped(line);
  return text;
}

// A run of which statistics are written. Returns its outputs; `written` says what there is then.
NamedData statistics_run(const Options& options, Runner& runner, const NamedData& inputs, std::string& written) {
  ValueFilter filter(options.values, options.every);
  StatisticsSide side = collect_statistics(runner, inputs, [&filter](const std::string& name) { return filter.takes(name); });
  side.inputs = inputs;
  write_statistics(side, options.dump);
  written = fmt::format("wrote statistics of {} into {}\n", counted(side.values.size(), "value"), options.dump);
  return std::move(side.outputs);
}

}  // namespace

Outcome run_command(const Options& options, json& result) {
  const Lab lab(options);
  show_note(lab.note());
  const NamedData inputs = lab.inputs();
  result["model"] = model_json(lab.model(), &inputs);
  if (options.devices.size() != 1) fail(ErrorKind::InvalidArgument, "run takes one device, not ", options.devices.size());
  const bool narrowed = !options.nodes.empty() || !options.ops.empty();
  const bool explained = options.explain || options.kernels || narrowed;
  if (explained && is_engine(options.devices[0])) {
    fail(ErrorKind::InvalidArgument, options.devices[0], " does not say where its nodes run: --explain, --kernels, --node and --op are for Unmoor's devices");
  }
  const std::shared_ptr<Runner> runner = lab.runner(options.devices[0], lab.plan_options());  // Shared with the outcome.
  // The plain loops are for checking others; whoever runs a model in them need not wait for them.
  const bool in_reference = !is_engine(options.devices[0]) && parse_device(options.devices[0]).backend == "reference";
  const size_t threads = options.threads > 0 ? options.threads : usable_threads();
  std::optional<Float64Help> help;
  std::optional<Float64Scope> scope;
  if (in_reference) scope.emplace(help.emplace(float64_help(std::make_shared<ThreadPool>(threads))));
  std::unique_ptr<DumpWriter> dump;
  if (!options.dump.empty()) {
    (void)runner->plan();  // A refusal leaves no folder.
    if (!options.dump_stats) dump = std::make_unique<DumpWriter>(options.dump, ValueFilter(options.values, options.every));
  }
  if (dump) {
    for (const auto& [name, data] : inputs) dump->add(name, data);
  }
  std::string written;
  const NamedData outputs = options.dump_stats ? statistics_run(options, *runner, inputs, written) : runner->run(inputs, dump.get());
  Outcome outcome;
  outcome.held = runner;
  const PlanInfo plan = runner->plan();
  result["plan"] = plan_json(plan);
  result["environment"]["devices"] = plan.devices;
  add_versions(result, plan);
  if (explained) outcome.text += explain(plan, options);
  if (!lab.keep_float32().empty()) {
    result["keep_float32"] = kept_json(lab.keep_float32(), plan);
    outcome.text += kept_text(lab.keep_float32(), plan);
  }
  outcome.text += plan_line(plan);
  describe_outputs(outputs, result, outcome.text);
  outcome.text += written;
  if (dump) {
    for (const auto& [name, data] : outputs) {
      if (!dump->has(name)) dump->add(name, data);  // Outputs that only rename a value.
    }
    dump->finish();
    outcome.text += fmt::format("wrote {} into {}\n", counted(dump->count(), "value"), options.dump);
    if (!dump->left_out().empty()) {
      show_note(fmt::format("{} left out of the dump, which holds tensors: sequences and maps, first '{}'", counted(dump->left_out().size(), "value"),
                            dump->left_out()[0]));
    }
  }
  if (!options.output.empty()) {
    NamedTensors tensors;
    for (const auto& [name, data] : outputs) add_to_archive(name, data, tensors);
    write_npz(tensors, options.output);
    outcome.text += fmt::format("wrote {}\n", options.output);
  }
  return outcome;
}

}  // namespace unmoor::cli
