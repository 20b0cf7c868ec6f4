#include "unmoor/workbench/align.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/base/heap.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/align_steps.h"
#include "unmoor/workbench/baseline.h"
#include "unmoor/workbench/exact_rules.h"
#include "unmoor/workbench/noise/model_noise.h"
#include "unmoor/workbench/selections.h"

namespace unmoor {
namespace {

bool is_off(ValueVerdict verdict) { return verdict == ValueVerdict::Differ || verdict == ValueVerdict::Suspicious; }

DType dtype_of(const Data& data) { return data.is_tensor() ? data.tensor().dtype() : DType::F32; }

class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

int severity(ValueVerdict verdict) {
  constexpr std::array order{ValueVerdict::Hidden,     ValueVerdict::Match,      ValueVerdict::Explained, ValueVerdict::Undefined,
                             ValueVerdict::AsBaseline, ValueVerdict::Suspicious, ValueVerdict::Differ};
  return static_cast<int>(std::ranges::find(order, verdict) - order.begin());
}

// What of the target's run waits for the reference to show the same value.
struct Waiting {
  size_t value = 0;  // Index into AlignResult::values.
  Data actual;
  std::optional<Sampled> sampled;
};

class TypesObserver : public Observer {
 public:
  bool wants(const ValueInfo&) override { return true; }
  void on_value(const ValueInfo& info, const Data& data) override { found[info.name] = dtype_of(data); }
  std::map<std::string, DType, std::less<>> found;
};

class Alignment {
 public:
  Alignment(Runner& reference, Runner& target, const NamedData& inputs, const AlignOptions& options)
      : reference_(reference), target_(target), inputs_(inputs), options_(options) {
    judging_.tolerance = options.tolerance;
    judging_.always_floor = options.always_floor;
    judging_.seed = options.seed;
  }

  AlignResult run() {
    result_.reference = reference_.name();
    result_.target = target_.name();
    result_.tolerance = options_.tolerance;
    prepare();
    run_target();
    give_back_freed_memory();  // Noise of the whole model takes the most; then the reference takes the model's weights in float64.
    run_reference();
    compare_outputs();
    check_compared();
    conclude();
    return std::move(result_);
  }

 private:
  // The target's run: each value is compared as it is shown if the exact one is known then, else it waits.
  class TargetObserver : public Observer {
   public:
    explicit TargetObserver(Alignment& alignment) : alignment_(alignment) {}
    bool wants(const ValueInfo& info) override { return alignment_.selects(info.name); }
    void on_value(const ValueInfo& info, const Data& data) override { alignment_.on_target(info, data); }

   private:
    Alignment& alignment_;
  };
  class ReferenceObserver : public Observer {
   public:
    explicit ReferenceObserver(Alignment& alignment) : alignment_(alignment) {}
    bool wants(const ValueInfo& info) override { return alignment_.waiting_.contains(info.name) || alignment_.steps_->needs(info.name); }
    void on_value(const ValueInfo& info, const Data& data) override { alignment_.on_reference(info, data); }

   private:
    Alignment& alignment_;
  };

  bool selects(const std::string& value) const { return !options_.selects || options_.selects(value); }

