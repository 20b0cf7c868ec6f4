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
    measure_outputs(outputs);
    for (size_t i = 0; i < units_.size(); ++i) {
      if (progress_) progress_("errors of single nodes", i, units_.size());
      if (!units_[i].moved.empty()) add_point(units_[i]);
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
    for (const ValueInfo& info : order) {
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
      const auto found = target_values_.find(read);
      given[read] = found == target_values_.end() ? inputs_.at(read) : found->second;
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
      curve_.outputs.push_back({place.name, squares.count, std::sqrt(squares.mean())});
      kept_places_.push_back(place);
    }
    if (curve_.outputs.empty()) fail(ErrorKind::Unsupported, "no output of ", target_.name(), " differs from float32: nothing needs to be kept");
    variance_.resize(kept_places_.size());
  }

  // All that has to be listed so that the result of this one stays in float32 as far as anything else rounds it: what is behind
  // it and makes no error of its own. `values` gets what these give.
  NodeNames with_followers(const Unit& unit, std::set<std::string>& values) const {
    NodeNames nodes = unit.nodes;
    values.insert(unit.values.begin(), unit.values.end());
    for (const Unit& next : units_) {  // In order of the run.
      const bool reads = std::ranges::any_of(next.reads, [&](const std::string& read) { return values.contains(read); });
      if (&next == &unit || !reads || !next.narrow || !next.moved.empty()) continue;
      nodes.insert(next.nodes.begin(), next.nodes.end());
      values.insert(next.values.begin(), next.values.end());
    }
    return nodes;
  }

  void add_point(const Unit& unit) {
    const NamedData carried = walk_.carried(unit.moved, exact_);
    std::set<std::string> values;
    KeepCurve::Point point{unit.node, unit.op, {}, 0, std::vector<double>(kept_places_.size()), 1};
    const NodeNames nodes = with_followers(unit, values);
    point.nodes.assign(nodes.begin(), nodes.end());
    for (size_t o = 0; o < kept_places_.size(); ++o) {
      const auto found = carried.find(kept_places_[o].key);
      if (found == carried.end()) continue;
      const double square = squares_between(found->second, exact_.at(kept_places_[o].key)).mean();
      variance_[o] += square;
      const bool rounded_anyway = kept_places_[o].narrow && values.contains(kept_places_[o].key);
      if (!rounded_anyway) point.by_output[o] = square;
    }
    curve_.points.push_back(std::move(point));
  }

  void finish() {
    const auto count = static_cast<double>(kept_places_.size());
    for (KeepCurve::Point& point : curve_.points) {
      for (size_t o = 0; o < kept_places_.size(); ++o) {
        if (variance_[o] > 0) point.by_output[o] /= variance_[o];
        point.share += point.by_output[o] / count;
      }
    }
    std::erase_if(curve_.points, [](const KeepCurve::Point& point) { return point.share <= 1e-9; });
    std::ranges::stable_sort(curve_.points, std::greater<>(), &KeepCurve::Point::share);
    double kept = 0;
    for (KeepCurve::Point& point : curve_.points) {
      kept += point.share;
      point.left = std::sqrt(std::max(0.0, 1 - kept));
    }
    curve_.unavoidable = curve_.points.empty() ? 1 : curve_.points.back().left;
    for (size_t o = 0; o < kept_places_.size(); ++o)
      curve_.outputs[o].sum_over_whole = std::sqrt(variance_[o]) / curve_.outputs[o].error;
  }

  ModelRunner& wide_;
  Runner& target_;
  const NamedData& inputs_;
  const KeepProgress& progress_;
  StepWalk walk_;
  NamedData exact_;          // Of the float32 run, every value.
  NamedData target_values_;
  std::vector<OutputPlace> places_, kept_places_;
  std::vector<Unit> units_;
  std::vector<double> variance_;  // By output: Σ of what single nodes add to its mean square error.
  KeepCurve curve_;
};

}  // namespace

void KeepCurve::choose(double part) {
  chosen = 0;
  while (chosen < points.size() && (chosen == 0 || points[chosen - 1].left > part)) ++chosen;
  for (size_t o = 0; o < outputs.size(); ++o) {
    double kept = 0;
    for (size_t i = 0; i < chosen; ++i) kept += points[i].by_output[o];
    outputs[o].predicted = std::sqrt(std::max(0.0, 1 - kept));
  }
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
