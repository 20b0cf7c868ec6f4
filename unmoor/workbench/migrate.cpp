#include "unmoor/workbench/migrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace unmoor {
namespace {

// Why the target cannot be used here; empty if it can.
std::string target_problem(const Migration& migration) {
  if (!migration.doctor.result) return migration.doctor.failure.empty() ? "it was not looked for" : migration.doctor.failure;
  const std::string kind = migration.target.substr(0, migration.target.find(':'));
  if (const auto engine = std::ranges::find(migration.doctor.result->engines, kind, &FoundEngine::name); engine != migration.doctor.result->engines.end()) {
    return engine->reason;  // Whether it has the device is told by the run.
  }
  if (is_engine(migration.target)) return {};
  const auto& devices = migration.doctor.result->devices;
  auto found = std::ranges::find(devices, migration.target, &DoctorResult::Found::name);
  // A backend that could not list its devices stands for all of them.
  if (found == devices.end()) found = std::ranges::find(devices, kind, &DoctorResult::Found::name);
  if (found == devices.end()) return "it was not found";
  return found->state == "ready" ? "" : found->reason.empty() ? found->state : found->reason;
}

const BenchRun* run_of(const Migration& migration, const std::string& device) {
  if (!migration.bench.result) return nullptr;
  const auto& runs = migration.bench.result->runs;
  const auto found = std::ranges::find(runs, device, &BenchRun::runner);
  return found == runs.end() ? nullptr : &*found;
}

// How many times as long the target takes: as bench says it, of rounds side by side where it has such.
std::optional<double> times_as_long(const Migration& migration) {
  const BenchRun* const target = run_of(migration, migration.target);
  const BenchRun* const source = run_of(migration, migration.source);
  if (target == nullptr || source == nullptr) return std::nullopt;
  for (const BenchRatio& ratio : migration.bench.result->ratios) {
    if (ratio.a == migration.target && ratio.b == migration.source) return ratio.median;
    if (ratio.a == migration.source && ratio.b == migration.target) return 1 / ratio.median;
  }
  return percentile(target->warm, 0.5) / percentile(source->warm, 0.5);
}

std::string count_of(size_t count, std::string_view one, std::string_view many) { return fmt::format("{} {}", count, count == 1 ? one : many); }

// The refused operators and how many nodes of each.
std::string refused_ops(const ScannedPlatform& scan) {
  std::map<std::string, size_t> ops;
  for (const ScannedNode& node : scan.nodes) {
    if (node.priority == "P0" || node.priority == "P1") ++ops[node.op];
  }
  std::string text;
  for (const auto& [op, count] : ops) text += fmt::format("{}{}{}", text.empty() ? "" : ", ", op, count == 1 ? "" : fmt::format(" ({})", count));
  return text;
}

void add_failures(const Migration& migration, std::vector<NextStep>& next) {
  const auto add = [&](std::string_view tool, const std::string& failure, std::string command, std::string see) {
    if (!failure.empty()) next.push_back({fmt::format("{} gave no result: {}", tool, failure), std::move(command), "the report is complete", std::move(see)});
  };
  add("scan", migration.scan.failure, command_for(migration, "scan", fmt::format("--on {}", migration.target)), "scan");
  add("run", migration.plan.failure, command_for(migration, "run", fmt::format("--on {} --explain", migration.target)), "plan");
  add("align", migration.align.failure, command_for(migration, "align", fmt::format("--target {}", migration.target)), "align");
  add("bench", migration.bench.failure, command_for(migration, "bench", fmt::format("--on {}", migration.target)), "bench");
}

void add_align(const Migration& migration, std::vector<NextStep>& next) {
  if (!migration.align.result) return;
  const AlignResult& align = *migration.align.result;
  if (!align.first_divergent.empty()) {
    next.push_back({fmt::format("look at '{}', the first node whose numbers differ", align.first_divergent),
                    command_for(migration, "align", fmt::format("--target {} --node {}", migration.target, shell_word(align.first_divergent))),
                    "the cause of the first difference", "align"});
  } else if (align.verdict == "differ") {
    next.push_back({"outputs differ though every kernel alone is explained: compare more values",
                    command_for(migration, "align", fmt::format("--target {} --no-fuse", migration.target)), "where the drift comes from", "align"});
  }
}

void add_refusals(const Migration& migration, std::vector<NextStep>& next) {
  if (!migration.scan.result) return;
  const ScannedPlatform& scan = *migration.scan.result;
  if (scan.p0 + scan.p1 > 0) {
    next.push_back({fmt::format("{} on the host: {}", count_of(scan.p0 + scan.p1, "node runs", "nodes run"), refused_ops(scan)),
                    command_for(migration, "scan", fmt::format("--on {}", migration.target)),
                    fmt::format("{:g} to {:g} days of work, fewer copies", scan.effort_low, scan.effort_high), "scan"});
  }
  if (scan.p2 > 0) {
    next.push_back({fmt::format("{} as simpler operators: kernels of their own would be faster", count_of(scan.p2, "node runs", "nodes run")),
                    command_for(migration, "run", fmt::format("--on {} --kernels", migration.target)), "less time, no change of meaning", "plan"});
  }
}

void add_speed(const Migration& migration, std::vector<NextStep>& next) {
  const BenchRun* const target = run_of(migration, migration.target);
  const std::optional<double> ratio = times_as_long(migration);
  if (target == nullptr || !ratio) return;
  if (*ratio > 1.2) {
    next.push_back({fmt::format("{} takes {:.1f} times as long as {}: see which operators take the time", migration.target, *ratio, migration.source),
                    command_for(migration, "bench", fmt::format("--on {},{}", migration.target, migration.source)), "the operators to work on first",
                    "profile"});
  }
  if (target->prepare_ms > 1000 && migration.target != migration.source) {
    next.push_back({fmt::format("preparation took {:.1f} s, most of it compiling kernels: run once before serving, the cache keeps them", target->prepare_ms / 1000),
                    command_for(migration, "run", fmt::format("--on {}", migration.target)), "a start in milliseconds", "bench"});
  }
}

std::string speed_phrase(const Migration& migration) {
  const BenchRun* const target = run_of(migration, migration.target);
  const BenchRun* const source = run_of(migration, migration.source);
  if (target == nullptr) return "its speed is not known";
  const double ms = percentile(target->warm, 0.5);
  if (source == nullptr || source == target) return fmt::format("a warm run takes {:.3g} ms", ms);
  return fmt::format("a warm run takes {:.3g} ms ({} here: {:.3g})", ms, migration.source, percentile(source->warm, 0.5));
}

}  // namespace

