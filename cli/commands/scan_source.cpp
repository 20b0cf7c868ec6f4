#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/scan.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/workbench/source_scan.h"

namespace unmoor::cli {
namespace {

// Fails with InvalidArgument on a flag that tells nothing of code.
void check_options(const Options& options) {
  const auto refuse = [](bool is_given, const char* flag) {
    if (is_given) fail(ErrorKind::InvalidArgument, flag, " is about a model; with --source go --diff, --python and --json");
  };
  refuse(options.devices != std::vector<std::string>{"cpu"}, "--on");
  refuse(!options.nodes.empty(), "--node");
  refuse(!options.ops.empty(), "--op");
  refuse(!options.shapes.empty(), "--shapes");
  refuse(!options.memory.empty(), "--memory");
  refuse(!options.link.empty(), "--link");
  refuse(!options.settings.empty() || options.exact, "--set or --exact");
  refuse(options.hash, "--hash");
  refuse(!options.html.empty(), "--html");
}

}  // namespace

Outcome scan_source_command(const Options& options, nlohmann::json& result) {
  check_options(options);
  show_progress("read the code", 0, 0);
  const SourceScan found = scan_source(options.code, options.python);
  result["code"] = found.to_json();
  Outcome outcome;
  outcome.text = found.text();
  if (!options.patch.empty()) {
    write_file(options.patch, found.patch);
    outcome.text += found.patch.empty() ? fmt::format("nothing can be mended safely by a patch; {} is empty\n", options.patch)
                                        : wrapped(fmt::format("wrote {}; in {}: git apply FILE", options.patch, options.code));
    result["code"]["patch_file"] = options.patch;
  }
  const size_t open = found.count("P0") + found.count("P1");
  if (open > 0) {
    outcome.status = Status::finding;
    outcome.reason = fmt::format("{} P0 or P1", open == 1 ? "1 place is" : fmt::format("{} places are", open));
  }
  return outcome;
}

}  // namespace unmoor::cli
