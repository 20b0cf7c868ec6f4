#include "unmoor/workbench/keep_curve.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/base/stop.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/step_walk.h"

namespace unmoor {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

Tensor in_float32(const std::vector<double>& values, const Shape& shape) {
  Tensor result(TensorType{DType::F32, shape});
  store(result, std::span<const double>(values));
  return result;
}

// Everything a run shows, as copies.
class Collector : public Observer {
 public:
  bool wants(const ValueInfo&) override { return true; }
  void on_value(const ValueInfo& info, const Data& data) override {
    if (!data.is_tensor()) return;
    found[info.name] = data.tensor().clone();
    order.push_back(info);
  }
  NamedData found;
  std::vector<ValueInfo> order;
};

// Σ (a−b)² over the elements that are finite in both, and how many these are.
struct Squares {
  double sum = 0;
  size_t count = 0;
  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

Squares squares_between(const Data& a, const Data& b) {
  Squares result;
  if (!a.is_tensor() || !b.is_tensor() || a.tensor().shape() != b.tensor().shape()) return result;
  const auto x = doubles(a.tensor());
  const auto y = doubles(b.tensor());
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - y[i];
    if (!std::isfinite(d)) continue;
    result.sum += d * d;
    ++result.count;
  }
  return result;
}

// Adds (a−b)² to the sums, element by element.
void add_squares(const Data& a, const Data& b, std::vector<double>& sums) {
  const auto x = doubles(a.tensor());
  const auto y = doubles(b.tensor());
  for (size_t i = 0; i < std::min({x.size(), y.size(), sums.size()}); ++i) {
    const double d = x[i] - y[i];
    if (std::isfinite(d)) sums[i] += d * d;
  }
}

// Over how many elements a sum is spread: all of them where they are equal, 1 where one holds it.
double spread_over(const std::vector<double>& numbers) {
  double sum = 0;
  double squares = 0;
  for (const double x : numbers) {
    sum += x;
    squares += x * x;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

// One step of the target: the values that it shows, and what it does to them.
struct Unit {
  std::string node, op;
  std::vector<std::string> values;
  std::set<std::string> reads;  // The visible values just above.
  NodeNames nodes;              // That lie between.
  NamedData moved;              // The exact values with the target's own error added; only where there is one.
  bool narrow = false;          // It gives values of 16 bits.
};

struct OutputPlace {
  std::string name;  // Of the model's output.
  std::string key;   // Of the value, before it is rounded to what the model declares.
  bool narrow = false;
};

class CurveMaker {
 public:
  CurveMaker(ModelRunner& wide, Runner& target, const NamedData& inputs, const KeepProgress& progress)
      : wide_(wide), target_(target), inputs_(inputs), progress_(progress), walk_(wide, inputs) {}

  KeepCurve make() {
    find_outputs();
    exact_ = walk_.all(progress_);
    Collector shown;
    const NamedData outputs = target_.run(inputs_, &shown);
    target_values_ = std::move(shown.found);
    make_units(shown.order);
    target_values_.clear();
    measure_outputs(outputs);
    for (size_t i = 0; i < units_.size(); ++i) {
      if (progress_) progress_("errors of single nodes", i, units_.size());
      if (!units_[i].moved.empty()) add_point(i);
    }
    finish();
    return std::move(curve_);
  }

 private:
  void find_outputs() {
    const Graph& graph = wide_.session_for(inputs_).plan().graph;
    std::map<size_t, const Node*> makers;
    for (const Node& node : graph.nodes()) {
      for (const ValueId id : node.outputs) {
        if (id != no_value) makers[Graph::index(id)] = &node;
      }
    }
    const auto key = [&graph](ValueId id) {
      const Value& value = graph.value(id);
      return value.origin.name.empty() ? value.name : value.origin.name;
    };
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const ValueId id = graph.outputs()[i];
      const auto* const type = std::get_if<TensorType>(&graph.value(id).type);
      if (type == nullptr || !is_float(type->dtype)) continue;
      OutputPlace place{graph.output_names()[i], key(id), is_narrow(type->dtype)};
      const auto maker = makers.find(Graph::index(id));
      const bool rounded = place.narrow && maker != makers.end() && maker->second->op == "Cast";
      if (rounded) place.key = key(maker->second->inputs[0]);
      places_.push_back(std::move(place));
    }
  }

  void make_units(const std::vector<ValueInfo>& order) {
    std::map<std::string, size_t> by_node;
    bool narrow = false;
    size_t done = 0;
    for (const ValueInfo& info : order) {
      if (progress_) progress_("what each step adds", done++, order.size());
      if (!exact_.contains(info.name) || !walk_.maker(info.name)) continue;
      const auto [found, fresh] = by_node.try_emplace(info.node.empty() ? "value " + info.name : "node " + info.node, units_.size());
      if (fresh) units_.push_back({info.node, info.op, {}, {}, {}, {}, false});
      measure(units_[found->second], info.name);
      narrow = narrow || units_[found->second].narrow;
    }
    if (!narrow) {
      fail(ErrorKind::Unsupported, target_.name(), order.empty() ? " shows no values" : " stores no value in float16 or bfloat16",
           ": what to keep in float32 can be told of a model of 16 bits whose values are shown");
    }
  }

  // The target's own error of one value: against what float32 makes of the target's values above it.
  void measure(Unit& unit, const std::string& name) {
    check_stop();
    const auto visible = [this](const std::string& value) { return target_values_.contains(value); };
    const StepWalk::Part part = walk_.between(name, visible);
    unit.reads.insert(part.reads.begin(), part.reads.end());
    for (const size_t step : part.steps) unit.nodes.insert(walk_.steps()[step].node);
    if (unit.node.empty()) {
      unit.node = walk_.steps()[*walk_.maker(name)].node;
      unit.op = walk_.steps()[*walk_.maker(name)].op;
    }
    unit.values.push_back(name);
    const Tensor& actual = target_values_.at(name).tensor();
    if (!is_float(actual.dtype())) return;
    unit.narrow = unit.narrow || is_narrow(actual.dtype());
    NamedData given;
    for (const std::string& read : part.reads) {
      const auto shown = target_values_.find(read);
      const auto input = inputs_.find(read);
      if (shown == target_values_.end() && input == inputs_.end())
        fail(ErrorKind::Unsupported, "'", name, "' is made of '", read, "', which ", target_.name(), " does not show: what it adds to the error cannot be told");
      given[read] = shown != target_values_.end() ? shown->second : input->second;
    }
    const Data made = walk_.run(part, given).at(name);
    if (made.tensor().shape() != actual.shape() || exact_.at(name).tensor().shape() != actual.shape())
      fail(ErrorKind::Unsupported, "'", name, "' has another shape in ", target_.name(), " than in float32: what differs there is no rounding");
    const auto wanted = doubles(made.tensor());
    const auto found = doubles(actual);
    std::vector<double> moved = doubles(exact_.at(name).tensor());
    bool any = false;
    for (size_t i = 0; i < moved.size(); ++i) {
      if (std::isfinite(wanted[i]) != std::isfinite(found[i])) {
        fail(ErrorKind::Unsupported, "'", name, "' of node '", unit.node, "' is ", found[i], " in ", target_.name(), " and ", wanted[i],
             " in float32: keep that node in float32 first, with a file that names it");
      }
      const double error = found[i] - wanted[i];
      if (!std::isfinite(error) || error == 0) continue;
      moved[i] += error;
      any = true;
    }
    if (any && unit.narrow) unit.moved[name] = in_float32(moved, actual.shape());
  }

  void measure_outputs(const NamedData& outputs) {
    for (const OutputPlace& place : places_) {
      const auto found = outputs.find(place.name);
      const auto exact = exact_.find(place.key);
      if (found == outputs.end() || exact == exact_.end()) continue;
      const Squares squares = squares_between(found->second, exact->second);
      if (squares.sum == 0) continue;
      curve_.exact[place.name] = exact->second;
      KeepCurve::Output output;
      output.name = place.name;
      output.elements = squares.count;
      output.error = std::sqrt(squares.mean());
      curve_.outputs.push_back(std::move(output));
      kept_places_.push_back(place);
      wanted_.insert(place.key);
      by_element_.emplace_back(exact->second.tensor().elements());
    }
    if (curve_.outputs.empty()) fail(ErrorKind::Unsupported, "no output of ", target_.name(), " differs from float32: nothing needs to be kept");
  }

  // All that has to be listed so that the result of this one stays in float32 as far as anything else rounds it: what is behind
  // it and makes no error of its own. `values` gets what these give.
  NodeNames with_followers(size_t at, std::set<std::string>& values) const {
    NodeNames nodes = units_[at].nodes;
    values.insert(units_[at].values.begin(), units_[at].values.end());
    for (size_t i = at + 1; i < units_.size(); ++i) {  // In order of the run.
      const Unit& next = units_[i];
      if (!next.narrow || !next.moved.empty() || !reads_any(next, values)) continue;
      nodes.insert(next.nodes.begin(), next.nodes.end());
      values.insert(next.values.begin(), next.values.end());
    }
    return nodes;
  }

  static bool reads_any(const Unit& unit, const std::set<std::string>& values) {
    return std::ranges::any_of(unit.reads, [&](const std::string& read) { return values.contains(read); });
  }

  void add_point(size_t at) {
    const Unit& unit = units_[at];
    const StepWalk::Carried carried = walk_.carried(unit.moved, exact_, wanted_);
    std::set<std::string> values;
    Contribution found;
    const NodeNames nodes = with_followers(at, values);
    found.point = {unit.node, unit.op, {nodes.begin(), nodes.end()}, 0, {}, {}, 1};
    for (size_t o = 0; o < kept_places_.size(); ++o) {
      const OutputPlace& place = kept_places_[o];
      const auto changed = carried.values.find(place.key);
      const double square = changed == carried.values.end() ? 0 : squares_between(changed->second, exact_.at(place.key)).mean();
      const bool rounded_anyway = place.narrow && values.contains(place.key);
      found.all.push_back(square);
      found.stays.push_back(rounded_anyway ? square : 0);
      if (changed != carried.values.end()) add_squares(changed->second, exact_.at(place.key), by_element_[o]);
    }
    for (const Unit& each : units_) found.is_ahead.push_back(reads_any(each, carried.names));
    found.unit = at;
    contributions_.push_back(std::move(found));
  }

  // Shares, and the points in order of them.
  void finish() {
    const auto count = static_cast<double>(kept_places_.size());
    for (size_t o = 0; o < kept_places_.size(); ++o) {
      double sum = 0;
      for (const Contribution& each : contributions_) sum += each.all[o];
      sums_.push_back(sum);
      curve_.outputs[o].sum_over_whole = std::sqrt(sum) / curve_.outputs[o].error;
      curve_.outputs[o].effective = spread_over(by_element_[o]);
    }
    for (Contribution& each : contributions_) {
      for (size_t o = 0; o < kept_places_.size(); ++o) {
        each.point.by_output.push_back(sums_[o] > 0 ? (each.all[o] - each.stays[o]) / sums_[o] : 0);
        each.point.share += each.point.by_output[o] / count;
      }
    }
    std::ranges::stable_sort(contributions_, std::greater<>(), [](const Contribution& each) { return each.point.share; });
    predict();
    for (Contribution& each : contributions_) {
      if (each.point.share > 1e-9) curve_.points.push_back(std::move(each.point));
    }
    curve_.unavoidable = curve_.points.empty() ? 1 : curve_.points.back().left;
  }

  // What is left with more and more points kept. An estimate never rises: a kept point makes nothing worse.
  void predict() {
    std::vector<bool> redrawn(units_.size());
    std::vector<double> before(kept_places_.size(), 1);
    for (size_t kept = 0; kept < contributions_.size(); ++kept) {
      check_stop();
      for (size_t i = 0; i < units_.size(); ++i) redrawn[i] = redrawn[i] || contributions_[kept].is_ahead[i];
      double squares = 0;
      for (size_t o = 0; o < kept_places_.size(); ++o) {
        before[o] = std::min(before[o], left_of(o, kept, redrawn));
        squares += before[o] * before[o];
      }
      contributions_[kept].point.left_by_output = before;
      contributions_[kept].point.left = std::sqrt(squares / static_cast<double>(before.size()));
    }
  }

  double left_of(size_t o, size_t last_kept, const std::vector<bool>& redrawn) const {
    const double whole = curve_.outputs[o].error * curve_.outputs[o].error;
    double left = 0;
    for (size_t i = 0; i < contributions_.size(); ++i) {
      const double expected = i <= last_kept ? contributions_[i].stays[o] : contributions_[i].all[o];
      if (expected > 0) left += redrawn[contributions_[i].unit] ? expected / whole : expected / sums_[o];
    }
    return std::sqrt(left);
  }

  // What the error of one unit comes to.
  struct Contribution {
    KeepCurve::Point point;
    size_t unit = 0;
    std::vector<double> all;     // Mean square, by output.
    std::vector<double> stays;   // Of it what stays if the unit is kept: an output of 16 bits is rounded anyway.
    std::vector<bool> is_ahead;  // By unit: it reads what the error changes.
  };

  ModelRunner& wide_;
  Runner& target_;
  const NamedData& inputs_;
  const KeepProgress& progress_;
  StepWalk walk_;
  NamedData exact_;          // Of the float32 run, every value.
  NamedData target_values_;
  std::vector<OutputPlace> places_, kept_places_;
  std::vector<Unit> units_;
  std::set<std::string> wanted_;  // Keys of outputs.
  std::vector<Contribution> contributions_;
  std::vector<std::vector<double>> by_element_;  // By output: Σ of squares of what single units add.
  std::vector<double> sums_;                     // By output: Σ of mean squares.
  KeepCurve curve_;
};

}  // namespace

void KeepCurve::choose(double part) {
  chosen = 0;
  while (chosen < points.size() && (chosen == 0 || points[chosen - 1].left > part)) ++chosen;
  for (size_t o = 0; o < outputs.size(); ++o) outputs[o].predicted = chosen == 0 ? 1 : points[chosen - 1].left_by_output[o];
}

void KeepCurve::set_applied(const NamedData& kept) {
  for (Output& output : outputs) {
    const auto found = kept.find(output.name);
    if (found != kept.end()) output.applied = std::sqrt(squares_between(found->second, exact.at(output.name)).mean()) / output.error;
  }
}

double KeepCurve::applied() const {
  double squares = 0;
  for (const Output& output : outputs) {
    if (output.applied < 0) return -1;
    squares += output.applied * output.applied;
  }
  return outputs.empty() ? -1 : std::sqrt(squares / static_cast<double>(outputs.size()));
}

KeepCurve keep_curve(ModelRunner& wide, Runner& target, const NamedData& inputs, const KeepProgress& progress) {
  return CurveMaker(wide, target, inputs, progress).make();
}

}  // namespace unmoor
