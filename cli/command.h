#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/options.h"
#include "unmoor/workbench/doctor.h"
#include "unmoor/workbench/result.h"

namespace unmoor::cli {

// A tool's command: fills `json` with the tool's own keys (and `model`, if there is one) and says how it went.
Outcome run_command(const Options& options, nlohmann::json& json);
Outcome scan_command(const Options& options, nlohmann::json& json);
Outcome catalog_command(const Options& options, nlohmann::json& json);
Outcome align_command(const Options& options, nlohmann::json& json);
Outcome align_task_command(const Options& options, nlohmann::json& json);  // align --data
Outcome self_test_command(const Options& options, nlohmann::json& json);  // align --self-test
bool has_statistics(const Options& options);  // One of align's sides is a folder of statistics.
Outcome align_statistics_command(const Options& options, nlohmann::json& json);
Outcome dump_script_command(const Options& options, nlohmann::json& json);  // align --write-dump-script
Outcome bench_command(const Options& options, nlohmann::json& json);
Outcome doctor_command(const Options& options, nlohmann::json& json);
enum class Engines { look_for, leave_out };  // Looking starts Python, which takes seconds.
DoctorResult doctor_result(const Options& options, Engines engines, nlohmann::json& json);  // doctor's result itself, for migrate.
Outcome conformance_command(const Options& options, nlohmann::json& json);
Outcome migrate_command(const Options& options, nlohmann::json& json);
Outcome report_command(const Options& options, nlohmann::json& json);

// Child processes of our own: `unmoor --worker…`. Returns the exit status.
int worker_main(int argc, char** argv);

// A line of progress on the terminal, if there is one; `done` of `total`, with the time left. Empty `what` clears it.
void show_progress(const std::string& what, size_t done, size_t total);

// A line on standard error; nothing if it is empty.
void show_note(const std::string& text);

}  // namespace unmoor::cli
