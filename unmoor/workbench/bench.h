#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/workbench/result.h"

namespace unmoor {

struct BenchOptions {
  double seconds = 1;   // Of warm runs for each runner; at least five runs.
  size_t threads = 0;   // For the record; 0: one a core.
  std::function<void(const std::string&, size_t, size_t)> progress = {};
};

struct BenchRun {
  std::string runner;
  size_t threads = 0;
  size_t batch = 1;            // The first dimension of the first input.
  double load_ms = 0;
  double prepare_ms = 0;
  double first_ms = 0;         // The first run after preparation.
  std::vector<double> warm;    // Milliseconds of each warm run, in order.
  size_t peak_bytes = 0;       // Of the process that ran it.
};

// Time of a over time of b, round by round in turns.
struct BenchRatio {
  std::string a;
  std::string b;
  double median = 0;
  double low = 0;   // 95 % range of the median.
  double high = 0;
};

struct BenchResult {
  std::vector<BenchRun> runs;
  std::vector<BenchRatio> ratios;
  std::vector<std::string> warnings;

  nlohmann::json to_json() const;
  std::string text() const;
};

// Opens each runner (each in a process of its own, so that they do not share caches and threads), then measures them in turns on the same inputs.
using OpenForBench = std::function<std::unique_ptr<Runner>(const std::string& device)>;
BenchResult bench(const std::vector<std::string>& devices, const OpenForBench& open, const NamedData& inputs, const BenchOptions& options);

double percentile(std::vector<double> values, double share);  // Nearest rank, of a non-empty list.

}  // namespace unmoor
