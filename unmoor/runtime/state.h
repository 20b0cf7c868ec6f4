#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unmoor/runtime/constants.h"
#include "unmoor/runtime/session.h"

namespace unmoor {

// What makes two calls need the same prepared kernel or the same body plan: types, and the values of small tensors, as text.
std::string binding_key(const std::vector<Data>& inputs, bool with_values);
// Small integer tensors decide shapes, so plans and kernels may use their values.
bool is_shape_like(const Data& data);

// Bodies of control flow: a session per body and kind of input, made at first use. Of each body the ones used last are kept: a Loop whose state
// grows needs a new one every round.
class BodySessions {
 public:
  explicit BodySessions(const Plan& parent) : parent_(parent) {}
  // `bind_values`: small integer inputs become constants of the body's plan, as long as they do not vary too much.
  Session& get(const Graph& body, const std::vector<Data>& inputs, bool bind_values);
  // A session for inputs of these types, which may leave dimensions open: what depends on them is prepared as they come.
  Session& get(const Graph& body, const std::vector<Type>& types);
  // Those that were made for a body and are still kept.
  std::vector<const Session*> of(const Graph& body) const;
  size_t planned() const { return planned_; }

 private:
  struct Sessions {
    Recent<std::string, std::unique_ptr<Session>> by_inputs{16};
    size_t value_plans = 0;  // Plans made for certain values.
  };
  const Plan& parent_;
  std::map<const Graph*, Sessions> sessions_;
  size_t planned_ = 0;
};

// Runs a control-flow node. `inputs` by position, absent ones empty. Values of the bodies are shown as node/branch/value#iteration.
std::vector<Data> run_control_flow(const Node& node, std::vector<Data> inputs, BodySessions& bodies, Observer* observer);

// The buffers and streams of one session, and how each kind of step runs on them.
class Session::State {
 public:
  explicit State(std::shared_ptr<const Plan> plan);

  std::vector<Data> run(std::vector<Data> inputs, Observer* observer);
  std::vector<Data> run_alone(size_t step, const std::vector<Data>& inputs);
  Data checked_input(size_t index, const Data& data) const;

  const Plan& plan() const { return *plan_; }
  PlanInfo plan_info() const;  // With the bodies that have run.
  const std::vector<ValueInfo>& infos() const { return infos_; }  // By value; name empty where the file has none.
  size_t late_preparations() const { return late_ + bodies_.planned(); }
  const Placement& placement_of(const Step& step) const;
  const Node& node_of(const Step& step) const { return plan_->graph.node(placement_of(step).node); }

 private:
  // A kernel chosen and prepared at run time, for one kind of input.
  struct Late {
    const Kernel* kernel = nullptr;
    std::shared_ptr<const Prepared> prepared = nullptr;  // Shared with the call that runs it while the cache may drop it.
    std::vector<Type> outputs = {};
  };

  void execute_step(const Step& step, Observer* observer);
  void run_steps(Observer* observer);
  void execute(const Step& step, Observer* observer);
  void run_step(const RunStep& step);
  void run_buffers(const RunStep& step, const Placement& placement);
  void run_values(const Kernel& kernel, const OpCall& call, const Placement& placement);
  void run_late(const RunStep& step);
  OpCall late_call(const Node& node, const std::vector<Data>& inputs, bool with_values) const;
  const Late& late_for(const OpCall& call, Device& device, const std::string& binding);
  void copy_step(const CopyStep& step);
  void call_step(const CallStep& step, Observer* observer);
  void trace(size_t index, const Step& step, Observer& observer);
  void show(const Step& step, Observer& observer);
  void release(size_t step);

  Data host_data(ValueId id);                // The value on the host, a view where it lies in the arena.
  Data anywhere(ValueId id, size_t device);  // The same, downloaded if it is on another device.
  Operand operand(size_t device, ValueId id);
  Operand output_operand(size_t device, ValueId id);
  Tensor output_tensor(ValueId id);
  Data detached(Data data) const;  // A copy where it looks into an arena.
  void keep(ValueId id, Data made);  // As a value on the host. Fails with Internal if it is not of the type that was planned.
  std::vector<Data> gather(const Node& node);
  const OpCall& call_of(const Placement& placement);
  void synchronize(size_t device);  // Waits for the device; uploads to it are done then.
  void finish_uploads();
  void abandon_uploads();  // Waits too, and swallows what went wrong.
  // Whatever ends a run, nothing reads the caller's memory any more.
  struct UploadsEnd {
    explicit UploadsEnd(State& state) : state_(state) {}
    ~UploadsEnd() { state_.abandon_uploads(); }
    UploadsEnd(const UploadsEnd&) = delete;
    UploadsEnd& operator=(const UploadsEnd&) = delete;
    State& state_;
  };
  Operand workspace(size_t device, size_t bytes);
  bool is_planned(size_t device, ValueId id) const { return plan_->memory.slots[device][Graph::index(id)].planned; }

  std::shared_ptr<const Plan> plan_;  // Shared with the caller and other sessions.
  size_t host_;
  std::vector<ValueInfo> infos_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::shared_ptr<Buffer>> arenas_;      // Shared with views of the values in them.
  std::vector<std::shared_ptr<Buffer>> workspaces_;  // As Device::allocate gives them.
  std::vector<std::vector<Data>> uploading_;         // By device: what its stream may still be reading.
  std::vector<Data> host_values_;
  std::vector<std::vector<size_t>> freed_after_;  // By step: host values that nothing needs any more.
  std::vector<Tensor> pool_;                      // By value: memory of past outputs, used again once the caller let go.
  std::vector<std::unique_ptr<OpCall>> calls_;    // By node.
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  std::vector<std::shared_ptr<Buffer>> held_;  // Buffers that the running step looks at.
  std::map<const Node*, Recent<std::string, Late>> late_cache_;  // By kind of inputs.
  size_t late_ = 0;
  BodySessions bodies_;
};

// Types, names and makers of a plan's values, in the file's terms. By value. What a node made that only changes a value's layout has no name: it is
// the value that was there before.
std::vector<ValueInfo> value_infos(const Graph& graph);
// True for such a node.
bool changes_layout(const Graph& graph, const Node& node);
// A value as the file lays it out, whatever passes made of it, and back.
Data in_file_layout(const Value& value, Data data);
Data in_plan_layout(const Value& value, Data data);
size_t peak_memory_bytes();  // Of this process so far.

}  // namespace unmoor
