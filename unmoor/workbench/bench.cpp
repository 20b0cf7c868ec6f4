#include "unmoor/workbench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/base/threads.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t most_rounds = 15;    // Of turns between the runners.
constexpr size_t least_rounds = 6;    // The fewest whose extremes hold the median in 95 of 100 cases; a round is a run at least.
constexpr size_t kept_samples = 300;  // In the JSON: the rest is thinned out evenly.

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Standard deviation over mean.
double spread_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return mean > 0 ? std::sqrt(sum / static_cast<double>(values.size())) / mean : 0;
}

// The first dimension of the first input that has one, in the order of the model.
size_t batch_of(const Runner& runner, const NamedData& inputs) {
  for (const ValueInfo& input : runner.inputs()) {
    const auto found = inputs.find(input.name);
    const bool ranked = found != inputs.end() && found->second.is_tensor() && found->second.tensor().shape().rank() > 0;
    if (ranked) return static_cast<size_t>(found->second.tensor().shape()[0]);
  }
  return 1;
}

// The median with its 95 % range by order statistics.
BenchRatio ratio_of(const BenchRun& a, const BenchRun& b, std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const size_t count = ratios.size();
  const size_t out = outside_of_range(count);
  return {a.runner, b.runner, (ratios[(count - 1) / 2] + ratios[count / 2]) / 2, ratios[out], ratios[count - 1 - out]};
}

double load_average() {
  std::ifstream file("/proc/loadavg");
  double load = 0;
  file >> load;
  return load;
}

class Bench {
 public:
  Bench(const NamedData& inputs, const BenchOptions& options) : inputs_(inputs), options_(options) {}

  void open(const std::string& device, const OpenForBench& open_runner) {
    progress(fmt::format("prepare {}", device), 0, 0);
    runners_.push_back(open_runner(device));
    Runner& runner = *runners_.back();
    BenchRun run;
    run.runner = device;
    run.threads = options_.threads > 0 ? options_.threads : usable_threads();
    run.batch = batch_of(runner, inputs_);
    const double first = runner.time_runs(inputs_, 1, 0).at(0);
    run.load_ms = runner.load_ms();
    run.prepare_ms = runner.prepare_ms();
    run.first_ms = first;
    const PlanInfo plan = runner.plan();
    run.fallback_nodes = plan.fallback_nodes;
    if (!plan.versions.empty()) run.versions = plan.versions[0];
    result.runs.push_back(std::move(run));
    slowest_ms_ = std::max(slowest_ms_, runner.time_runs(inputs_, 1, 0).at(0));
  }

  void measure() {
    const double fitting = options_.seconds * 1000 / std::max(slowest_ms_, 1e-3);
    const auto rounds = static_cast<size_t>(std::clamp(fitting, static_cast<double>(least_rounds), static_cast<double>(most_rounds)));
    std::vector<std::vector<double>> medians(runners_.size());
    for (size_t round = 0; round < rounds; ++round) {
      progress("warm runs", round, rounds);
      for (size_t k = 0; k < runners_.size(); ++k) {
        const size_t i = round % 2 == 0 ? k : runners_.size() - 1 - k;
        auto times = runners_[i]->time_runs(inputs_, 1, options_.seconds / static_cast<double>(rounds));
        medians[i].push_back(percentile(times, 0.5));
        auto& warm = result.runs[i].warm;
        warm.insert(warm.end(), times.begin(), times.end());
      }
    }
    for (size_t i = 0; i < runners_.size(); ++i) result.runs[i].peak_bytes = runners_[i]->peak_bytes();
    for (size_t i = 0; i < runners_.size(); ++i) {
      for (size_t k = i + 1; k < runners_.size(); ++k) {
        std::vector<double> ratios;
        for (size_t round = 0; round < rounds; ++round) ratios.push_back(medians[i][round] / medians[k][round]);
        result.ratios.push_back(ratio_of(result.runs[i], result.runs[k], std::move(ratios)));
      }
    }
    warn();
  }

  BenchResult result;

