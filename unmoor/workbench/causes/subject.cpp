#include "unmoor/workbench/causes/subject.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/sample.h"

namespace unmoor::causes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_sampled = 12;  // Trials of the first round that get noise runs of their own.
constexpr double near_equal = 0.1;   // In spreads: what moves no element further than this predicts nothing new.

}  // namespace

std::string Trial::id() const { return with == nullptr ? std::string(entry->id) : cat(entry->id, '+', with->id); }

Subject::Subject(const Evidence& evidence, const CauseOptions& options, CauseSearch& search)
    : evidence_(evidence),
      options_(options),
      search_(search),
      deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds))),
      node_(evidence.call.node),
      inputs_(widened(evidence.call.node, evidence.inputs)),
      target_(doubles(evidence.target)),
      null_{{evidence.exact.begin(), evidence.exact.end()}, {evidence.spread.begin(), evidence.spread.end()}} {
  null_.spread.resize(null_.values.size());
  search_.of_elements = target_.size();
  same_shape_ = null_.values.size() == target_.size();
  if (same_shape_ && evidence_.output == 0) take_sample();
  search_.elements = target_.size();
  // Where the shapes differ, no change predicts no more than the size of the values.
  if (!same_shape_) null_ = {std::vector<double>(target_.size(), 0.0), std::vector<double>(target_.size(), size_of_target())};
  null_fit_ = fit(null_, target_, evidence_.stored);
}

// Swapping axes mixes what a sample keeps with what it leaves out.
bool Subject::runs_whole(const Entry& entry) const {
  const bool mixes = entry.id == "transposed-weights" || entry.id == "softmax-axis" || entry.id == "softmax-flattened";
  return mixes && !picked_.empty();
}

bool Subject::is_too_large() const {
  size_t elements = target_.size();
  for (const Data& data : inputs_) elements += data.is_tensor() ? data.tensor().elements() : 0;
  return elements > options_.elements;
}

Situation Subject::situation(const OpCall& call, std::span<const Data> inputs) const {
  std::vector<bool> weights;
  for (size_t i = 0; i < inputs.size(); ++i) weights.push_back(evidence_.call.constant(i) != nullptr);
  return {call, inputs, std::move(weights), evidence_.stored, evidence_.output};
}

double Subject::size_of_target() const {
  double squares = 0;
  for (const double value : target_) squares += std::isfinite(value) ? value * value : 0;
  return std::sqrt(squares / static_cast<double>(std::max<size_t>(target_.size(), 1)));
}

void Subject::take_sample() {
  const OpCall call = call_on(node_, inputs_);
  const auto sample = sampled(call, inputs_, options_.flop, worst_element());
  if (!sample) return;
  whole_inputs_ = inputs_;
  picked_ = sample->elements;
  inputs_ = sample->inputs;
  Prediction some;
  std::vector<double> target;
  for (const size_t i : sample->elements) {
    some.values.push_back(null_.values[i]);
    some.spread.push_back(null_.spread[i]);
    target.push_back(target_[i]);
  }
  null_ = std::move(some);
  target_ = std::move(target);
}

size_t Subject::worst_element() const {
  size_t worst = 0;
  double most = -1;
  for (size_t i = 0; i < target_.size(); ++i) {
    const double z = std::fabs(target_[i] - null_.values[i]) / std::max(null_.spread[i], 1e-300);
    if (std::isnan(z) ? most < std::numeric_limits<double>::infinity() : z > most) {
      most = std::isnan(z) ? std::numeric_limits<double>::infinity() : z;
      worst = i;
    }
  }
  return worst;
}

Subject::Result Subject::result_of(Evaluator evaluator, const Trial& trial) const {
  const Patch patch{trial.path, &trial.change};
  const auto outputs = evaluator.run(node_, inputs_for(*trial.entry), &patch);
  const Tensor& tensor = outputs.at(evidence_.output).tensor();
  Result result{doubles(tensor), tensor.shape()};
  if (!runs_whole(*trial.entry)) return result;
  std::vector<double> some;
  for (const size_t i : picked_) some.push_back(i < result.values.size() ? result.values[i] : NAN);
  return {std::move(some), tensor.shape()};
}

