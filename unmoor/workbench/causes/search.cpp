#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/cause.h"
#include "unmoor/workbench/causes/sample.h"
#include "unmoor/workbench/causes/score.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor {
namespace causes {
namespace {

using Clock = std::chrono::steady_clock;

// One variant of one hypothesis, or of two at once.
struct Trial {
  const Entry* entry = nullptr;
  const Entry* with = nullptr;
  std::vector<size_t> path;
  Change change;
  bool possible = false;  // It can be computed, and predicts something.
  Fit fit;
  bool sampled = false;  // `fit` is by a spread of its own.

  bool is_noise() const { return change.arithmetic.has_value(); }
  int cost() const { return entry->cost + (with == nullptr ? 0 : 100 + with->cost); }
};

struct Result {
  std::vector<double> values;
  Shape shape;
};

constexpr size_t most_sampled = 12;  // Trials of the first round that get noise runs of their own.
constexpr double near_equal = 0.1;   // In spreads: what moves no element further than this predicts nothing new.

class Search {
 public:
  Search(const Evidence& evidence, const CauseOptions& options)
      : evidence_(evidence),
        options_(options),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds))) {}

  CauseSearch run() {
    prepare();
    if (is_too_large()) {
      search_.untried = cause_ids();
      return std::move(search_);
    }
    std::vector<Trial> trials = single_trials();
    evaluate(trials);
    std::vector<Trial*> winners = best_of(trials);
    std::vector<Trial> pairs;
    if (winners.empty() || winners[0]->is_noise()) {
      pairs = paired_trials(trials);
      evaluate(pairs);
      for (Trial& pair : pairs) trials.push_back(std::move(pair));
      winners = best_of(trials);
    }
    report(trials, winners);
    return std::move(search_);
  }

 private:
  // Rewrites hold copies of inputs: what a sample could not make small is not searched.
  bool is_too_large() const {
    size_t elements = target_.size();
    for (const Data& data : inputs_) elements += data.is_tensor() ? data.tensor().elements() : 0;
    return elements > options_.elements;
  }

  bool out_of_time() const { return Clock::now() > deadline_; }

  // What is compared: everything, or a sample.
  void prepare() {
    node_ = evidence_.call.node;
    inputs_ = widened(evidence_.inputs);
    target_ = doubles(evidence_.target);
    null_ = {{evidence_.exact.begin(), evidence_.exact.end()}, {evidence_.spread.begin(), evidence_.spread.end()}};
    search_.of_elements = target_.size();
    same_shape_ = null_.values.size() == target_.size();
    if (same_shape_ && evidence_.output == 0) take_sample();
    search_.elements = target_.size();
    measure_target();
    null_fit_ = same_shape_ ? fit(null_, target_, evidence_.stored) : fit(vague(), target_, evidence_.stored);
  }

  void take_sample() {
    const OpCall call = call_of(node_, inputs_);
    const auto sample = sampled(call, inputs_, options_.flop, worst_element());
    if (!sample) return;
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

  size_t worst_element() const {
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

  void measure_target() {
    double squares = 0;
    for (const double value : target_) squares += std::isfinite(value) ? value * value : 0;
    scale_ = std::sqrt(squares / static_cast<double>(std::max<size_t>(target_.size(), 1)));
  }

  // Where the shapes differ, no change predicts no more than the size of the values.
  Prediction vague() const { return {std::vector<double>(target_.size(), 0.0), std::vector<double>(target_.size(), scale_)}; }

  Situation outer(const OpCall& call) const {
    std::vector<bool> weights;
    for (size_t i = 0; i < inputs_.size(); ++i) weights.push_back(evidence_.call.constant(i) != nullptr);
    return {call, inputs_, std::move(weights), evidence_.stored, evidence_.output};
  }

  std::vector<Trial> single_trials() {
    std::vector<Trial> trials;
    const OpCall call = call_of(node_, inputs_);
    std::set<std::string_view> done;
    for (const Entry& entry : all_entries()) {
      if (!applies_to(entry, node_.op)) continue;
      const size_t before = trials.size();
      add_trials(trials, entry, outer(call), {});
      if (trials.size() > before) done.insert(entry.id);
    }
    add_inner_trials(trials, done);
    return trials;
  }

  void add_trials(std::vector<Trial>& trials, const Entry& entry, const Situation& at, const std::vector<size_t>& path) {
    try {
      for (Change& change : entry.changes(at)) {
        Trial trial;
        trial.entry = &entry;
        trial.path = path;
        trial.change = std::move(change);
        trials.push_back(std::move(trial));
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      search_.failed.push_back(cat(entry.id, ": ", error.what()));
    }
  }

  // In the parts of a fused or composite operator; not in its arithmetic, whose constants are nobody's bias or scale.
  void add_inner_trials(std::vector<Trial>& trials, const std::set<std::string_view>& done) {
    Evaluator evaluator;
    const auto visit = [&](const OpCall& call, std::span<const Data> inputs, const std::vector<size_t>& path) {
      const Op* const op = all_ops().find(call.node.op);
      if (op == nullptr || op->category == Category::Basic) return;
      for (const Entry& entry : all_entries()) {
        if (!entry.inside || done.contains(entry.id) || !applies_to(entry, call.node.op)) continue;
        std::vector<bool> weights(inputs.size(), true);
        weights[0] = false;
        add_trials(trials, entry, {call, inputs, std::move(weights), evidence_.stored, 0}, path);
      }
    };
    try {
      evaluator.visit_inside(node_, inputs_, visit);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      search_.failed.push_back(cat("parts of ", node_.op, ": ", error.what()));
    }
  }

  Result result_of(Evaluator evaluator, const Trial& trial) const {
    const Patch patch{trial.path, &trial.change};
    const auto outputs = evaluator.run(node_, inputs_, &patch);
    const Tensor& tensor = outputs.at(evidence_.output).tensor();
    return {doubles(tensor), tensor.shape()};
  }

  // The exact values of every trial, a first score by the spread of the unchanged node, then noise runs for the best.
  void evaluate(std::vector<Trial>& trials) {
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
  std::vector<double> exact_values(const Trial& trial) const {
    if (trial.is_noise()) return same_shape_ ? null_.values : std::vector<double>();
    const Result result = result_of(Evaluator(), trial);
    if (result.values.size() != target_.size() || (!same_shape_ && result.shape != evidence_.target.shape())) return {};
    return result.values;
  }

  void evaluate_exact(Trial& trial) {
    if (out_of_time()) return note_untried(trial);
    try {
      const auto exact = exact_values(trial);
      if (exact.empty() || (!trial.change.same_values && predicts_nothing_new(exact))) return;
      trial.possible = true;
      trial.fit = fit({exact, borrowed_spread(exact)}, target_, evidence_.stored);
    } catch (const Error& error) {
      note_failed(trial, error);
    }
  }

  void note_failed(const Trial& trial, const Error& error) {
    if (error.kind() == ErrorKind::Stopped) throw error;
    search_.failed.push_back(cat(trial.entry->id, ": ", error.what()));
  }

  bool predicts_nothing_new(const std::vector<double>& values) const {
    if (!same_shape_) return false;
    const Prediction found{null_.values, null_.spread};
    const Fit change =
        fit(found, values, is_float(evidence_.stored) && bits_of(evidence_.stored) == 16 ? DType::F32 : evidence_.stored);
    return change.mismatches == 0 && change.worst < near_equal;
  }

  // The unchanged node's spread, half its own and half the mean, until noise runs say better.
  std::vector<double> borrowed_spread(const std::vector<double>& values) const {
    std::vector<double> spread(values.size());
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

  void evaluate_spread(Trial& trial) {
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

  void note_untried(const Trial& trial) {
    std::string id(trial.entry->id);
    if (trial.with != nullptr) id += cat(" with ", trial.with->id);
    if (std::ranges::find(search_.untried, id) == search_.untried.end()) search_.untried.push_back(std::move(id));
  }

  // The best accepted trial and those as good, simplest first; one of each id.
  std::vector<Trial*> best_of(std::vector<Trial>& trials) const {
    std::vector<Trial*> accepted;
    for (Trial& trial : trials) {
      if (trial.sampled && is_accepted(trial.fit, null_fit_)) accepted.push_back(&trial);
    }
    if (accepted.empty()) return {};
    const auto by_bits = [](const Trial* a, const Trial* b) { return a->fit.bits < b->fit.bits; };
    const Trial& best = **std::ranges::max_element(accepted, by_bits);
    std::vector<Trial*> equal;
    for (Trial* const trial : accepted) {
      if (is_as_good(trial->fit, best.fit)) equal.push_back(trial);
    }
    std::ranges::stable_sort(equal, [](const Trial* a, const Trial* b) {
      return a->cost() != b->cost() ? a->cost() < b->cost() : a->fit.bits > b->fit.bits;
    });
    std::vector<Trial*> winners;
    for (Trial* const trial : equal) {
      const bool twice = std::ranges::any_of(
          winners, [&](const Trial* other) { return other->entry == trial->entry && other->with == trial->with; });
      if (!twice && (winners.empty() || (trial->with == nullptr) == (winners[0]->with == nullptr))) winners.push_back(trial);
    }
    return winners;
  }

  // Every rewrite on top of each of the best three.
  std::vector<Trial> paired_trials(std::vector<Trial>& singles) {
    std::vector<Trial*> order;
    const double least = null_fit_.bits + 0.5 * static_cast<double>(target_.size());
    for (Trial& trial : singles) {
      const bool usable = trial.path.empty() && !trial.is_noise() && !trial.change.same_values && !trial.change.compute;
      if (usable && trial.sampled && trial.fit.bits > least) order.push_back(&trial);
    }
    std::ranges::stable_sort(order, [](const Trial* a, const Trial* b) { return a->fit.bits > b->fit.bits; });
    if (order.size() > 3) order.resize(3);
    std::vector<Trial> pairs;
    std::set<std::pair<std::string, std::string>> seen;
    for (const Trial* const first : order) {
      for (const Entry& entry : all_entries()) {
        if (&entry == first->entry || !applies_to(entry, first->change.node.op)) continue;
        add_pairs(pairs, *first, entry, seen);
      }
    }
    return pairs;
  }

  void add_pairs(std::vector<Trial>& pairs, const Trial& first, const Entry& entry,
                 std::set<std::pair<std::string, std::string>>& seen) {
    std::vector<Trial> tops;
    const OpCall call = call_of(first.change.node, first.change.inputs);
    Situation at = outer(call);
    at.inputs = first.change.inputs;
    at.weights.resize(first.change.inputs.size());
    add_trials(tops, entry, at, {});
    for (Trial& top : tops) {
      auto both = combined(first.change, top.change);
      if (!both) continue;
      Trial pair;
      const bool swap = entry.cost < first.entry->cost;
      pair.entry = swap ? &entry : first.entry;
      pair.with = swap ? first.entry : &entry;
      const std::string first_key = cat(first.entry->id, first.change.detail);
      const std::string second_key = cat(entry.id, top.change.detail);
      if (!seen.insert(std::minmax(first_key, second_key)).second) continue;
      pair.change = std::move(*both);
      const auto& details =
          swap ? std::pair(top.change.detail, first.change.detail) : std::pair(first.change.detail, top.change.detail);
      pair.change.detail = details.first.empty() || details.second.empty() ? details.first + details.second
                                                                           : cat(details.first, "; ", details.second);
      pairs.push_back(std::move(pair));
    }
  }

  // `top` was made for the node and inputs of `first`.
  static std::optional<Change> combined(const Change& first, const Change& top) {
    if (top.arithmetic || top.same_values || top.compute) return std::nullopt;
    if (first.finish && (top.finish || top.graph)) return std::nullopt;
    if (first.graph && (!top.finish || top.graph)) return std::nullopt;
    Change both = first.graph ? first : top;
    if (top.finish) both.finish = top.finish;
    if (first.finish) both.finish = first.finish;
    if (first.shape) both.shape = first.shape;
    return both;
  }

  static std::string sentence(const Trial& trial) {
    std::string text = cat("The target ", trial.entry->text);
    if (trial.with != nullptr) text += cat(", and ", trial.with->text);
    if (!trial.change.detail.empty()) text += cat(" (", trial.change.detail, ")");
    return text + ".";
  }

  void report(const std::vector<Trial>& trials, const std::vector<Trial*>& winners) {
    std::map<std::string, Hypothesis> best;
    for (const Trial& trial : trials) {
      if (!trial.sampled) continue;
      const std::string id = trial.with == nullptr ? std::string(trial.entry->id) : cat(trial.entry->id, '+', trial.with->id);
      const Hypothesis found{id, trial.fit.bits - null_fit_.bits, trial.fit.excess};
      const auto at = best.try_emplace(id, found).first;
      if (found.bits > at->second.bits) at->second = found;
    }
    for (const auto& entry : best) search_.hypotheses.push_back(entry.second);
    std::ranges::stable_sort(search_.hypotheses, [](const Hypothesis& a, const Hypothesis& b) { return a.bits > b.bits; });
    if (winners.empty()) return;
    const Trial& first = *winners[0];
    Cause cause{std::string(first.entry->id), sentence(first), std::string(first.entry->advice), first.fit.bits - null_fit_.bits,
                first.fit.excess};
    if (first.with != nullptr) {
      cause.with = first.with->id;
      cause.advice += cat(" ", first.with->advice);
    }
    for (size_t i = 1; i < winners.size(); ++i) {
      const Trial& other = *winners[i];
      cause.also.push_back(other.with == nullptr ? std::string(other.entry->id) : cat(other.entry->id, '+', other.with->id));
    }
    cause.hypotheses = search_.hypotheses;
    search_.cause = std::move(cause);
  }

  const Evidence& evidence_;
  const CauseOptions& options_;
  const Clock::time_point deadline_;
  Node node_;
  std::vector<Data> inputs_;
  std::vector<double> target_;
  double scale_ = 0;  // Root mean square of the target.
  bool same_shape_ = true;
  Prediction null_;
  Fit null_fit_;
  CauseSearch search_;
};

}  // namespace
}  // namespace causes

CauseSearch search_cause(const Evidence& evidence, const CauseOptions& options) {
  return causes::Search(evidence, options).run();
}

std::optional<Cause> find_cause(const Evidence& evidence) { return search_cause(evidence).cause; }

std::vector<std::string> cause_ids() {
  std::vector<std::string> ids;
  for (const causes::Entry& entry : causes::all_entries()) ids.emplace_back(entry.id);
  return ids;
}

Expected expected_output(const OpCall& call, std::span<const Data> inputs, size_t output, uint64_t seed) {
  const auto wide = causes::widened(inputs);
  const auto run = [&](causes::Evaluator evaluator) { return evaluator.run(call.node, wide).at(output).tensor(); };
  const Tensor tensor = run(causes::Evaluator());
  Expected expected{doubles(tensor), {}, tensor.shape()};
  std::vector<double> squares(expected.exact.size());
  const size_t copies = squares.size() < 1000 ? 8 : 4;
  for (size_t copy = 0; copy < copies; ++copy) {
    const auto values = doubles(run(causes::Evaluator(causes::Arithmetic{}, seed * 1000 + 500 + copy)));
    for (size_t i = 0; i < squares.size(); ++i) {
      const double e = values[i] - expected.exact[i];
      squares[i] += std::isfinite(e) ? e * e : 0;
    }
  }
  for (double& s : squares) s = std::sqrt(s / static_cast<double>(copies));
  expected.spread = std::move(squares);
  return expected;
}

}  // namespace unmoor
