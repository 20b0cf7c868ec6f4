// Names the cause of each folder given: model.onnx of one node, test_data_set_0/input_k.pb, and output_0.pb as a target gave it.
// A line of JSON each.
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/cause.h"
#include "unmoor/workbench/causes/score.h"
#include "unmoor/workbench/judge.h"
#include "unmoor/workbench/noise/model_noise.h"
#include "unmoor/workbench/reproduction.h"

namespace unmoor {
namespace {

using nlohmann::json;

json hypotheses_of(const CauseSearch& search) {
  json list = json::array();
  for (size_t i = 0; i < search.hypotheses.size() && i < 6; ++i) {
    const Hypothesis& each = search.hypotheses[i];
    list.push_back({each.id, each.bits, each.excess});
  }
  return list;
}

// A folder's node with what goes in.
struct Given {
  std::unique_ptr<Model> model;
  std::optional<OpCall> call;
  std::vector<Data> inputs;
  NamedData values;  // By the file's names.
};

Given read_folder(const std::string& folder) {
  Given given;
  given.model = std::make_unique<Model>(read_onnx(folder + "/model.onnx"));
  const Graph& graph = given.model->graph;
  if (graph.nodes().size() != 1) fail(ErrorKind::InvalidModel, folder, " has ", graph.nodes().size(), " nodes, not 1");
  const Node& node = graph.nodes()[0];
  std::map<ValueId, Data> data;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId id = graph.inputs()[i];
    data[id] = read_onnx_tensor(cat(folder, "/test_data_set_0/input_", i, ".pb"), &graph.value(id).type);
  }
  given.call.emplace(OpCall{node, {}, {}, {}});
  for (const ValueId id : node.inputs) {
    given.inputs.push_back(id == no_value ? Data() : graph.value(id).constant ? *graph.value(id).constant : data.at(id));
    given.call->inputs.push_back(id == no_value ? std::nullopt : std::optional<Type>(type_of(given.inputs.back())));
    given.call->constants.push_back(graph.constant_tensor(id));
    if (id != no_value) given.values[graph.value(id).name] = given.inputs.back();
  }
  // Values that decide shapes are all known.
  OpCall known{node, given.call->inputs, {}, {}};
  for (const Data& each : given.inputs) known.constants.push_back(each.is_tensor() ? &each.tensor() : nullptr);
  given.call->outputs = infer_outputs(known);
  return given;
}

void reproduce(const std::string& folder, const std::string& out, bool from_file) {
  const Given given = read_folder(folder);
  Outputs outputs(given.call->node.outputs.size());
  run_reference(*given.call, given.inputs, outputs);
  std::optional<FileNode> file;
  if (from_file) file = FileNode{folder + "/model.onnx", given.values};
  const Reproduction made = write_reproduction(*given.call, given.inputs, outputs.all(), out, "reference", file);
  std::cout << json{{"as_in_file", made.as_in_file}, {"why_not", made.why_not}} << std::endl;
}

// What align says of the target as a kernel's result: its verdict, and whether the error has a pattern.
void add_judgement(const std::string& folder, const Given& given, const Tensor& target, json& line) {
  NamedData inputs;
  for (const ValueId id : given.model->graph.inputs()) {
    const std::string& name = given.model->graph.value(id).name;
    inputs[name] = given.values.at(name);
  }
  const ModelGraph graph(given.model->graph, inputs);
  const auto region = graph.region({given.model->graph.output_names().at(0)}, inputs);
  if (!region) fail(ErrorKind::InvalidModel, folder, ": nothing makes its output");
  const std::vector<Data> exact = exact_results(*region);
  const std::vector<Data> found{target};
  const Judgement judged = judge_kernel(&*region, given.call->node.op, exact, found, {.always_floor = true}).at(0);
  line["verdict"] = name(judged.verdict);
  line["e"] = judged.metrics.excess_e ? json(*judged.metrics.excess_e) : json();
  line["p"] = judged.metrics.excess_p ? json(*judged.metrics.excess_p) : json();
  const auto pattern = error_pattern(*region, 0, target, 0);
  line["pattern"] = pattern ? json(pattern->fired) : json();
}

json named(const std::string& folder) {
  const Given given = read_folder(folder);
  const OpCall& call = *given.call;
  const Tensor target = read_onnx_tensor(folder + "/test_data_set_0/output_0.pb").tensor();
  const Expected expected = expected_output(call, given.inputs, 0);
  const Evidence evidence{call, given.inputs, 0, target, expected.exact, expected.spread, target.dtype()};
  const auto start = std::chrono::steady_clock::now();
  const CauseSearch search = search_cause(evidence);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  json line{{"folder", folder}, {"failed", search.failed}, {"untried", search.untried}, {"hypotheses", hypotheses_of(search)}};
  if (expected.shape == target.shape()) {
    const causes::Fit plain = causes::fit({expected.exact, expected.spread}, doubles(target), target.dtype());
    line["excess"] = plain.excess;
    line["worst"] = plain.worst;
    line["mismatches"] = plain.mismatches;
  } else {
    line["mismatches"] = target.elements();
  }
  add_judgement(folder, given, target, line);
  line["cause"] = search.cause ? json(search.cause->id) : json();
  if (search.cause) {
    line["also"] = search.cause->also;
    line["with"] = search.cause->with;
    line["text"] = search.cause->text;
    line["under"] = search.cause->excess;
  }
  line["seconds"] = seconds.count();
  return line;
}

}  // namespace
}  // namespace unmoor

int main(int count, char** arguments) {
  int status = 0;
  if (count >= 4 && std::string_view(arguments[1]) == "--reproduce") {
    try {
      unmoor::reproduce(arguments[2], arguments[3], count > 4);
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
      status = 1;
    }
    return status;
  }
  for (int i = 1; i < count; ++i) {
    nlohmann::json line;
    try {
      line = unmoor::named(arguments[i]);
    } catch (const std::exception& error) {
      line = {{"folder", arguments[i]}, {"error", error.what()}};
      status = 1;
    }
    // Infinite numbers become null.
    std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
  return status;
}