 private:
  void progress(const std::string& what, size_t done, size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  void warn() {
    const auto cores = static_cast<double>(usable_threads());
    if (load_before_ > 0.5 * cores) {
      result.warnings.push_back(fmt::format("the machine was busy before: a load of {:.1f} on {}", load_before_, counted(usable_threads(), "core")));
    }
    for (const BenchRun& run : result.runs) {
      if (run.fallback_nodes > 0) {
        result.warnings.push_back(fmt::format("{} of {} fell back to the host: its time is in this row", counted(run.fallback_nodes, "node"), run.runner));
      }
      if (spread_of(run.warm) > 0.15) {
        result.warnings.push_back(fmt::format("runs of {} spread by {:.0f} % of their mean", run.runner, 100 * spread_of(run.warm)));
      }
    }
  }

  const NamedData& inputs_;
  const BenchOptions& options_;
  const double load_before_ = load_average();  // Before our own preparation.
  double slowest_ms_ = 0;
  std::vector<std::unique_ptr<Runner>> runners_;
};

}  // namespace

// Leaving out k misses the median where at most k values lie on one side of it, which is a binomial sum; none are left out where even that is too
// often.
size_t outside_of_range(size_t count) {
  double term = std::pow(0.5, static_cast<double>(count));
  double sum = 0;
  for (size_t k = 0;; ++k) {
    sum += term;
    if (2 * sum > 0.05) return k == 0 ? 0 : k - 1;
    if (2 * (k + 1) >= count) return k;
    term *= static_cast<double>(count - k) / static_cast<double>(k + 1);
  }
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) fail(ErrorKind::Internal, "a percentile of nothing was asked for");
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
  return values[static_cast<size_t>(std::clamp(rank, 0.0, static_cast<double>(values.size() - 1)))];
}

BenchResult bench(const std::vector<std::string>& devices, const OpenForBench& open, const NamedData& inputs, const BenchOptions& options) {
  Bench running(inputs, options);
  for (const std::string& device : devices) running.open(device, open);
  running.measure();
  return std::move(running.result);
}

json BenchResult::to_json() const {
  json result{{"runs", json::array()}, {"ratios", json::array()}, {"warnings", warnings}};
  for (const BenchRun& run : runs) {
    json samples = json::array();
    const size_t step = run.warm.size() / kept_samples + 1;
    for (size_t i = 0; i < run.warm.size(); i += step) samples.push_back(measured(run.warm[i]));
    result["runs"].push_back({{"runner", run.runner}, {"threads", run.threads}, {"batch", run.batch}, {"fallback_nodes", run.fallback_nodes}, {"load_ms", measured(run.load_ms)},
                              {"prepare_ms", measured(run.prepare_ms)}, {"first_ms", measured(run.first_ms)},
                              {"warm", {{"count", run.warm.size()}, {"p50", measured(percentile(run.warm, 0.5))}, {"p90", measured(percentile(run.warm, 0.9))},
                                        {"p99", measured(percentile(run.warm, 0.99))}, {"min", measured(*std::ranges::min_element(run.warm))},
                                        {"mean", measured(mean_of(run.warm))}, {"cv", measured(spread_of(run.warm))}, {"samples", samples}}},
                              {"peak_bytes", run.peak_bytes}});
  }
  for (const BenchRatio& ratio : ratios) {
    result["ratios"].push_back({{"a", ratio.a}, {"b", ratio.b}, {"median", measured(ratio.median)}, {"low", measured(ratio.low)}, {"high", measured(ratio.high)}});
  }
  return result;
}

std::string BenchResult::text() const {
  Table table({"runner", "load", "prepare", "first", "p50", "p90", "p99", "runs", "peak"}, "lrrrrrrrr");
  for (const BenchRun& run : runs) {
    const auto ms = [](double value) { return fmt::format("{:.2f}", value); };
    table.add({run.runner, ms(run.load_ms), ms(run.prepare_ms), ms(run.first_ms), ms(percentile(run.warm, 0.5)), ms(percentile(run.warm, 0.9)),
               ms(percentile(run.warm, 0.99)), std::to_string(run.warm.size()), short_bytes(static_cast<double>(run.peak_bytes))});
  }
  std::string text = fmt::format("{}, batch {}; milliseconds\n{}", counted(runs[0].threads, "thread"), runs[0].batch, table.text());
  for (const BenchRatio& ratio : ratios) {
    text += fmt::format("{} takes {:.2f} times as long as {} (95 % range {:.2f} to {:.2f})\n", ratio.a, ratio.median, ratio.b, ratio.low, ratio.high);
  }
  for (const std::string& warning : warnings) text += fmt::format("note: {}\n", warning);
  return text;
}

}  // namespace unmoor
