#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "cli/devices.h"
#include "cli/options.h"
#include "unmoor/engines/engine.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/runtime/worker.h"
#include "unmoor/workbench/align.h"
#include "unmoor/workbench/inputs.h"

namespace unmoor::cli {

// What a tool works with: the model, read once, and the runners and inputs that the options ask for.
class Lab {
 public:
  // `given`: inputs instead of those that the options name files of.
  explicit Lab(const Options& options, std::optional<NamedData> given = std::nullopt);

  const Options& options() const { return options_; }
  const Model& model() const { return *model_; }
  double load_ms() const { return load_ms_; }

  // A runner on the device: in this process for host devices, else in a worker. `apart` asks for a worker in any case, so that peers do not share
  // caches and threads.
  std::unique_ptr<Runner> runner(const std::string& device, PlanOptions options = {}, bool apart = false) const;
  // A foreign engine, in the user's Python.
  std::unique_ptr<Runner> engine_runner(const EngineName& name) const;
  // What is known of where an engine runs each node, from loading the model in it: little. Fails if it does not load, and not because of a node.
  PlanInfo engine_placement(const EngineName& name) const;
  // Where each node would run, without preparing it.
  PlanInfo placement(const std::string& device) const;
  // The file with its types inferred for the shapes that are used.
  Graph typed() const;
  // Given inputs, and generated ones for the rest.
  NamedData inputs() const;
  bool is_given(const std::string& input) const { return given_.contains(input); }
  // The model with every node in float32 and nothing fused, on the cpu device's kernels that are exact but for the order of sums.
  std::unique_ptr<ModelRunner> float32_runner() const;
  const NodeNames& keep_float32() const { return keep_; }  // Nodes that --keep-float32 names.
  PlanOptions plan_options() const;  // Fallback, shapes and fusing as the options say.
  // What was chosen where the user left it open, in a line; empty if nothing.
  const std::string& note() const { return chosen_.note; }

 private:
  const Options& options_;
  std::shared_ptr<const Model> model_;  // Shared with runners, which hold its graph.
  double load_ms_ = 0;
  NamedData given_;       // Inputs from files.
  ChosenShapes chosen_;
  NodeNames keep_;
  mutable std::set<std::string> said_;  // Notes of engines: opened again, they say the same.
};

std::vector<ValueInfo> declared_inputs(const Model& model);
// The settings of one device from --set DEVICE.KEY=VALUE, --threads and --exact.
Settings settings_of(const Options& options, const DeviceName& device);
// The same of an engine: without --threads and --exact, which are not settings of one.
Settings settings_of(const Options& options, const EngineName& engine);
// Fails with InvalidArgument on a setting that is none, or that is for a device that this call does not use.
void check_settings(const Options& options);
// The versions of a plan's devices, and its notes, into a result's environment.
void add_versions(nlohmann::json& result, const PlanInfo& plan);
// One side of align: a device, an engine or a dump; the reference backend runs in float64 with every value of the file.
std::unique_ptr<Runner> align_side(const Lab& lab, const std::string& name, bool is_reference, bool fuse);
// Aligns two runners that were opened by these names, against the baseline if the options name one; where they differ inside a fused
// step, once more without fusing.
AlignResult aligned(const Lab& lab, const std::string& reference_name, Runner& reference, const std::string& target_name, Runner& target,
                    const NamedData& inputs, AlignOptions options);
// The worker's side of Lab::runner.
std::unique_ptr<ModelRunner> open_for_worker(const WorkerRequest& request);

}  // namespace unmoor::cli
