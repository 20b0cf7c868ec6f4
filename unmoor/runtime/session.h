#pragma once

#include <memory>
#include <vector>

#include "unmoor/runtime/recent.h"
#include "unmoor/runtime/runner.h"

namespace unmoor {

// Runs a plan: streams, arenas and intermediate buffers of one caller. One thread at a time; make one session per thread. ModelRunner is the
// Runner made of sessions; what a function here does is said at Runner's function of the same name.
class Session {
 public:
  explicit Session(std::shared_ptr<const Plan> plan);  // Shared: many sessions run one plan.
  ~Session();

  const Plan& plan() const;
  // Where each node runs, bodies of control flow included as far as they have run.
  PlanInfo plan_info() const;
  std::vector<ValueInfo> values() const;
  NamedData run(const NamedData& inputs, Observer* observer = nullptr);
  std::vector<double> time_runs(const NamedData& inputs, size_t count, double seconds);
  std::vector<StepInfo> steps() const;
  std::vector<Data> run_step(size_t step, const NamedData& inputs);
  // Graph inputs and outputs by position: how bodies of control flow run.
  std::vector<Data> run_in_order(std::vector<Data> inputs, Observer* observer = nullptr);
  // Steps prepared again because a shape became known only during a run.
  size_t late_preparations() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// A model on devices with a plan per set of input shapes, made at first use and kept. One thread at a time.
class ModelRunner : public Runner {
 public:
  ModelRunner(std::shared_ptr<const Graph> graph, std::vector<std::shared_ptr<Device>> devices, PlanOptions options);

  // The session for these inputs' shapes, planned if new.
  Session& session_for(const NamedData& inputs);
  // The session used last; if there is none, one for the shapes of the options (unnamed dimensions as 1).
  Session& default_session();

  std::string name() const override;
  std::vector<ValueInfo> inputs() const override;
  std::vector<ValueInfo> outputs() const override;
  std::vector<ValueInfo> values() const override;
  NamedData run(const NamedData& inputs, Observer* observer = nullptr) override;
  std::vector<double> time_runs(const NamedData& inputs, size_t count, double seconds) override;
  std::vector<StepInfo> steps() const override;
  std::vector<Data> run_step(size_t step, const NamedData& inputs) override;
  PlanInfo plan() override;
  size_t peak_bytes() const override;
  double prepare_ms() const override;
  double load_ms() const override { return load_ms_; }
  void set_load_ms(double milliseconds) { load_ms_ = milliseconds; }  // What reading the model took.

 private:
  // A session with a plan for these shapes, made if new.
  Session& session_of(const std::string& key, const InputShapes& shapes);

  double load_ms_ = 0;
  double prepare_ms_ = 0;  // Of the newest plan.
  std::shared_ptr<const Graph> graph_;     // Shared with the caller, who may plan it for other devices too.
  std::unique_ptr<const Graph> prepared_;  // What does not depend on shapes, done once.
  std::vector<std::shared_ptr<Device>> devices_;
  PlanOptions options_;
  Recent<std::string, std::unique_ptr<Session>> sessions_;  // By shapes, as text.
  Session* last_ = nullptr;
};

}  // namespace unmoor
