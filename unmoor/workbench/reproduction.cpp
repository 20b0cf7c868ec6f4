#include "unmoor/workbench/reproduction.h"

#include <fmt/format.h>

#include <filesystem>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/ops/builder.h"
#include "unmoor/workbench/reproduction_file.h"

namespace unmoor {
namespace {

namespace fs = std::filesystem;

// Adds a node, or what it stands for where other runtimes do not know it. Returns its outputs.
std::vector<ValueId> add_standard(GraphBuilder& builder, const Node& node, const std::vector<ValueId>& inputs) {
  const Op* const op = all_ops().find(node.op);
  if (!node.op.starts_with("unmoor:") || op == nullptr || !op->expand) {
    return builder.add_many(node.op, inputs, node.attributes, node.outputs.size());
  }
  OpCall call{node, {}, {}, {}};
  for (const ValueId id : inputs) {
    call.inputs.push_back(id == no_value ? std::nullopt : std::optional(builder.type(id)));
    call.constants.push_back(nullptr);
  }
  call.outputs = infer_outputs(call);
  const Graph inner = expanded(call);
  std::vector<ValueId> places(inner.values().size(), no_value);
  size_t next = 0;
  for (const ValueId id : inputs) {
    if (id != no_value) places[Graph::index(inner.inputs().at(next++))] = id;
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& constant = inner.values()[i].constant;
    if (constant && constant->is_tensor()) places[i] = builder.constant(constant->tensor());
  }
  for (const Node& each : inner.nodes()) {
    std::vector<ValueId> in;
    for (const ValueId id : each.inputs) in.push_back(id == no_value ? no_value : places[Graph::index(id)]);
    const auto made = add_standard(builder, each, in);
    for (size_t i = 0; i < made.size() && i < each.outputs.size(); ++i) {
      if (each.outputs[i] != no_value) places[Graph::index(each.outputs[i])] = made[i];
    }
  }
  std::vector<ValueId> outputs(node.outputs.size(), no_value);
  for (size_t i = 0; i < inner.outputs().size(); ++i) {
    const size_t place = std::stoul(inner.output_names()[i].substr(std::string_view("output_").size()));
    if (place < outputs.size()) outputs[place] = places[Graph::index(inner.outputs()[i])];
  }
  return outputs;
}

// The call as a graph of its own; `given` are the values of its inputs in order.
Graph graph_of(const OpCall& call, std::span<const Data> inputs, std::span<const Data> outputs, std::vector<Data>& given) {
  Graph graph;
  graph.set_name("reproduction");
  std::vector<ValueId> ids;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) {
      ids.push_back(no_value);
    } else if (call.constant(i) != nullptr) {
      ids.push_back(graph.add_constant(fmt::format("input_{}", i), inputs[i]));
    } else {
      ids.push_back(graph.add_input(fmt::format("input_{}", i), type_of(inputs[i])));
      given.push_back(inputs[i]);
    }
  }
  GraphBuilder builder(graph, call, ids);
  Node node = call.node;
  const auto made = add_standard(builder, node, ids);
  for (size_t i = 0; i < made.size() && i < outputs.size(); ++i) {
    if (made[i] == no_value || !outputs[i]) continue;
    graph.set_type(made[i], type_of(outputs[i]));
    graph.mark_output(made[i], fmt::format("output_{}", i));
  }
  return graph;
}

constexpr const char* replay = R"(import glob, os, numpy as np, onnx, onnxruntime as ort
from onnx import numpy_helper
os.chdir(os.path.dirname(os.path.abspath(__file__)))
def read(kind):
    files = [f"test_data_set_0/{{kind}}_{{k}}.pb" for k in range(len(glob.glob(f"test_data_set_0/{{kind}}_*.pb")))]
    return [numpy_helper.to_array(onnx.TensorProto.FromString(open(file, "rb").read())) for file in files]
session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
made = session.run(None, {{i.name: x for i, x in zip(session.get_inputs(), read("input"))}})
for name, a, e in zip([o.name for o in session.get_outputs()], made, read("output")):
    print(name, a.dtype, a.shape, "largest difference", np.nanmax(np.abs(a.astype(float) - e.astype(float)), initial=0)))";

void write_readme(const OpCall& call, const std::string& device, bool as_in_file, const fs::path& folder) {
  const std::string& name = call.node.origin.name.empty() ? call.node.name : call.node.origin.name;
  std::string text = fmt::format("# {} '{}' alone\n\n", call.node.op, name);
  text += as_in_file ? "The node as its file has it, in the file's opset.\n" : "The node in the newest form of its operator.\n";
  text += fmt::format(
      "`test_data_set_0` has what it was given and what it should give, computed in float64 and stored in its own dtype.\n\n"
      "Here, in this folder:\n\n    unmoor conformance --onnx-tests . --on {}\n\n",
      device);
  text += "Under ONNX Runtime:\n\n    python replay.py\n";
  write_file((folder / "README.md").string(), text);
  write_file((folder / "replay.py").string(), fmt::format(fmt::runtime(replay)) + "\n");
}

void make_folder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    fail(ErrorKind::InvalidArgument, "the folder ", folder, " is not empty; name a new one");
  }
  fs::create_directories(fs::path(folder) / "test_data_set_0", error);
  if (error) fail(ErrorKind::Io, "the folder ", folder, " cannot be made: ", error.message());
}

void write_values(std::span<const Data> values, const char* kind, const std::string& folder) {
  for (size_t i = 0; i < values.size(); ++i) {
    write_onnx_tensor(values[i], fmt::format("{}_{}", kind, i), fmt::format("{}/test_data_set_0/{}_{}.pb", folder, kind, i));
  }
}

}  // namespace

Reproduction write_reproduction(const OpCall& call, std::span<const Data> inputs, std::span<const Data> outputs,
                                const std::string& folder, const std::string& device, const std::optional<FileNode>& file) {
  make_folder(folder);
  Reproduction result;
  std::vector<Data> given;
  const std::string model = (fs::path(folder) / "model.onnx").string();
  if (file) {
    try {
      const FileModel copied = copied_from_file(call, outputs, *file);
      for (const std::string& name : copied.inputs) given.push_back(file->values.find(name)->second);
      write_file(model, copied.bytes);
      result.as_in_file = true;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      result.why_not = error.what();
    }
  }
  if (!result.as_in_file) {
    given.clear();
    write_onnx(graph_of(call, inputs, outputs, given), model);
  }
  std::vector<Data> wanted;
  for (const Data& data : outputs) {
    if (data) wanted.push_back(data);
  }
  write_values(given, "input", folder);
  write_values(wanted, "output", folder);
  write_readme(call, device, result.as_in_file, folder);
  return result;
}

}  // namespace unmoor
