#pragma once

#include <functional>
#include <string>
#include <vector>

#include "unmoor/runtime/runner.h"
#include "unmoor/workbench/statistics.h"

namespace unmoor {

// One value of a run by its statistics.
struct ShownStatistics {
  std::string name;
  std::string node = {};  // Empty where it is not known: of dumps.
  std::string op = {};
  ValueStatistics statistics = {};
};

// What is known of a run without its values.
struct StatisticsSide {
  std::string name;                      // The runner's, or the folder.
  std::vector<ShownStatistics> values = {};   // In the order of the run.
  NamedData outputs = {};                     // Those that are there in full.
  NamedData inputs = {};                      // Likewise; of dumps.
  std::map<std::string, DType, std::less<>> stored_besides = {};  // How other values of the run are stored.

  void narrow(const std::function<bool(const std::string&)>& takes);  // Only these values stay.
};

// Runs and keeps statistics of the values that `takes` says, and the outputs.
StatisticsSide collect_statistics(Runner& runner, const NamedData& inputs, const std::function<bool(const std::string&)>& takes);

// A folder with manifest.json, which holds the statistics of every value, and .npy files of inputs and outputs.
void write_statistics(const StatisticsSide& side, const std::string& folder);  // Fails with Io.
StatisticsSide read_statistics(const std::string& folder);                     // Fails with Io or InvalidModel.
bool is_statistics_dump(const std::string& path);

}  // namespace unmoor
