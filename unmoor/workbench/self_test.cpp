#include "unmoor/workbench/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/runtime/session.h"
#include "unmoor/workbench/align.h"
#include "unmoor/workbench/inputs.h"
#include "unmoor/workbench/result.h"
#include "unmoor/workbench/self_test_plants.h"

namespace unmoor {
namespace {

using nlohmann::json;

// A target that runs as another does, but for one planted value.
class PlantedRunner : public Runner {
 public:
  PlantedRunner(Runner& honest, const Plant& plant, unsigned way, const NamedData& values) : honest_(honest), plant_(plant), way_(way), values_(values) {}

  std::string name() const override { return "planted"; }
  std::vector<ValueInfo> inputs() const override { return way_ == as_dump ? std::vector<ValueInfo>() : honest_.inputs(); }
  std::vector<ValueInfo> outputs() const override { return honest_.outputs(); }
  std::vector<ValueInfo> values() const override { return honest_.values(); }
  std::vector<StepInfo> steps() const override { return way_ == as_dump ? std::vector<StepInfo>() : honest_.steps(); }
  std::vector<double> time_runs(const NamedData& inputs, size_t count, double seconds) override { return honest_.time_runs(inputs, count, seconds); }

  NamedData run(const NamedData& inputs, Observer* observer) override {
    Changing changing(*this, observer);
    NamedData outputs = honest_.run(inputs, observer == nullptr ? nullptr : &changing);
    if (way_ != as_output) return outputs;
    const auto planted = outputs.find(plant_.node);
    if (Data data = plant_.change(planted->second, values_))
      planted->second = std::move(data);
    else
      outputs.erase(planted);
    return outputs;
  }

  std::vector<Data> run_step(size_t step, const NamedData& inputs) override {
    std::vector<Data> made = honest_.run_step(step, inputs);
    if (way_ == as_kernel && honest_.steps().at(step).node == plant_.node) made.at(0) = plant_.change(made.at(0), values_);
    return made;
  }

 private:
  class Changing : public Observer {
   public:
    Changing(const PlantedRunner& runner, Observer* to) : runner_(runner), to_(to) {}
    bool wants(const ValueInfo& info) override { return to_->wants(info); }
    void on_value(const ValueInfo& info, const Data& data) override {
      const bool planted = runner_.way_ == as_dump && info.name == runner_.plant_.node;
      to_->on_value(info, planted ? runner_.plant_.change(data, runner_.values_) : data);
    }

   private:
    const PlantedRunner& runner_;
    Observer* to_;
  };

  Runner& honest_;
  const Plant& plant_;
  unsigned way_;
  const NamedData& values_;
};

// A model with its two honest runs.
struct Bench {
  Bench(PlantModel which, const std::shared_ptr<Device>& host)
      : graph(std::make_shared<const Graph>(plant_model(which))),
        reference(graph, {host}, {.passes = {.fuse = false, .widen_to_float64 = true}}),
        target(graph, {host}, {.passes = {.fuse = false}}) {
    for (const ValueInfo& input : target.inputs()) inputs[input.name] = generate_input(input, {});
    values = target.run(inputs);
  }
  std::shared_ptr<const Graph> graph;  // Shared by the runners.
  ModelRunner reference;
  ModelRunner target;
  NamedData inputs;
  NamedData values;  // All: each is an output.
};

bool is_off(ValueVerdict verdict) { return verdict == ValueVerdict::Differ || verdict == ValueVerdict::Suspicious; }

// Whether the alignment calls the planted value a defect, and nothing before it.
bool is_seen(const AlignResult& result, const Plant& plant, unsigned way) {
  if (way != as_output) return result.verdict == "differ" && result.first_divergent == plant.node;
  const auto found = std::ranges::find(result.outputs, plant.node, &AlignedValue::name);
  return result.verdict == "differ" && found != result.outputs.end() && is_off(found->verdict);
}

std::string tried(Bench& bench, const Plant& plant, unsigned way) {
  PlantedRunner planted(bench.target, plant, way, bench.values);
  AlignOptions options;
  options.model = &*bench.graph;
  options.causes = false;
  const AlignResult result = align(bench.reference, planted, bench.inputs, options);
  if (plant.is_defect) return is_seen(result, plant, way) ? "found" : "missed";
  return result.verdict == "differ" ? "flagged" : "passed";
}

}  // namespace

bool SelfTestCase::right() const {
  return std::ranges::none_of(results, [](const std::string& result) { return result == "missed" || result == "flagged"; });
}

std::vector<std::string> self_test_ways() { return {"kernel", "dump", "output"}; }

SelfTestResult self_test(const std::shared_ptr<Device>& host, const std::function<void(const std::string&, size_t, size_t)>& progress) {
  Bench small(PlantModel::Small, host);
  Bench million(PlantModel::Million, host);
  SelfTestResult result;
  for (const Plant& plant : plants()) {
    if (progress) progress(plant.name, result.cases.size(), plants().size());
    SelfTestCase each{plant.name, plant.node, plant.is_defect, {}};
    for (const unsigned way : {as_kernel, as_dump, as_output}) {
      Bench& bench = plant.model == PlantModel::Small ? small : million;
      each.results.push_back((plant.ways & way) != 0 ? tried(bench, plant, way) : "");
    }
    result.cases.push_back(std::move(each));
  }
  return result;
}

size_t SelfTestResult::wrong() const {
  return static_cast<size_t>(std::ranges::count_if(cases, [](const SelfTestCase& each) { return !each.right(); }));
}

json SelfTestResult::to_json() const {
  json list = json::array();
  for (const SelfTestCase& each : cases) {
    json entry{{"case", each.name}, {"node", each.node}, {"defect", each.is_defect}, {"right", each.right()}};
    for (size_t i = 0; i < each.results.size(); ++i) entry[self_test_ways()[i]] = each.results[i].empty() ? json(nullptr) : json(each.results[i]);
    list.push_back(std::move(entry));
  }
  return {{"cases", std::move(list)}, {"wrong", wrong()}};
}

std::string SelfTestResult::text() const {
  std::string text;
  for (const bool defects : {true, false}) {
    Table table({defects ? "planted defect" : "difference that is none", "in", "kernel", "dump", "output"});
    for (const SelfTestCase& each : cases) {
      if (each.is_defect != defects) continue;
      std::vector<std::string> row{each.name, each.node};
      for (const std::string& result : each.results) row.push_back(result.empty() ? "-" : result);
      table.add(std::move(row));
    }
    text += table.text();
  }
  const size_t defects = static_cast<size_t>(std::ranges::count(cases, true, &SelfTestCase::is_defect));
  return text + fmt::format("{} planted defects and {} differences that are none: {}\n", defects, cases.size() - defects,
                            wrong() == 0 ? "all told apart" : fmt::format("{} told wrongly", wrong()));
}

}  // namespace unmoor
