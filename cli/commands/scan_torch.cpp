#include "unmoor/workbench/scan_torch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/scan.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/sha256.h"

namespace unmoor::cli {
namespace {

// Over the file's size and its first and last MiB: of the weights, a checkpoint of many gigabytes need not be read.
std::string fingerprint_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const size_t part = std::min<size_t>(bytes.size(), size_t{1} << 20);
  Sha256 hash;
  const std::string size = std::to_string(bytes.size());
  hash.add(std::as_bytes(std::span(size)));
  hash.add(bytes.first(part));
  hash.add(bytes.last(part));
  return hash.finish();
}

// Fails with InvalidArgument on what tells nothing of a file of PyTorch.
void check_options(const Options& options, const ScanTargets& on) {
  const auto refuse = [](const char* flag, const char* why) { fail(ErrorKind::InvalidArgument, flag, " is for ONNX models: ", why); };
  if (!options.shapes.empty()) refuse("--shapes", "the sizes of a file of PyTorch are those that it was exported with");
  if (!options.memory.empty()) refuse("--memory", "what a run of a file of PyTorch holds is not known");
  if (!options.link.empty()) refuse("--link", "what a run of a file of PyTorch copies is not known");
  if (!options.settings.empty()) refuse("--set", "no device reads a file of PyTorch");
  if (!on.devices.empty())
    fail(ErrorKind::InvalidArgument, "'", options.model, "' is a file of PyTorch, which Unmoor's devices and engines do not run: name platforms of the catalogue, such as --on "
         "torch-npu,tensorrt or --on all, or export the model to ONNX");
}

}  // namespace

Outcome scan_torch_command(const Options& options, nlohmann::json& result) {
  const Catalog catalog;
  const TorchFile file = read_torch_file(options.model);
  const bool is_default = options.devices == std::vector<std::string>{"cpu"};  // --on was left out, or names what cannot read the file.
  const ScanTargets on = is_default && !file.has_graph() ? ScanTargets() : scan_targets(options.devices, catalog);
  check_options(options, on);
  if (!file.has_graph() && !(options.nodes.empty() && options.ops.empty()))
    fail(ErrorKind::InvalidArgument, "'", options.model, "' is a checkpoint, which has no nodes; leave out --node and --op");
  if (!file.has_graph() && !on.platforms.empty()) show_note("a checkpoint has no operators: of the platforms that --on names nothing can be said");
  result["model"] = {{"path", options.model}, {"fingerprint", fingerprint_of(options.model)}, {"inputs", nlohmann::json::array()}};
  ScanResult found;
  const TorchFacts facts = torch_facts(file);
  if (file.has_graph())
    found.platforms = scan_torch(file, catalog, on.platforms, {options.nodes, options.ops, cat("unmoor ", UNMOOR_VERSION)});
  result.update(found.to_json());
  result["facts"] = facts.to_json();
  if (!options.html.empty()) result["scan"] = scan_report_json(result);
  Outcome outcome;
  outcome.text = facts.text() + (found.platforms.empty() ? "" : found.text());
  if (found.open_issues() > 0) {
    outcome.status = Status::finding;
    outcome.reason = fmt::format("{} P0 or P1", found.open_issues() == 1 ? "1 call is" : fmt::format("{} calls are", found.open_issues()));
  }
  return outcome;
}

}  // namespace unmoor::cli
