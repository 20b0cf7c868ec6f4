#include "unmoor/workbench/finding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "unmoor/base/error.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/probe.h"
#include "unmoor/workbench/causes/region_call.h"
#include "unmoor/workbench/reproduction.h"

namespace unmoor {
namespace {

// The dtype that floats of the node have where the target stores its result so: 16-bit models hold constants as they are given.
DType float_type(const std::vector<Data>& recorded, DType stored) {
  for (const Data& each : recorded) {
    if (each.is_tensor() && is_float(each.tensor().dtype()) && each.tensor().dtype() != DType::F64) return each.tensor().dtype();
  }
  return is_float(stored) ? stored : DType::F32;
}

Data narrowed(const Data& data, DType dtype) {
  if (!data.is_tensor() || data.tensor().dtype() != DType::F64) return data;
  Tensor result(TensorType{dtype, data.tensor().shape()});
  store(result, doubles(data.tensor()));
  return result;
}

const std::string& file_name(const Value& value) { return value.origin.name.empty() ? value.name : value.origin.name; }

// What the node reads, by the file's names.
NamedData values_of(const Region& region, const Node& node, std::span<const Data> inputs) {
  NamedData values;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != no_value) values[file_name(region.graph->value(node.inputs[i]))] = inputs[i];
  }
  return values;
}

// Attributes that were widened with the graph, as they were.
Node narrowed(Node node, DType dtype) {
  for (const std::string_view key : {"to", "dtype", "output_dtype", "output_datatype", "softmax_precision"}) {
    const auto found = node.attributes.find(key);
    const auto* const number = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
    if (number != nullptr && *number == onnx_number(DType::F64)) found->second = onnx_number(dtype);
  }
  return node;
}

// As a shell takes it.
std::string quoted(const std::string& path) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || std::string_view("-._/+@%,:=").find(static_cast<char>(c)) != std::string_view::npos; };
  if (std::ranges::all_of(path, is_plain)) return path;
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> commands_for(const std::string& folder, const std::string& device) {
  return {fmt::format("unmoor conformance --onnx-tests {} --on {}", quoted(folder), device),
          fmt::format("python {}", quoted(folder + "/replay.py"))};
}

}  // namespace

Replay write_replay(const Region& region, DType stored, const ReplayOptions& options) {
  const RegionCall exact = region_call(region);
  const DType dtype = float_type(exact.recorded, stored);
  std::vector<Data> inputs, outputs;
  for (const Data& each : exact.recorded) inputs.push_back(narrowed(each, dtype));
  for (const Data& each : reference_on(*exact.node, exact.inputs)) outputs.push_back(narrowed(each, dtype));
  const Node node = narrowed(*exact.node, dtype);
  OpCall call = call_on(node, inputs);
  for (size_t i = 0; i < call.constants.size(); ++i) {
    if (exact.call.constants[i] == nullptr) call.constants[i] = nullptr;
  }
  std::optional<FileNode> file;
  if (!options.model_file.empty()) file = FileNode{options.model_file, values_of(region, node, inputs)};
  write_reproduction(call, inputs, outputs, options.folder, options.device, file);
  return {options.folder, commands_for(options.folder, options.device)};
}

namespace {

constexpr double seconds_for_a_probe = 4;

// The causes that may be behind what the target gives on one set of inputs; empty if it shows no difference, or nothing is said.
std::vector<std::string> causes_on(const RegionCall& node, const Region& region, size_t output, const std::vector<Data>& probe,
                                   const RunAgain& run) {
  std::vector<std::pair<ValueId, Data>> given = region.given;
  for (auto& [id, data] : given) {
    const auto place = std::ranges::find(node.node->inputs, id);
    if (place != node.node->inputs.end()) data = probe[static_cast<size_t>(place - node.node->inputs.begin())];
  }
  try {
    const std::vector<Data> made = run(given);
    if (output >= made.size() || !made[output].is_tensor()) return {};
    const Tensor& found = made[output].tensor();
    std::vector<Data> inputs;
    for (const Data& each : probe) inputs.push_back(in_float64(each));
    OpCall call = call_on(*node.node, inputs);
    for (size_t i = 0; i < call.constants.size(); ++i) {
      if (node.call.constants[i] == nullptr) call.constants[i] = nullptr;
    }
    const auto place = std::ranges::find(node.node->outputs, region.wanted.at(output)) - node.node->outputs.begin();
    const Expected expected = expected_output(call, inputs, static_cast<size_t>(place));
    const Evidence evidence{call,           inputs,          static_cast<size_t>(place), found,
                            expected.exact, expected.spread, found.dtype()};
    const CauseSearch search = search_cause(evidence, {.seconds = seconds_for_a_probe});
    if (!search.cause || !search.cause->with.empty() || !search.untried.empty()) return {};
    std::vector<std::string> ids{search.cause->id};
    ids.insert(ids.end(), search.cause->also.begin(), search.cause->also.end());
    return ids;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Stopped) throw;
    return {};  // A kernel may refuse such values; other sets follow.
  }
}

}  // namespace

std::string break_tie(Cause& cause, const Region& region, size_t output, const RunAgain& run, uint64_t seed) {
  if (cause.also.empty() || !cause.with.empty()) return "";
  const RegionCall node = region_call(region);
  std::vector<std::string> open{cause.id};
  open.insert(open.end(), cause.also.begin(), cause.also.end());
  std::vector<std::string> ruled_out;
  for (const std::vector<Data>& probe : probing_inputs(node.call, node.recorded, seed)) {
    const std::vector<std::string> possible = causes_on(node, region, output, probe, run);
    const auto is_possible = [&](const std::string& id) { return std::ranges::find(possible, id) != possible.end(); };
    if (std::ranges::none_of(open, is_possible)) continue;
    for (const std::string& id : open) {
      if (!is_possible(id)) ruled_out.push_back(id);
    }
    std::erase_if(open, [&](const std::string& id) { return !is_possible(id); });
    if (open.size() == 1) break;
  }
  if (ruled_out.empty()) return "";
  if (open[0] != cause.id) {
    const Cause left = cause_named(open[0]);
    cause.id = left.id;
    cause.text = left.text;
    cause.advice = left.advice;
    const auto known = std::ranges::find(cause.hypotheses, open[0], &Hypothesis::id);
    if (known != cause.hypotheses.end()) {
      cause.bits = known->bits;
      cause.excess = known->excess;
    }
  }
  cause.also.assign(open.begin() + 1, open.end());
  return fmt::format("generated inputs rule out {}", fmt::join(ruled_out, ", "));
}

}  // namespace unmoor
