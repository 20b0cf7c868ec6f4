#pragma once

#include <chrono>

#include "unmoor/base/error.h"
#include "unmoor/workbench/causes/cause.h"
#include "unmoor/workbench/causes/score.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {

// One variant of one hypothesis, or of two at once.
struct Trial {
  const Entry* entry = nullptr;
  const Entry* with = nullptr;
  std::vector<size_t> path = {};
  Change change = {};
  bool possible = false;  // It can be computed, and predicts something.
  bool sampled = false;   // `fit` is by a spread of its own, from noise runs.
  Fit fit = {};

  bool is_noise() const { return change.arithmetic.has_value(); }
  int cost() const { return entry->cost + (with == nullptr ? 0 : 100 + with->cost); }
  std::string id() const;  // "missing-bias", "missing-bias+result-float16".
};

// The node in question: what is compared, all of it or a sample, and how trials fit. One thread at a time.
class Subject {
 public:
  // `evidence`, `options` and `search`, which takes notes, must outlive it.
  Subject(const Evidence& evidence, const CauseOptions& options, CauseSearch& search);

  // Rewrites hold copies of inputs: what a sample could not make small is not to be searched.
  bool is_too_large() const;
  const Node& node() const { return node_; }
  const std::vector<Data>& inputs() const { return inputs_; }
  // What a hypothesis rewrites: the sample's inputs, or all of them where a rewrite of a part is no part of the rewrite.
  const std::vector<Data>& inputs_for(const Entry& entry) const { return runs_whole(entry) ? whole_inputs_ : inputs_; }
  bool runs_whole(const Entry& entry) const;
  size_t elements() const { return target_.size(); }
  const Fit& unchanged() const { return null_fit_; }
  // A node that was made of it, on inputs in the same order.
  Situation situation(const OpCall& call, std::span<const Data> inputs) const;

  // A first score of every trial by the spread of the unchanged node, then noise runs of their own for the best and for those
  // that predict larger errors. Notes what failed and what time did not suffice for.
  void evaluate(std::vector<Trial>& trials);

 private:
  struct Result {
    std::vector<double> values;
    Shape shape;
  };

  void take_sample();
  size_t worst_element() const;
  double size_of_target() const;
  bool out_of_time() const { return std::chrono::steady_clock::now() > deadline_; }
  Result result_of(Evaluator evaluator, const Trial& trial) const;
  std::vector<double> exact_values(const Trial& trial) const;
  std::vector<double> borrowed_spread(size_t count_of_values) const;
  bool predicts_nothing_new(const std::vector<double>& values) const;
  void evaluate_exact(Trial& trial);
  void evaluate_spread(Trial& trial);
  void note_untried(const Trial& trial);
  void note_failed(const Trial& trial, const Error& error);

  const Evidence& evidence_;
  const CauseOptions& options_;
  CauseSearch& search_;
  const std::chrono::steady_clock::time_point deadline_;
  Node node_;
  std::vector<Data> inputs_;
  std::vector<Data> whole_inputs_ = {};  // Those of the whole call, if `inputs_` are a sample's.
  std::vector<size_t> picked_ = {};      // The sample's elements in the whole result.
  std::vector<double> target_;
  bool same_shape_ = true;
  Prediction null_;
  Fit null_fit_;
};

}  // namespace unmoor::causes