std::string command_for(const Migration& migration, std::string_view tool, std::string_view rest) {
  return fmt::format("unmoor {} {} {}{}", tool, shell_word(migration.model_path), rest, tool == "scan" ? migration.scan_arguments : migration.run_arguments);
}

Verdict judge(const Migration& migration) {
  Verdict verdict;
  const std::string problem = target_problem(migration);
  const bool ran = migration.plan.result.has_value() && migration.align.result.has_value();
  const bool agrees = ran && migration.align.result->verdict != "differ";
  const size_t refused = migration.scan.result ? migration.scan.result->p0 + migration.scan.result->p1 : 0;
  if (!problem.empty()) {
    verdict.verdict = "blocked";
    verdict.sentence = fmt::format("{} cannot be used here: {}.", migration.target, problem);
    verdict.next.push_back({fmt::format("make {} work on this machine", migration.target), "unmoor doctor", "the move can be tried", "doctor"});
  } else if (!ran || (migration.scan.result && migration.scan.result->unsupported > 0)) {
    verdict.verdict = "blocked";
    verdict.sentence = fmt::format("The model does not run on {} yet.", migration.target);
  } else if (!agrees) {
    verdict.verdict = "blocked";
    verdict.sentence = fmt::format("The model runs on {}, but its numbers differ{}.", migration.target,
                                   migration.align.result->first_divergent.empty() ? "" : fmt::format(" from '{}' on", migration.align.result->first_divergent));
  } else if (refused > 0) {
    verdict.verdict = "ready with limits";
    verdict.sentence = fmt::format("The model runs on {} and its numbers agree; {} left to the host, and {}.", migration.target,
                                   count_of(refused, "node is", "nodes are"), speed_phrase(migration));
  } else {
    verdict.verdict = "ready";
    verdict.sentence = fmt::format("The model runs on {} whole, its numbers agree, and {}.", migration.target, speed_phrase(migration));
  }
  add_failures(migration, verdict.next);
  add_align(migration, verdict.next);
  add_refusals(migration, verdict.next);
  add_speed(migration, verdict.next);
  if (verdict.next.empty()) {
    verdict.next.push_back({"keep this result, and run the same again on the machine that will serve",
                            command_for(migration, "migrate", fmt::format("--to {} --json", migration.target)), "a record to compare with", "environment"});
  }
  return verdict;
}

std::string migration_text(const Migration& migration, const Verdict& verdict) {
  std::string text = fmt::format("{}: {}\n", verdict.verdict, verdict.sentence);
  if (migration.scan.result) text += fmt::format("\n{}", ScanResult{{*migration.scan.result}}.text());
  if (migration.align.result) text += fmt::format("\n{}", migration.align.result->text());
  if (migration.bench.result) text += fmt::format("\n{}", migration.bench.result->text());
  text += "\nnext:\n";
  for (size_t i = 0; i < verdict.next.size(); ++i) {
    text += fmt::format("{}. {}\n   {}\n", i + 1, verdict.next[i].text, verdict.next[i].command);
  }
  return text;
}

}  // namespace unmoor
