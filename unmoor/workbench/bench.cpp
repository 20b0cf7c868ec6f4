#include "unmoor/workbench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t least_runs = 5;
constexpr size_t rounds = 15;         // Of turns between the runners.
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

size_t batch_of(const NamedData& inputs) {
  for (const auto& [name, data] : inputs) {
    if (data.is_tensor() && data.tensor().shape().rank() > 0) return static_cast<size_t>(data.tensor().shape()[0]);
  }
  return 1;
}

// The median with its 95 % range by order statistics (binomial, normal approximation).
BenchRatio ratio_of(const BenchRun& a, const BenchRun& b, std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const auto count = static_cast<double>(ratios.size());
  const double reach = 1.96 * std::sqrt(count) / 2;
  const auto at = [&](double rank) { return ratios[static_cast<size_t>(std::clamp(rank, 0.0, count - 1))]; };
  return {a.runner, b.runner, percentile(ratios, 0.5), at(std::floor(count / 2 - reach)), at(std::ceil(count / 2 + reach) - 1)};
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
    run.threads = options_.threads > 0 ? options_.threads : std::thread::hardware_concurrency();
    run.batch = batch_of(inputs_);
    const double first = runner.time_runs(inputs_, 1, 0).at(0);
    run.load_ms = runner.load_ms();
    run.prepare_ms = runner.prepare_ms();
    run.first_ms = first;
    result.runs.push_back(std::move(run));
    (void)runner.time_runs(inputs_, 1, 0);
  }

  void measure() {
    const double before = load_average();
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
    for (size_t i = 0; i < runners_.size(); ++i) {
      while (result.runs[i].warm.size() < least_runs) result.runs[i].warm.push_back(runners_[i]->time_runs(inputs_, 1, 0).at(0));
      result.runs[i].peak_bytes = runners_[i]->peak_bytes();
    }
    for (size_t i = 0; i < runners_.size(); ++i) {
      for (size_t k = i + 1; k < runners_.size(); ++k) {
        std::vector<double> ratios;
        for (size_t round = 0; round < rounds; ++round) ratios.push_back(medians[i][round] / medians[k][round]);
        result.ratios.push_back(ratio_of(result.runs[i], result.runs[k], std::move(ratios)));
      }
    }
    warn(before);
  }

  BenchResult result;

 private:
  void progress(const std::string& what, size_t done, size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  void warn(double load_before) {
    const auto cores = static_cast<double>(std::thread::hardware_concurrency());
    if (load_before > 0.5 * cores) {
      result.warnings.push_back(fmt::format("the machine was busy before: a load of {:.1f} on {} cores", load_before, cores));
    }
    for (const BenchRun& run : result.runs) {
      if (spread_of(run.warm) > 0.15) {
        result.warnings.push_back(fmt::format("runs of {} spread by {:.0f} % of their mean", run.runner, 100 * spread_of(run.warm)));
      }
    }
  }

  const NamedData& inputs_;
  const BenchOptions& options_;
  std::vector<std::unique_ptr<Runner>> runners_;
};

}  // namespace

double percentile(std::vector<double> values, double share) {
  if (values.empty()) fail(ErrorKind::Internal, "a percentile of nothing was asked for");
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
  return values[static_cast<size_t>(std::clamp(rank, 0.0, static_cast<double>(values.size() - 1)))];
}

BenchResult bench(const std::vector<std::string>& devices, const OpenForBench& open, const NamedData& inputs, const BenchOptions& options) {
  Bench measured(inputs, options);
  for (const std::string& device : devices) measured.open(device, open);
  measured.measure();
  return std::move(measured.result);
}

json BenchResult::to_json() const {
  json result{{"runs", json::array()}, {"ratios", json::array()}, {"warnings", warnings}};
  for (const BenchRun& run : runs) {
    std::vector<double> samples;
    const size_t step = run.warm.size() / kept_samples + 1;
    for (size_t i = 0; i < run.warm.size(); i += step) samples.push_back(run.warm[i]);
    result["runs"].push_back({{"runner", run.runner}, {"threads", run.threads}, {"batch", run.batch}, {"load_ms", run.load_ms},
                              {"prepare_ms", run.prepare_ms}, {"first_ms", run.first_ms},
                              {"warm", {{"count", run.warm.size()}, {"p50", percentile(run.warm, 0.5)}, {"p90", percentile(run.warm, 0.9)},
                                        {"p99", percentile(run.warm, 0.99)}, {"min", *std::ranges::min_element(run.warm)},
                                        {"mean", mean_of(run.warm)}, {"cv", spread_of(run.warm)}, {"samples", samples}}},
                              {"peak_bytes", run.peak_bytes}});
  }
  for (const BenchRatio& ratio : ratios) {
    result["ratios"].push_back({{"a", ratio.a}, {"b", ratio.b}, {"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}});
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
  std::string text = fmt::format("{} thread{}, batch {}; milliseconds\n{}", runs[0].threads, runs[0].threads == 1 ? "" : "s", runs[0].batch, table.text());
  for (const BenchRatio& ratio : ratios) {
    text += fmt::format("{} takes {:.2f} times as long as {} (95 % range {:.2f} to {:.2f})\n", ratio.a, ratio.median, ratio.b, ratio.low, ratio.high);
  }
  for (const std::string& warning : warnings) text += fmt::format("note: {}\n", warning);
  return text;
}

}  // namespace unmoor
