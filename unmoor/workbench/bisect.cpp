#include "unmoor/workbench/bisect.h"

#include <algorithm>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/cuts.h"
#include "unmoor/workbench/exact_rules.h"
#include "unmoor/workbench/noise/model_noise.h"

namespace unmoor {
namespace {

constexpr size_t most_failures = 4;  // In a row.

bool is_off(const Judgement& judged) { return judged.verdict == ValueVerdict::Differ || judged.verdict == ValueVerdict::Suspicious; }

// Keeps values of some names.
class Picker : public Observer {
 public:
  explicit Picker(std::set<std::string> names) : names_(std::move(names)) {}
  bool wants(const ValueInfo& info) override { return names_.contains(info.name); }
  void on_value(const ValueInfo& info, const Data& data) override {
    if (data.is_tensor()) found[info.name] = data.tensor().clone();
  }
  NamedData found;

 private:
  std::set<std::string> names_;
};

Data stored_as(const Data& data, DType dtype) {
  if (!data.is_tensor() || data.tensor().dtype() == dtype || !is_float(dtype)) return data;
  Tensor result(TensorType{dtype, data.tensor().shape()});
  store(result, doubles(data.tensor()));
  return result;
}

class Search {
 public:
  Search(const Model& model, const Graph& typed, Runner& reference, const NamedData& inputs, const std::string& output, const BisectOptions& options)
      : reference_(reference), inputs_(inputs), options_(options), parts_(model.path), cuts_(parts_, typed, output), graph_(model.graph, inputs),
        is_exact_(reference.name() == "reference") {
    result_.output = output;
    parts_.bring_weights(folder_.path());
    for (const std::string& name : cuts_.all_values()) {
      const auto dtype = cuts_.stored(name);
      if (dtype == DType::F16 || dtype == DType::BF16) narrow_[name] = *dtype;
    }
  }

  Bisection run() {
    halve();
    result_.right_until = cuts_.crossing(right_);
    for (size_t i = right_; i < wrong_; ++i) result_.within.push_back(cuts_.node_behind(i));
    if (wrong_ - right_ == 1) look_at_node();
    for (const std::string& name : cuts_.all_values()) {
      if (!seen_.contains(name)) result_.hidden.push_back(name);
    }
    return std::move(result_);
  }

 private:
  void halve() {
    wrong_ = cuts_.nodes();
    std::set<size_t> failed;
    size_t in_a_row = 0;
    while (wrong_ - right_ > 1) {
      const auto cut = cuts_.best_between(right_, wrong_, [&](size_t at) { return !failed.contains(at) && cuts_.rim(cuts_.crossing(at)).has_value(); });
      if (!cut) {
        result_.stopped = failed.empty() ? "what lies between cannot be an output of a part" : "the target took no part that ends in between";
        return;
      }
      const BisectTrial& trial = try_begin(*cut);
      if (trial.failure.empty()) {
        (trial.is_wrong ? wrong_ : right_) = *cut;
        in_a_row = 0;
        continue;
      }
      failed.insert(*cut);
      if (++in_a_row == most_failures) {
        result_.stopped = cat("the target failed on ", in_a_row, " parts in a row, the last time with: ", trial.failure);
        return;
      }
    }
  }

  const BisectTrial& try_begin(size_t cut) {
    const std::vector<std::string> names = cuts_.crossing(cut);
    BisectTrial trial{BisectTrial::Kind::Begin, names.back(), "", "", cut, names.size()};
    told(trial);
    try {
      judge_begin(run_part({}, names, inputs_), names, trial);
    } catch (const Error& error) {
      note_failure(error, trial);
    }
    return added(std::move(trial), names);
  }

  // Whether the found node is wrong on right values too, and whether anything behind it is.
  void look_at_node() {
    result_.node = cuts_.node_behind(right_);
    result_.op = cuts_.op_behind(right_);
    const std::vector<std::string> made = cuts_.made_behind(right_);
    result_.wrong_alone = try_between(BisectTrial::Kind::Alone, cuts_.read_behind(right_), made, 1);
    const size_t behind = cuts_.nodes() - wrong_;
    result_.wrong_behind = behind == 0 ? "no" : try_between(BisectTrial::Kind::Rest, cuts_.crossing(wrong_), {result_.output}, behind);
  }

  // A part from right values on, judged by what it makes of their very bits. "yes", "no" or "unknown".
  std::string try_between(BisectTrial::Kind kind, const std::vector<std::string>& given, const std::vector<std::string>& wanted, size_t nodes) {
    BisectTrial trial{kind, wanted.back(), "", "", nodes, wanted.size()};
    told(trial);
    try {
      NamedData data = inputs_;
      for (const auto& [name, value] : right_values(given)) data[name] = value;
      judge_between(data, run_part(given, wanted, data), wanted, trial);
    } catch (const Error& error) {
      note_failure(error, trial);
    }
    const BisectTrial& done = added(std::move(trial), wanted);
    return !done.failure.empty() ? "unknown" : done.is_wrong ? "yes" : "no";
  }

  void told(const BisectTrial& trial) const {
    if (options_.progress) options_.progress(cat("part ", result_.trials.size() + 1, ", up to '", trial.value, "'"), 0, 0);
  }

  static void note_failure(const Error& error, BisectTrial& trial) {
    if (error.kind() == ErrorKind::Stopped) throw;
    trial.failure = error.what();
  }

