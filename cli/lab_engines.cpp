#include <algorithm>
#include <functional>
#include <set>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/error.h"
#include "unmoor/engines/failure.h"

namespace unmoor::cli {
namespace {

// What nodes of the file make, under the file's names, with inferred types where they are known.
std::vector<ValueInfo> made_values(const Graph& typed) {
  std::vector<ValueInfo> values;
  for (const Node& node : typed.nodes()) {
    for (const ValueId id : node.outputs) {
      if (id == no_value || typed.value(id).constant) continue;
      const Value& value = typed.value(id);
      const std::string& name = value.origin.name.empty() ? value.name : value.origin.name;
      if (!name.empty())
        values.push_back({name, value.type, node.origin.name, node.origin.op.empty() ? node.op : node.origin.op});
    }
  }
  return values;
}

std::vector<ValueInfo> declared_outputs(const Model& model, const Graph& typed) {
  std::vector<ValueInfo> outputs;
  for (size_t i = 0; i < model.graph.outputs().size(); ++i) {
    outputs.push_back({model.graph.output_names()[i], typed.value(typed.outputs()[i]).type, "", ""});
  }
  return outputs;
}

// Keeps values of some names, of a run that shows all.
class Picker : public Observer {
 public:
  explicit Picker(const std::vector<std::string>& names) : names_(names.begin(), names.end()) {}
  bool wants(const ValueInfo& info) override { return names_.contains(info.name); }
  void on_value(const ValueInfo& info, const Data& data) override {
    if (data.is_tensor()) found[info.name] = data.tensor().clone();
  }
  NamedData found;

 private:
  std::set<std::string, std::less<>> names_;
};

// Whether flags that choose among Unmoor's kernels have something to choose.
bool uses_own_device(const Options& options) {
  if (options.tool == "migrate") return true;
  std::vector<std::string> used = options.devices;
  if (options.tool == "align") used = {options.reference, options.target, options.baseline.empty() ? options.target : options.baseline};
  return !std::ranges::all_of(used, is_engine);
}

// Fails with InvalidArgument on what an engine cannot be told.
void check_options(const Options& options, const EngineName& name) {
  if (options.exact && !uses_own_device(options)) {
    fail(ErrorKind::InvalidArgument, "--exact chooses among Unmoor's kernels; ", name.text(), " has its own");
  }
  const bool told = name.engine == "ort" || name.text() == "torch:cpu";
  if (options.fallback == "forbid" && !told) {
    fail(ErrorKind::InvalidArgument, name.text(),
         " cannot be told to keep off the host: --fallback forbid is for Unmoor's devices and ort");
  }
  if (!options.keep_float32.empty() && options.tool == "run")
    fail(ErrorKind::InvalidArgument, "--keep-float32 is for Unmoor's devices, and ", name.text(), " is an engine of its own");
  if (options.no_fuse && !uses_own_device(options)) {
    fail(ErrorKind::InvalidArgument, "--no-fuse is for Unmoor's devices",
         name.engine == "ort" ? "; ONNX Runtime has --set ort.optimize=off" : "");
  }
}

// One placement a node of the file, bodies of control flow included.
void add_nodes(const Graph& graph, const std::string& prefix,
               const std::function<PlacementInfo(const std::string&, const std::string&)>& place,
               std::vector<PlacementInfo>& placements) {
  for (const Node& node : graph.nodes()) {
    const std::string label = prefix + (node.origin.name.empty() ? node.name : node.origin.name);
    placements.push_back(place(label, node.origin.op.empty() ? node.op : node.origin.op));
    for (const auto& [key, attribute] : node.attributes) {
      const auto* const body = std::get_if<SubGraph>(&attribute);
      if (body != nullptr && *body != nullptr) add_nodes(**body, cat(label, "/", key, "/"), place, placements);
    }
  }
}

// Whether an engine's spelling means this operator of the file: "Conv", "com.example:Conv" or "aten::conv" for Conv.
bool is_op(const std::string& theirs, const std::string& op) {
  if (theirs == op) return true;
  const std::string& longer = theirs.size() > op.size() ? theirs : op;
  return longer.ends_with(cat(":", theirs.size() > op.size() ? op : theirs));
}

// What an engine that says little lets one know: `reason` is why it did not load the model, empty if it did. The node that it
// stopped at is known where it named the node, or an operator that only one node has.
void say_why_unknown(std::vector<PlacementInfo>& placements, const std::string& engine, const FailureReading& failure,
                     const std::string& reason) {
  const auto suspected = [&](const PlacementInfo& placed) {
    return !reason.empty() && (failure.layer.empty() ? is_op(failure.op, placed.op) : placed.node == failure.layer);
  };
  const auto count = std::ranges::count_if(placements, suspected);
  for (PlacementInfo& placed : placements) {
    const bool one_of = suspected(placed);
    if (one_of && count == 1) placed.state = "unsupported";
    const std::string detail = reason.empty() ? cat(engine, " does not say where it runs a node")
                               : count == 0   ? reason
                               : one_of       ? (count == 1 ? reason : cat("it may be this node: ", reason))
                                              : cat(engine, " stopped at another node");
    placed.refusals = {{engine, "", one_of && count == 1 ? "no-kernel" : "", detail}};
  }
}

}  // namespace

std::unique_ptr<Runner> Lab::engine_runner(const EngineName& name) const {
  check_options(options_, name);
  const Graph typed_graph = typed();
  EngineRequest request;
  request.name = name;
  request.model = model_->path;
  request.python = options_.python;
  request.settings = settings_of(options_, name);
  request.threads = options_.threads;
  request.forbid = options_.fallback == "forbid";
  request.inputs = declared_inputs(*model_);
  request.outputs = declared_outputs(*model_, typed_graph);
  request.values = made_values(typed_graph);
  request.note = [this](const std::string& text) {
    if (!options_.is_part && said_.insert(text).second) show_note(text);
  };
  request.known_values = [this](const NamedData& inputs, const std::vector<std::string>& names) {
    PlanOptions options = plan_options();
    options.passes.fuse = false;
    Picker picker(names);
    (void)runner("cpu", options)->run(inputs, &picker);
    return std::move(picker.found);
  };
  return make_engine_runner(std::move(request));
}

PlanInfo Lab::engine_placement(const EngineName& name) const {
  PlanInfo plan;
  FailureReading failure;
  std::string reason;
  try {
    plan = engine_runner(name)->plan();
  } catch (const Error& error) {
    failure = read_failure(error.what());
    if (error.kind() != ErrorKind::Device || (failure.op.empty() && failure.layer.empty())) throw;
    reason = error.what();
    plan.devices = {name.text()};
  }
  const bool whole = name.text() == "ort:cpu" && reason.empty();  // It loads a model only if each node has a kernel there.
  const auto place = [&](const std::string& node, const std::string& op) {
    return PlacementInfo{node, op, name.text(), whole ? "ONNX Runtime's" : "", whole ? "native" : "unknown"};
  };
  add_nodes(model_->graph, "", place, plan.placements);
  if (!whole) say_why_unknown(plan.placements, name.text(), failure, reason);
  return plan;
}

}  // namespace unmoor::cli
