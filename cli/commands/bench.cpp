#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/bench.h"

namespace unmoor::cli {
namespace {

using nlohmann::json;

// For measuring side by side with other programs: 'run N' is answered with the times of N runs.
void serve(Runner& runner, const NamedData& inputs) {
  (void)runner.time_runs(inputs, 1, 0);
  const json ready{{"load_ms", runner.load_ms()}, {"prepare_ms", runner.prepare_ms()}};
  fmt::print("ready {}\n", ready.dump());
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    size_t count = 0;
    if (!line.starts_with("run ") || (count = std::strtoull(line.c_str() + 4, nullptr, 10)) == 0) {
      fail(ErrorKind::InvalidArgument, "'", line, "' was asked; known are 'run N' and 'quit'");
    }
    fmt::print("{}\n", json(runner.time_runs(inputs, count, 0)).dump());
    std::fflush(stdout);
  }
}

}  // namespace

Outcome bench_command(const Options& options, json& result) {
  const Lab lab(options);
  show_note(lab.note());
  const NamedData inputs = lab.inputs();
  result["model"] = model_json(lab.model(), &inputs);
  if (options.serve) {
    if (options.devices.size() != 1 || options.json) fail(ErrorKind::InvalidArgument, "bench --serve takes one device, and no --json");
    const auto runner = lab.runner(options.devices.at(0), lab.plan_options());
    serve(*runner, inputs);
    return {};
  }
  BenchOptions bench_options;
  bench_options.seconds = options.seconds;
  bench_options.threads = options.threads;
  bench_options.progress = show_progress;
  const BenchResult benched = bench(
      options.devices, [&](const std::string& device) { return lab.runner(device, lab.plan_options(), true); }, inputs, bench_options);
  result.update(benched.to_json());
  result["environment"]["devices"] = options.devices;
  for (const BenchRun& run : benched.runs) {
    for (const auto& [what, version] : run.versions) result["environment"]["versions"][cat(run.runner, " ", what)] = version;
  }
  Outcome outcome;
  outcome.text = benched.text();
  return outcome;
}

}  // namespace unmoor::cli