void Subject::evaluate(std::vector<Trial>& trials) {
  for (Trial& trial : trials) evaluate_exact(trial);
  std::vector<Trial*> order;
  for (Trial& trial : trials) {
    if (trial.possible) order.push_back(&trial);
  }
  std::ranges::stable_sort(order, [](const Trial* a, const Trial* b) { return a->fit.bits > b->fit.bits; });
  size_t left = most_sampled;
  for (Trial* const trial : order) {
    if (!trial->change.same_values && left == 0) continue;
    if (!trial->change.same_values) --left;
    evaluate_spread(*trial);
  }
}

// What a trial expects; empty if it is nothing that could be the target. Noise predicts sizes of errors, around the same
// values.
std::vector<double> Subject::exact_values(const Trial& trial) const {
  if (trial.is_noise()) return same_shape_ ? null_.values : std::vector<double>();
  const Result result = result_of(Evaluator(), trial);
  if (result.values.size() != target_.size() || (!same_shape_ && result.shape != evidence_.target.shape())) return {};
  return result.values;
}

void Subject::evaluate_exact(Trial& trial) {
  if (out_of_time()) return note_untried(trial);
  try {
    const auto exact = exact_values(trial);
    if (exact.empty() || (!trial.change.same_values && predicts_nothing_new(exact))) return;
    trial.possible = true;
    trial.fit = fit({exact, borrowed_spread(exact.size())}, target_, evidence_.stored);
  } catch (const Error& error) {
    note_failed(trial, error);
  }
}

void Subject::note_failed(const Trial& trial, const Error& error) {
  if (error.kind() == ErrorKind::Stopped) throw;  // Called where it was caught.
  search_.failed.push_back(cat(trial.entry->id, ": ", error.what()));
}

bool Subject::predicts_nothing_new(const std::vector<double>& values) const {
  if (!same_shape_) return false;
  const Prediction found{null_.values, null_.spread};
  const Fit change =
      fit(found, values, is_float(evidence_.stored) && bits_of(evidence_.stored) == 16 ? DType::F32 : evidence_.stored);
  return change.mismatches == 0 && change.worst < near_equal;
}

// The unchanged node's spread, half its own and half the mean, until noise runs say better.
std::vector<double> Subject::borrowed_spread(size_t count_of_values) const {
  std::vector<double> spread(count_of_values);
  double squares = 0;
  size_t count = 0;
  for (const double s : null_.spread) {
    if (!std::isfinite(s)) continue;
    squares += s * s;
    ++count;
  }
  const double mean = count == 0 ? 0 : squares / static_cast<double>(count);
  for (size_t i = 0; i < spread.size(); ++i) {
    const double own = same_shape_ && std::isfinite(null_.spread[i]) ? null_.spread[i] : 0;
    spread[i] = std::sqrt(own * own / 2 + mean / 2);
  }
  return spread;
}

void Subject::evaluate_spread(Trial& trial) {
  if (out_of_time()) return note_untried(trial);
  const size_t copies = target_.size() < 1000 ? 8 : 4;
  try {
    const auto exact = exact_values(trial);  // Again: values of all trials at once would fill the memory.
    std::vector<double> squares(exact.size());
    for (size_t copy = 0; copy < copies; ++copy) {
      if (out_of_time()) return note_untried(trial);
      const Evaluator noisy(trial.change.arithmetic.value_or(Arithmetic{}), options_.seed * 1000 + copy);
      const Result result = result_of(noisy, trial);
      for (size_t i = 0; i < squares.size() && i < result.values.size(); ++i) {
        const double e = result.values[i] - exact[i];
        if (std::isfinite(e)) squares[i] += e * e;
      }
    }
    for (double& s : squares) s = std::sqrt(s / static_cast<double>(copies));
    trial.fit = fit({exact, std::move(squares)}, target_, evidence_.stored);
    trial.sampled = true;
  } catch (const Error& error) {
    note_failed(trial, error);
  }
}

void Subject::note_untried(const Trial& trial) {
  std::string id = trial.id();
  if (std::ranges::find(search_.untried, id) == search_.untried.end()) search_.untried.push_back(std::move(id));
}

}  // namespace unmoor::causes