  void progress(const std::string& what, size_t done, size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  // What the reference shows is exact if it is the reference backend in float64 on this very model.
  void prepare() {
    if (options_.model == nullptr) return;
    try {
      graph_.emplace(*options_.model, inputs_);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      result_.without_noise = error.what();
      result_.no_noise = true;
    }
    if (graph_) selections_.emplace(*graph_, inputs_);
    exact_reference_ = reference_.name() == "reference" && !reference_.inputs().empty();
  }

  void start_noise() {
    if (!graph_) return;
    std::map<std::string, DType, std::less<>> shown;
    if (target_.steps().empty()) {
      TypesObserver types;  // A dump knows them only as it reads its files.
      target_.run(inputs_, &types);
      shown = std::move(types.found);
    } else {
      for (const ValueInfo& info : target_.values()) {
        if (const auto* type = std::get_if<TensorType>(&info.type)) shown[info.name] = type->dtype;
      }
    }
    std::map<std::string, DType, std::less<>> besides = options_.stored_besides;
    for (auto at = shown.begin(); at != shown.end();) {
      const auto next = std::next(at);
      if (!selects(at->first)) besides.insert(shown.extract(at));
      at = next;
    }
    noise_.emplace(*graph_, inputs_, shown, NoiseOptions{DType::F32, options_.noise_copies, options_.seed}, besides);
  }

  void run_target() {
    progress("target run", 0, 0);
    target_.run(inputs_);  // Plans it: then it is known which values it shows, and in what types.
    for (const ValueInfo& info : target_.values()) {  // In order of the run.
      const auto* const type = std::get_if<TensorType>(&info.type);
      if (!selects(info.name) && type != nullptr) stored_[info.name] = type->dtype;
    }
    start_noise();
    if (graph_ && target_.steps().empty()) {
      own_.emplace(AlignSteps::Setting{reference_, target_, inputs_, stored_, &*graph_, true, options_, judging_, true});
      std::set<std::string> visible;
      for (const ValueInfo& info : target_.values()) {
        if (selects(info.name)) visible.insert(info.name);
      }
      own_->plan(visible);
    }
    TargetObserver observer(*this);
    outputs_ = target_.run(inputs_, &observer);
    if (own_) take_judgements(*own_);
    result_.fallback_nodes = target_.plan().fallback_nodes;
  }

  std::optional<Sampled> taken(const std::string& name) {
    if (!noise_) return std::nullopt;
    const Stopwatch watch(result_.floor_ms);
    return noise_->take(name);
  }

  void on_target(const ValueInfo& info, const Data& data) {
    AlignedValue value{info.name, info.node, info.op, dtype_of(data)};
    name_maker(value);
    if (own_) own_->on_value(info.name, data);
    value.finite = all_finite(data);
    value.nan = !value.finite && has_nan(data);
    std::optional<Sampled> sampled = taken(info.name);
    if (sampled && exact_reference_) {
      judge_entire(value, sampled->exact, data, &*sampled);
    } else {
      waiting_[info.name] = {result_.values.size(), kept(data), std::move(sampled)};
    }
    stored_[info.name] = value.dtype;
    result_.values.push_back(std::move(value));
  }

  // A dump does not say what made a value.
  void name_maker(AlignedValue& value) const {
    const auto id = graph_ && value.node.empty() ? graph_->find(value.name) : std::nullopt;
    const auto maker = id ? graph_->maker(*id) : std::nullopt;
    if (!maker) return;
    const Node& node = graph_->graph().node(*maker);
    value.node = node.origin.name.empty() ? node.name : node.origin.name;
    value.op = node.origin.op.empty() ? node.op : node.origin.op;
  }

  void take_judgements(AlignSteps& steps) {
    steps.finish();
    result_.floor_ms += steps.floor_ms();
    for (auto& [name, judgement] : steps.judgements()) single_[name] = std::move(judgement);
  }

  void judge_entire(AlignedValue& value, const Data& expected, const Data& actual, const Sampled* sampled) {
    JudgeOptions judging = judging_;
    judging.both_round = expected.is_tensor() && expected.tensor().dtype() != DType::F64;
    if (const auto id = graph_ ? graph_->find(value.name) : std::nullopt) {
      const Region last = graph_->last_nodes(*id);
      judging.winograd = may_be_winograd(last);
      judging.places = selects_places(last);
      judging.steps = quantises(last) && !judging.places;
    }
    if (selections_) selections_->on_value(value.name, expected);
    Judgement found = judge_after_run(expected, actual, sampled, judging);
    if (judging.places && is_off(found.verdict) && selections_->are_equal(value.name, expected, actual))
      found = {std::move(found.metrics), ValueVerdict::Match, "other places of equal values"};
    if (options_.baseline != nullptr) options_.baseline->weigh_run(value.name, value.dtype, found);
    value.entire = std::move(found.metrics);
    value.verdict = value.entire_verdict = found.verdict;
    value.note = std::move(found.note);
  }

  void run_reference() {
    for (const auto& [name, data] : inputs_) stored_[name] = dtype_of(data);
    AlignSteps::Setting setting{reference_,       target_,  inputs_, stored_, graph_ ? &*graph_ : nullptr,
                                exact_reference_, options_, judging_};
    steps_.emplace(setting);
    if (!own_) {
      std::set<std::string> comparable;
      for (const AlignedValue& value : result_.values) comparable.insert(value.name);
      steps_->plan(comparable);
    }
    progress("reference run", 0, 0);
    ReferenceObserver observer(*this);
    expected_outputs_ = reference_.run(inputs_, &observer);
    take_judgements(*steps_);
  }

  void on_reference(const ValueInfo& info, const Data& data) {
    if (const auto found = waiting_.find(info.name); found != waiting_.end()) {
      const Waiting& waiting = found->second;
      judge_entire(result_.values[waiting.value], data, waiting.actual, waiting.sampled ? &*waiting.sampled : nullptr);
      waiting_.erase(found);
    }
    steps_->on_value(info.name, data);
  }

  void compare_outputs() {
    for (const auto& [name, data] : outputs_) {
      AlignedValue value{name, "", "", dtype_of(data)};
      value.finite = all_finite(data);
      const auto found = expected_outputs_.find(name);
      if (found != expected_outputs_.end()) {
        const std::optional<Sampled> sampled = taken(name);
        judge_entire(value, found->second, data, sampled ? &*sampled : nullptr);
        const bool narrow = value.dtype == DType::F32 || value.dtype == DType::F16 || value.dtype == DType::BF16;
        if (sampled && narrow) value.uncertainty = root_mean_square(spread_of(*sampled));
      }
      result_.outputs.push_back(std::move(value));
    }
    // A dump holds more than outputs, and nobody knows which of its values are some.
    if (reference_.steps().empty()) return;
    for (const auto& [name, data] : expected_outputs_) {
      if (outputs_.contains(name)) continue;
      AlignedValue value{name, "", "", dtype_of(data)};
      value.entire = Metrics{};
      value.entire->problem = "not shown";
      value.verdict = ValueVerdict::Differ;
      result_.outputs.push_back(std::move(value));
    }
  }

  // Fails with InvalidArgument if the two show nothing under one name, which must not read as a match.
  void check_compared() const {
    const auto compared = [](const AlignedValue& value) { return value.entire.has_value(); };
    if (single_.empty() && std::ranges::none_of(result_.values, compared) && std::ranges::none_of(result_.outputs, compared)) {
      fail(ErrorKind::InvalidArgument, reference_.name(), " and ", target_.name(), " show no value of the same name");
    }
  }

  // A dump's files may lie in any order; the model's says what comes before what.
  void order_values() {
    if (!graph_ || !own_) return;
    std::ranges::stable_sort(result_.values, {}, [this](const AlignedValue& value) {
      const auto id = graph_->find(value.name);
      const auto maker = id ? graph_->maker(*id) : std::nullopt;
      return maker ? static_cast<size_t>(*maker) + 1 : 0;
    });
  }

  // Of values that are made of right ones, else of those where the run has drifted away.
  void find_first_divergent() {
    const auto single = std::ranges::find_if(result_.values, [](const AlignedValue& value) { return is_off(value.verdict) && is_off(value.single_verdict); });
    const auto first = single != result_.values.end() ? single : std::ranges::find_if(result_.values, is_off, &AlignedValue::verdict);
    if (first != result_.values.end()) result_.first_divergent = first->node.empty() ? first->name : first->node;
  }

  void conclude() {
    order_values();
    // A dump has no kernels to run alone: its values are judged as they are.
    result_.kernels_alone = !target_.steps().empty();
    if (noise_ && result_.without_noise.empty()) result_.without_noise = noise_->unknown();
    std::set<std::string> finite;
    for (const auto& [name, data] : inputs_) {
      if (all_finite(data)) finite.insert(name);
    }
    for (AlignedValue& value : result_.values) {
      if (const auto found = single_.find(value.name); found != single_.end()) {
        value.single = std::move(found->second.metrics);
        value.single_verdict = found->second.verdict;
        // Of a dump the run itself is judged, too: its kernels may be right for another model than the reference ran.
        if (result_.kernels_alone || severity(found->second.verdict) >= severity(value.verdict)) {
          value.verdict = found->second.verdict;
          value.note = std::move(found->second.note);
        }
        value.cause = std::move(found->second.cause);
        value.plane = std::move(found->second.plane);
        value.pattern = std::move(found->second.pattern);
        value.replay = std::move(found->second.replay);
      } else if (result_.kernels_alone || is_narrowed()) {
        value.verdict = ValueVerdict::Hidden;
        value.note.clear();
      }
      if (!value.entire) result_.hidden.push_back(value.node);
      if (value.finite) finite.insert(value.name);
    }
    find_first_divergent();
    find_nonfinite(finite);
    if (options_.baseline != nullptr) options_.baseline->attach(result_);
    const auto any = [this](auto... verdicts) {
      const auto is = [&](const AlignedValue& value) { return ((value.verdict == verdicts) || ...); };
      return std::ranges::any_of(result_.values, is) || std::ranges::any_of(result_.outputs, is);
    };
    result_.verdict = any(ValueVerdict::Differ, ValueVerdict::Suspicious)     ? "differ"
                      : any(ValueVerdict::Explained, ValueVerdict::Undefined, ValueVerdict::AsBaseline) ? "explained"
                                                                              : "match";
  }

  bool is_narrowed() const { return !options_.nodes.empty() || !options_.ops.empty(); }

  void find_nonfinite(const std::set<std::string>& finite) {
    // Infinities that the reference has at the same places, such as those of a mask, are meant; so is what the baseline has there.
    const auto first = std::ranges::find_if(result_.values, [](const AlignedValue& value) {
      return !value.finite && value.entire_verdict != ValueVerdict::AsBaseline && (value.nan || !value.entire || !value.entire->problem.empty() || value.entire->class_mismatch > 0);
    });
    if (first == result_.values.end()) return;
    result_.first_nonfinite = first->node.empty() ? first->name : first->node;
    result_.nonfinite_origin = "its inputs are finite";
    for (const StepInfo& step : target_.steps()) {
      if (std::ranges::find(step.outputs, first->name) == step.outputs.end()) continue;
      for (const std::string& name : step.inputs) {
        if (name.empty() || finite.contains(name)) continue;
        result_.nonfinite_origin = selects(name) ? cat("its input '", name, "' is not finite either")
                                                 : "not all of its inputs were looked at";
      }
    }
  }

  Runner& reference_;
  Runner& target_;
  const NamedData& inputs_;
  const AlignOptions& options_;
  JudgeOptions judging_;
  bool exact_reference_ = false;
  std::optional<ModelGraph> graph_;
  std::optional<WholeModelNoise> noise_;
  std::optional<Selections> selections_;
  std::optional<AlignSteps> steps_;
  std::optional<AlignSteps> own_;  // Of a dump.
  NamedData outputs_, expected_outputs_;
  std::map<std::string, DType, std::less<>> stored_;  // How the target stores each value.
  std::map<std::string, Waiting, std::less<>> waiting_;
  std::map<std::string, Judgement, std::less<>> single_;
  AlignResult result_;
};

// Whether runs differ by more than noise makes of them, though each kernel alone is explained.
bool only_runs_differ(const AlignResult& result) {
  const auto single_is_off = [](const AlignedValue& value) { return is_off(value.single_verdict); };
  const auto run_is_off = [](const AlignedValue& value) { return is_off(value.entire_verdict) && value.entire && value.entire->excess_e; };
  return std::ranges::none_of(result.values, single_is_off) &&
         (std::ranges::any_of(result.values, run_is_off) || std::ranges::any_of(result.outputs, run_is_off));
}

}  // namespace

size_t AlignResult::count(ValueVerdict which) const {
  return static_cast<size_t>(std::ranges::count(values, which, &AlignedValue::verdict));
}

AlignResult align(Runner& reference, Runner& target, const NamedData& inputs, const AlignOptions& options) {
  AlignResult result = Alignment(reference, target, inputs, options).run();
  if (!only_runs_differ(result)) return result;
  AlignOptions again = options;
  again.noise_copies *= 3;
  AlignResult better = Alignment(reference, target, inputs, again).run();
  better.floor_ms += result.floor_ms;
  return better;
}

}  // namespace unmoor
