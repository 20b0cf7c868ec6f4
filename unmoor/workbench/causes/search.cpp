#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/subject.h"
#include "unmoor/workbench/noise/floor.h"

namespace unmoor {
namespace causes {
namespace {

class Search {
 public:
  Search(const Evidence& evidence, const CauseOptions& options) : evidence_(evidence), subject_(evidence, options, search_) {}

  CauseSearch run() {
    search_.explained = is_explained();
    if (search_.explained) return std::move(search_);
    if (subject_.is_too_large()) {
      search_.untried = cause_ids();
      return std::move(search_);
    }
    std::vector<Trial> trials = single_trials();
    subject_.evaluate(trials);
    std::vector<Trial*> winners = best_of(trials);
    if (winners.empty() || winners[0]->is_noise()) {
      std::vector<Trial> pairs = paired_trials(trials);
      subject_.evaluate(pairs);
      std::ranges::move(pairs, std::back_inserter(trials));
      winners = best_of(trials);
    }
    report(trials, winners);
    return std::move(search_);
  }

 private:
  // The unchanged node explains the target in every dtype: there is nothing to look for.
  bool is_explained() const {
    const Fit& unchanged = subject_.unchanged();
    const bool same_shape = evidence_.exact.size() == evidence_.target.elements();
    return same_shape && unchanged.mismatches == 0 && unchanged.excess <= 1 && unchanged.worst <= 5;
  }

  std::vector<Trial> single_trials() {
    std::vector<Trial> trials;
    std::set<std::string_view> done;
    for (const Entry& entry : all_entries()) {
      if (!applies_to(entry, subject_.node().op)) continue;
      const size_t before = trials.size();
      const OpCall call = call_on(subject_.node(), subject_.inputs_for(entry));
      add_trials(trials, entry, subject_.situation(call, subject_.inputs_for(entry)), {});
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
      evaluator.visit_inside(subject_.node(), subject_.inputs(), visit);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      search_.failed.push_back(cat("parts of ", subject_.node().op, ": ", error.what()));
    }
  }

  // The best accepted trial and those as good, simplest first; one of each id.
  std::vector<Trial*> best_of(std::vector<Trial>& trials) const {
    std::vector<Trial*> accepted;
    for (Trial& trial : trials) {
      const auto rule = trial.is_noise() ? is_accepted_as_noise : is_accepted;
      if (trial.sampled && rule(trial.fit, subject_.unchanged())) accepted.push_back(&trial);
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
    const double least = subject_.unchanged().bits + 0.5 * static_cast<double>(subject_.elements());
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
        if (subject_.runs_whole(entry) || subject_.runs_whole(*first->entry)) continue;  // Their inputs are not the same.
        add_pairs(pairs, *first, entry, seen);
      }
    }
    return pairs;
  }

  void add_pairs(std::vector<Trial>& pairs, const Trial& first, const Entry& entry,
                 std::set<std::pair<std::string, std::string>>& seen) {
    std::vector<Trial> tops;
    const OpCall call = call_on(first.change.node, first.change.inputs);
    Situation at = subject_.situation(call, subject_.inputs());
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
      const std::string id = trial.id();
      const Hypothesis found{id, trial.fit.bits - subject_.unchanged().bits, trial.fit.excess};
      const auto at = best.try_emplace(id, found).first;
      if (found.bits > at->second.bits) at->second = found;
    }
    for (const auto& entry : best) search_.hypotheses.push_back(entry.second);
    std::ranges::stable_sort(search_.hypotheses, [](const Hypothesis& a, const Hypothesis& b) { return a.bits > b.bits; });
    if (winners.empty()) return;
    const Trial& first = *winners[0];
    Cause cause{std::string(first.entry->id), sentence(first), std::string(first.entry->advice),
                first.fit.bits - subject_.unchanged().bits, first.fit.excess};
    if (first.with != nullptr) {
      cause.with = first.with->id;
      cause.advice += cat(" ", first.with->advice);
    }
    for (size_t i = 1; i < winners.size(); ++i) {
      const Trial& other = *winners[i];
      cause.also.push_back(other.id());
    }
    cause.hypotheses = search_.hypotheses;
    search_.cause = std::move(cause);
  }

  const Evidence& evidence_;
  CauseSearch search_;
  Subject subject_;
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

Cause cause_named(std::string_view id) {
  for (const causes::Entry& entry : causes::all_entries()) {
    if (entry.id == id) return {std::string(id), cat("The target ", entry.text, "."), std::string(entry.advice)};
  }
  fail(ErrorKind::Internal, "there is no cause '", id, "'");
}

namespace {

// What noise runs of the search make of an operator that noise/floor.h has no model of: its result rounded.
void add_rounding(Expected& expected, const OpCall& call, std::span<const Data> inputs, size_t output, uint64_t seed) {
  constexpr size_t copies = 8;
  for (size_t copy = 0; copy < copies; ++copy) {
    causes::Evaluator evaluator(causes::Arithmetic{}, seed * 1000 + 500 + copy);
    const auto values = doubles(evaluator.run(call.node, inputs).at(output).tensor());
    for (size_t i = 0; i < values.size() && i < expected.spread.size(); ++i) {
      const double e = values[i] - expected.exact[i];
      if (std::isfinite(e)) expected.spread[i] += e * e / static_cast<double>(copies);
    }
  }
  for (double& s : expected.spread) s = std::sqrt(s);
}

}  // namespace

Expected expected_output(const OpCall& call, std::span<const Data> inputs, size_t output, uint64_t seed) {
  const auto wide = causes::widened(call.node, inputs);
  const Tensor exact = causes::Evaluator().run(call.node, wide).at(output).tensor();
  Expected expected{doubles(exact), std::vector<double>(exact.elements()), exact.shape()};
  try {
    const std::vector<DType> stored(call.node.outputs.size(), DType::F32);
    const auto outputs = std::span(call.node.outputs).first(output);
    const auto place = static_cast<size_t>(std::ranges::count_if(outputs, [](ValueId id) { return id != no_value; }));
    const NoiseFloor floor = noise_floor(call.node, wide, stored, {DType::F32, 0, seed}).at(place);
    if (floor.spread.size() == expected.spread.size()) expected.spread = floor.spread;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    add_rounding(expected, call, wide, output, seed);
  }
  return expected;
}

}  // namespace unmoor
