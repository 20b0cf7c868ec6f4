#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "unmoor/catalog/catalog.h"

namespace unmoor::cli {

// What --on names: devices that are here, and platforms of the catalogue.
struct ScanTargets {
  std::vector<std::string> devices;
  std::vector<std::string> platforms;
};
// Fails with InvalidArgument on a name that nobody knows.
ScanTargets scan_targets(const std::vector<std::string>& names, const Catalog& catalog);

// A scan as the report reads it: under one key, with the difficulty of each category.
nlohmann::json scan_report_json(const nlohmann::json& result);

// scan of a file of PyTorch, and scan --source.
Outcome scan_torch_command(const Options& options, nlohmann::json& result);
Outcome scan_source_command(const Options& options, nlohmann::json& result);

}  // namespace unmoor::cli
