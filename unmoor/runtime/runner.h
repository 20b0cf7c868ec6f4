#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unmoor/runtime/plan.h"

namespace unmoor {

using NamedData = std::map<std::string, Data, std::less<>>;

// A value as users know it: the file's name and layout.
struct ValueInfo {
  std::string name;
  Type type;
  std::string node;  // The node that makes it; empty for inputs.
  std::string op;    // As in the file.
};

// A step of a run, for tools that replay it alone.
struct StepInfo {
  std::string node;    // The file's name for it.
  std::string op;
  std::string kernel;
  std::string device;
  std::vector<std::string> inputs;   // Value names, constants left out, "" where absent.
  std::vector<std::string> outputs;
};

struct StepTrace {
  size_t step = 0;           // Index into Plan::steps.
  double milliseconds = 0;   // Device time where the device has clocks, else the host's with a wait around it.
  size_t copied_bytes = 0;   // Of a copy.
  std::string node;          // The file's name; empty for a copy.
  std::string op;
  std::string kernel;
  std::string device;
};

// Watches a run. Every tool is one of these. Without one nothing is recorded and nothing waits.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual bool wants(const ValueInfo&) { return false; }  // Asked once per value and run.
  virtual void on_value(const ValueInfo&, const Data&) {}  // A wanted value, on the host, valid during the call unless copied.
  virtual bool wants_steps() { return false; }
  virtual void on_step(const StepTrace&) {}
};

// The plan as JSON values of cli.md's `run`, without JSON in this header: filled by runners that have a plan.
struct PlacementInfo {
  std::string node;
  std::string op;
  std::string device;
  std::string kernel;
  std::string state;  // name(State)
  struct Refused {
    std::string device;
    std::string kernel;
    std::string reason;
    std::string detail;
  };
  std::vector<Refused> refusals = {};
  std::vector<Refused> later = {};     // The device's kernels for the operator that come after the one chosen; no reason: it would take the node, too.
  std::vector<std::string> also = {};  // Further nodes of the file that this one stands for.
  std::string category = {};           // Of the operator that runs: name(Category).
};
struct CopyInfo {
  std::string value;
  std::string before;  // The node it is for.
  std::string from;
  std::string to;
  size_t bytes = 0;
};
struct PlanInfo {
  std::vector<std::string> devices;
  std::vector<std::map<std::string, std::string>> versions;  // By device: "driver", "runtime", … as far as it says.
  std::vector<PlacementInfo> placements;  // In order of the run; those of bodies behind.
  std::vector<CopyInfo> copies;
  size_t fallback_nodes = 0;
  std::string fallback_summary;
  std::vector<std::string> notes = {};  // Device::notes of its devices.
  NodeNames kept_float32 = {};          // As in Plan.
  std::vector<KeptFloat32::Left> left_narrow = {};
};
PlanInfo plan_info(const Plan& plan);

// Something that runs a model: our runtime here or in a worker, a foreign engine, a dump. What every tool drives.
// One thread at a time.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::string name() const = 0;  // "cpu", "opencl:0"
  virtual std::vector<ValueInfo> inputs() const = 0;
  virtual std::vector<ValueInfo> outputs() const = 0;
  virtual std::vector<ValueInfo> values() const = 0;  // Everything an observer may be shown, in order.
  // Inputs by name, all of them; outputs by name. Fails with InvalidArgument on a missing, unknown or ill-typed input.
  virtual NamedData run(const NamedData& inputs, Observer* observer = nullptr) = 0;
  // Milliseconds of runs in a row on these inputs, each synchronised, measured where the model runs: at least `count`, and
  // more until `seconds` have passed. The first call may include a first run's extra work; ask for one run first.
  virtual std::vector<double> time_runs(const NamedData& inputs, size_t count, double seconds) = 0;
  // The planned steps whose kernels can be run alone, and one of them on given inputs (by its StepInfo::inputs).
  virtual std::vector<StepInfo> steps() const { return {}; }
  virtual std::vector<Data> run_step(size_t step, const NamedData& inputs);
  virtual PlanInfo plan() { return {}; }         // Of the run before, or of the default shapes. Empty where nothing is planned.
  virtual size_t peak_bytes() const { return 0; }  // Memory that the process held at most, where it runs.
  virtual double load_ms() const { return 0; }
  virtual double prepare_ms() const { return 0; }
};

}  // namespace unmoor
