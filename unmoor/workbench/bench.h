#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/workbench/result.h"

namespace unmoor {

struct BenchOptions {
  double seconds = 1;   // Of warm runs for each runner; at least six runs.
  size_t threads = 0;   // Of the cpu device, for the record; 0: as many as this process may use.
  std::function<void(const std::string&, size_t, size_t)> progress = {};
};

struct BenchRun {
  std::string runner;
  size_t threads = 0;
  size_t batch = 1;            // The first dimension of the first input that has one.
  size_t fallback_nodes = 0;   // What its device refused and the host ran.
  double load_ms = 0;
  double prepare_ms = 0;
  double first_ms = 0;         // The first run after preparation.
  std::vector<double> warm;    // Milliseconds of each warm run, in order.
  size_t peak_bytes = 0;       // Of the process that ran it.
  std::map<std::string, std::string> versions = {};  // Of its device.
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

// How many values to leave out at each end of a sorted list of up to 1000 so that the rest holds the true median in at least 95 of 100 cases.
size_t outside_of_range(size_t count);
double percentile(std::vector<double> values, double share);  // Nearest rank, of a non-empty list.

}  // namespace unmoor