  const BisectTrial& added(BisectTrial trial, const std::vector<std::string>& shown) {
    if (const Node* const maker = cuts_.maker(trial.value)) {
      trial.node = maker->origin.name.empty() ? maker->name : maker->origin.name;
      trial.op = maker->origin.op.empty() ? maker->op : maker->origin.op;
    }
    if (trial.failure.empty()) seen_.insert(shown.begin(), shown.end());
    result_.trials.push_back(std::move(trial));
    return result_.trials.back();
  }

  NamedData run_part(const std::vector<std::string>& given, const std::vector<std::string>& wanted, const NamedData& data) {
    const std::string path = folder_.path() + "/part.onnx";
    const auto from = cuts_.rim(given);
    const auto to = cuts_.rim(wanted);
    if (!from || !to) fail(ErrorKind::Unsupported, "the type of a value at the rim of the part is not known");
    NamedData taken;
    for (const std::string& name : parts_.write(*from, *to, path)) {
      const auto input = inputs_.find(name);
      if (input == inputs_.end()) fail(ErrorKind::Unsupported, "the part reads '", name, "', which is no input of the run");
      taken[name] = input->second;
    }
    for (const std::string& name : given) taken[name] = data.at(name);
    NamedData found = options_.run_part(path, taken);
    for (const std::string& name : wanted) {
      if (!found.contains(name)) fail(ErrorKind::Device, "the target gives no '", name, "' as an output of a part of the model");
    }
    return found;
  }

  void judge_begin(const NamedData& actual, const std::vector<std::string>& names, BisectTrial& trial) {
    std::map<std::string, DType, std::less<>> shown;
    for (const std::string& name : names) {
      const Data& data = actual.find(name)->second;
      if (data.is_tensor()) shown[name] = data.tensor().dtype();
    }
    constexpr size_t copies = 4;
    WholeModelNoise noise(graph_, inputs_, shown, NoiseOptions{DType::F32, copies, options_.seed}, narrow_);
    NamedData known;
    for (const std::string& name : names) {
      const auto sampled = noise.take(name);
      Data expected = sampled && is_exact_ ? sampled->exact : Data();
      if (!expected) {
        if (known.empty()) known = from_reference(names);
        if (const auto found = known.find(name); found != known.end()) expected = found->second;
      }
      if (!expected) fail(ErrorKind::Unsupported, "the reference does not show '", name, "'");
      JudgeOptions judging{options_.tolerance};
      judging.both_round = expected.is_tensor() && expected.tensor().dtype() != DType::F64;
      if (const auto id = graph_.find(name)) {
        const Region last = graph_.last_nodes(*id);
        judging.winograd = may_be_winograd(last);
        judging.places = selects_places(last);
      }
      take(judge_after_run(expected, actual.find(name)->second, sampled ? &*sampled : nullptr, judging), name, trial);
      if (trial.is_wrong) return;
    }
  }

  void judge_between(const NamedData& given, const NamedData& actual, const std::vector<std::string>& wanted, BisectTrial& trial) {
    const auto region = graph_.region(wanted, given);
    if (!region) fail(ErrorKind::Unsupported, "the part cannot be computed here from these values alone");
    std::vector<Data> found;
    for (const std::string& name : wanted) found.push_back(actual.find(name)->second);
    const Node* const maker = cuts_.maker(wanted.back());
    const std::vector<Judgement> judged = judge_kernel(&*region, maker == nullptr ? "" : maker->op, exact_results(*region), found, JudgeOptions{options_.tolerance});
    for (size_t i = 0; i < judged.size(); ++i) {
      take(judged[i], wanted[i], trial);
      if (trial.is_wrong) return;
    }
  }

  static void take(Judgement judged, const std::string& name, BisectTrial& trial) {
    trial.judgement = std::move(judged);
    trial.value = name;
    trial.is_wrong = is_off(trial.judgement);
  }

  NamedData from_reference(const std::vector<std::string>& names) {
    Picker picker({names.begin(), names.end()});
    NamedData outputs = reference_.run(inputs_, &picker);
    for (const std::string& name : names) {
      if (const auto found = outputs.find(name); found != outputs.end()) picker.found.emplace(name, found->second);
    }
    return std::move(picker.found);
  }

  // As the model stores them.
  NamedData right_values(const std::vector<std::string>& names) {
    NamedData values = names.empty() ? NamedData() : from_reference(names);
    for (const std::string& name : names) {
      const auto found = values.find(name);
      const auto dtype = cuts_.stored(name);
      if (found == values.end() || !dtype) fail(ErrorKind::Unsupported, "the reference does not show '", name, "'");
      found->second = stored_as(found->second, *dtype);
    }
    return values;
  }

  Runner& reference_;
  const NamedData& inputs_;
  const BisectOptions& options_;
  const OnnxParts parts_;
  const Cuts cuts_;
  const ModelGraph graph_;
  const bool is_exact_;
  TemporaryFolder folder_;
  std::map<std::string, DType, std::less<>> narrow_;  // Values that the model stores in 16 bits.
  size_t right_ = 0, wrong_ = 0;                      // Cuts: up to one everything is right, at the other something is wrong.
  std::set<std::string> seen_;
  Bisection result_;
};

}  // namespace

Bisection bisect(const Model& model, const Graph& typed, Runner& reference, const NamedData& inputs, const std::string& output,
                 const BisectOptions& options) {
  return Search(model, typed, reference, inputs, output, options).run();
}

}  // namespace unmoor
