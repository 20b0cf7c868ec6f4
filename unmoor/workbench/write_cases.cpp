#include "unmoor/workbench/write_cases.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/ops/cases.h"

namespace unmoor {
namespace {

namespace fs = std::filesystem;

// What the case's node gives, constants included among what it is given.
std::vector<Data> reference_outputs(const CaseGraph& built) {
  const Graph& graph = built.graph;
  const Node& node = graph.nodes().at(0);
  std::map<uint32_t, Data> given;
  for (size_t i = 0; i < graph.inputs().size(); ++i) given[static_cast<uint32_t>(graph.inputs()[i])] = built.inputs.at(i);
  std::vector<Data> inputs;
  for (const ValueId id : node.inputs) {
    inputs.push_back(id == no_value ? Data() : graph.value(id).constant ? *graph.value(id).constant : given.at(static_cast<uint32_t>(id)));
  }
  OpCall call = call_for(graph, node);
  call.outputs = infer_outputs(call);
  Outputs outputs(node.outputs.size());
  run_reference(call, inputs, outputs);
  return std::move(outputs.all());
}

void write_case(const std::string& text, const fs::path& folder) {
  const CaseGraph built = build_case(parse_case(text));
  const auto outputs = reference_outputs(built);
  const fs::path set = folder / "test_data_set_0";
  fs::create_directories(set);
  write_onnx(built.graph, folder / "model.onnx");  // Unfolded: who answers must see the node.
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    write_onnx_tensor(built.inputs[i], built.graph.value(built.graph.inputs()[i]).name, set / fmt::format("input_{}.pb", i));
  }
  size_t wanted = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (built.graph.nodes()[0].outputs[i] == no_value) continue;
    write_onnx_tensor(outputs[i], built.graph.output_names().at(wanted), set / fmt::format("output_{}.pb", wanted));
    ++wanted;
  }
  write_file(folder / "case.txt", text + "\n");
}

}  // namespace

size_t write_cases(const std::vector<std::string>& cases, const std::string& folder, const Progress& progress) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    fail(ErrorKind::InvalidArgument, "the folder ", folder, " is not empty; name a new one");
  }
  size_t written = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (progress) progress("cases", i, cases.size());
    if (cases[i].starts_with("unmoor:")) continue;
    const fs::path place = fs::path(folder) / fmt::format("{:05}", i);
    try {
      write_case(cases[i], place);
      ++written;
    } catch (const fs::filesystem_error& problem) {
      fail(ErrorKind::Io, "the case could not be written: ", problem.what());
    } catch (const Error& problem) {
      fs::remove_all(place, error);
      if (problem.kind() != ErrorKind::Unsupported) throw;
    }
  }
  return written;
}

}  // namespace unmoor
