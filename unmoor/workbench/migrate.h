#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/workbench/align.h"
#include "unmoor/workbench/bench.h"
#include "unmoor/workbench/doctor.h"
#include "unmoor/workbench/scan.h"

namespace unmoor {

// One part of a migration, or why it has no result.
template <class Result>
struct Part {
  std::optional<Result> result = std::nullopt;
  std::string failure = {};  // How it ended, if it did not give a result.
};

// What a migration found, before it is judged.
struct Migration {
  std::string model_path;
  std::string scan_arguments = {};  // What the user said about inputs and devices, as scan takes it: " --shapes x:1x3"; empty if nothing.
  std::string run_arguments = {};   // The same as run, align, bench and migrate take it.
  std::string source;  // The platform the model ran on: the reference here.
  std::string target;
  Part<DoctorResult> doctor = {};
  Part<ScannedPlatform> scan = {};
  Part<PlanInfo> plan = {};       // The target's, prepared.
  Part<AlignResult> align = {};
  Part<BenchResult> bench = {};
  Part<std::vector<StepTrace>> steps = {};  // One warm run, step by step.
};

struct NextStep {
  std::string text;
  std::string command;
  std::string effect;
  std::string see;  // A section of the report.
};

struct Verdict {
  std::string verdict;   // ready, ready with limits, blocked
  std::string sentence;
  std::vector<NextStep> next;
};

// A command that does a part of the migration again, ready for a shell.
std::string command_for(const Migration& migration, std::string_view tool, std::string_view rest);
Verdict judge(const Migration& migration);
// The keys of migrate in docs/cli.md, with what the report needs (report/DATA.md).
nlohmann::json migration_json(const Migration& migration, const Verdict& verdict);
std::string migration_text(const Migration& migration, const Verdict& verdict);

}  // namespace unmoor
