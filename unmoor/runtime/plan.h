#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "unmoor/hal/kernel.h"
#include "unmoor/passes/keep_float32.h"
#include "unmoor/passes/pass.h"

namespace unmoor {

class SharedConstants;

enum class Fallback {
  Forbid,  // Planning fails before anything runs and lists every node that the first device refused.
  Report,  // The plan records each one with its reasons.
};

// One kernel that was asked and said no.
struct Refusal {
  std::string device;
  std::string kernel;  // Empty if the device has no kernel for the operator.
  Support why;
};

// How a node came to its device.
enum class State : uint8_t {
  Native,    // A kernel of the wanted device.
  Expanded,  // As part of an expansion, on the wanted device.
  Fallback,  // Refused by the wanted device.
  Choice,    // Taken by the wanted device, but left with its fallen-back neighbours to save copies.
  Host,      // Shape arithmetic and control flow: small host work that is no fallback.
  Nobody,    // No device takes it. Only in plans that are made to be read.
};
std::string_view name(State state);

struct Placement {
  NodeId node{};
  size_t device = 0;         // Index into Plan::devices.
  std::string kernel;        // Empty if it is chosen at run time, when shapes are known.
  State state = State::Native;
  std::vector<Refusal> refusals = {};
};

struct RunStep {
  size_t placement = 0;
  const Kernel* kernel = nullptr;                     // Null: chosen at run time, when shapes are known.
  std::shared_ptr<const Prepared> prepared = nullptr;  // Shared by sessions. Null for evaluate kernels and at run time.
};
struct CopyStep {
  ValueId value{};
  size_t from = 0;
  size_t to = 0;
  size_t bytes = 0;  // 0 if known only at run time.
};
// Control flow: bodies are planned when their input types are known.
struct CallStep {
  size_t placement = 0;
};
using Step = std::variant<RunStep, CopyStep, CallStep>;

// Where a value lies in its device's arena; nowhere if its size is not known.
struct Slot {
  size_t offset = 0;
  size_t bytes = 0;
  bool planned = false;
};

struct MemoryPlan {
  std::vector<size_t> arena_bytes;           // By device.
  std::vector<size_t> workspace_bytes;       // By device: the largest of any step.
  std::vector<std::vector<Slot>> slots;      // By device and value.
};

struct PlanOptions {
  Fallback fallback = Fallback::Report;
  InputShapes shapes = {};
  PassOptions passes = {};
  NodeNames keep_float32 = {};   // Nodes of the file that run in float32 in a model of 16 bits; not those in bodies of control flow.
  bool place_only = false;       // Decides where nodes run and prepares nothing: such a plan can be read, not run.
  std::string only_kernel = {};  // Force kernels of this name where they support the call: for conformance.
  std::shared_ptr<SharedConstants> constants = {};  // Shared by the plans of one model; without it each plan uploads its own.
};

// A graph bound to devices: what runs where, in what order, with what copies, and why. Immutable once made; sessions share it.
struct Plan {
  Graph graph;                                   // After passes and expansion, all types inferred.
  std::vector<std::shared_ptr<Device>> devices;  // Most wanted first; the last is a host device.
  std::vector<Placement> placements;             // By node.
  std::vector<Step> steps;
  MemoryPlan memory;
  std::map<std::pair<size_t, uint32_t>, std::shared_ptr<Buffer>> constants;  // By device and value: weights on devices.
  PlanOptions options;
  NodeNames kept_float32;                        // Nodes of the file that run in float32 because that was asked for.
  std::vector<KeptFloat32::Left> left_narrow;    // Those that could not.
  double prepare_ms = 0;

  size_t fallback_count() const;   // Nodes in state Fallback.
  size_t copy_count() const;
  size_t copied_bytes() const;
  // One line per reason, with counts and the nodes that matter. Empty if nothing fell back.
  std::string fallback_summary() const;
};

// Plans and prepares. Fails with InvalidArgument if the last device is no host device; under Forbid with Unsupported, listing every refused node
// with its reasons, those in bodies of control flow too as far as their input types are known.
std::shared_ptr<const Plan> make_plan(const Graph& graph, std::vector<std::shared_ptr<Device>> devices, const PlanOptions& options);
// For bodies of control flow.
std::shared_ptr<const Plan> make_body_plan(const Graph& body, const std::vector<InputBinding>& inputs, const Plan& parent);
// What is known of a body's inputs before it runs: for a Loop or a Scan, those of its first round. Types may be unknown.
std::vector<InputBinding> body_inputs(const Graph& graph, const Node& node, const Graph& body);

}  // namespace unmoor
