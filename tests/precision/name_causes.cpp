// Names the cause of each folder given: model.onnx of one node, test_data_set_0/input_k.pb, and output_0.pb as a target gave it.
// A line of JSON each.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/cause.h"
#include "unmoor/workbench/causes/score.h"

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

json named(const std::string& folder) {
  const auto start = std::chrono::steady_clock::now();
  const Model model = read_onnx(folder + "/model.onnx");
  const Graph& graph = model.graph;
  if (graph.nodes().size() != 1) fail(ErrorKind::InvalidModel, folder, " has ", graph.nodes().size(), " nodes, not 1");
  const Node& node = graph.nodes()[0];
  std::map<ValueId, Data> given;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId id = graph.inputs()[i];
    given[id] = read_onnx_tensor(cat(folder, "/test_data_set_0/input_", i, ".pb"), &graph.value(id).type);
  }
  OpCall call{node, {}, {}, {}};
  std::vector<Data> inputs;
  for (const ValueId id : node.inputs) {
    inputs.push_back(id == no_value ? Data() : graph.value(id).constant ? *graph.value(id).constant : given.at(id));
    call.inputs.push_back(id == no_value ? std::nullopt : std::optional<Type>(type_of(inputs.back())));
    call.constants.push_back(graph.constant_tensor(id));
  }
  call.outputs = infer_outputs(call);
  const Tensor target = read_onnx_tensor(folder + "/test_data_set_0/output_0.pb").tensor();
  const Expected expected = expected_output(call, inputs, 0);
  const Evidence evidence{call, inputs, 0, target, expected.exact, expected.spread, target.dtype()};
  const CauseSearch search = search_cause(evidence);
  json line{{"folder", folder}, {"failed", search.failed}, {"untried", search.untried}, {"hypotheses", hypotheses_of(search)}};
  if (expected.shape == target.shape()) {
    const causes::Fit plain = causes::fit({expected.exact, expected.spread}, doubles(target), target.dtype());
    line["excess"] = plain.excess;
    line["worst"] = plain.worst;
    line["mismatches"] = plain.mismatches;
  } else {
    line["mismatches"] = target.elements();
  }
  line["cause"] = search.cause ? json(search.cause->id) : json();
  if (search.cause) {
    line["also"] = search.cause->also;
    line["with"] = search.cause->with;
    line["text"] = search.cause->text;
    line["under"] = search.cause->excess;
  }
  line["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return line;
}

}  // namespace
}  // namespace unmoor

int main(int count, char** arguments) {
  int status = 0;
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
