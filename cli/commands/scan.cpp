#include "unmoor/workbench/scan.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/lab.h"
#include "cli/scan.h"
#include "unmoor/base/error.h"
#include "unmoor/catalog/catalog.h"
#include "unmoor/formats/torch/torch_file.h"
#include "unmoor/workbench/scan_nodes.h"

namespace unmoor::cli {

ScanTargets scan_targets(const std::vector<std::string>& names, const Catalog& catalog) {
  ScanTargets result;
  for (const std::string& each : names) {
    if (each == "all") {
      for (const CatalogItem& item : catalog.items()) {
        if (!item.older) result.platforms.push_back(item.platform);
      }
    } else if (is_device(each)) {
      result.devices.push_back(each);
    } else if (catalog.has(each)) {
      (void)catalog.find(each);  // Its version is there.
      result.platforms.push_back(each);
    } else {
      std::string list;
      for (const CatalogItem& item : catalog.items()) list += item.older ? "" : cat(", ", item.platform);
      std::string devices;
      for (const Platform& platform : platforms()) devices += cat(devices.empty() ? "" : ", ", platform.name);
      fail(ErrorKind::InvalidArgument, "no device or platform is called '", each, "'; known are the devices ", devices,
           "; and from the catalogue all", list);
    }
  }
  return result;
}

nlohmann::json scan_report_json(const nlohmann::json& result) {
  nlohmann::json scan{{"platforms", result["platforms"]}, {"nodes", result["nodes"]}, {"categories", nlohmann::json::array()}};
  std::set<std::string> categories;
  for (const auto& node : result["nodes"]) categories.insert(node["category"].get<std::string>());
  for (const auto& each : categories) scan["categories"].push_back({{"name", each}, {"difficulty", difficulty(each)}});
  return scan;
}

namespace {

// "16G", "512M", "1e9": bytes. Fails with InvalidArgument.
double parse_bytes(const std::string& text, const char* flag) {
  if (text.empty()) return 0;
  double value = 0;
  const auto [at, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(at, text.data() + text.size());
  const double scale = unit.empty()  ? 1
                       : unit == "K" ? 0x1p10
                       : unit == "M" ? 0x1p20
                       : unit == "G" ? 0x1p30
                       : unit == "T" ? 0x1p40
                                     : 0;
  constexpr double most = 1e18;
  if (problem != std::errc() || scale == 0 || !(value > 0) || value * scale > most) {
    fail(ErrorKind::InvalidArgument, "'", text, "' is no size (in ", flag, "); write it as 16G or 512M");
  }
  return value * scale;
}

// The file with its types; nothing where the model takes none of the sizes tried. Platforms of the catalogue answer then, too,
// from the types that it declares.
std::optional<Graph> typed_for(const Lab& lab, const ScanTargets& on) {
  try {
    return lab.typed();
  } catch (const Error& error) {
    const bool is_users = error.kind() == ErrorKind::InvalidArgument && !lab.options().shapes.empty();
    if (!on.devices.empty() || is_users || !is_misfit(error)) throw;
    show_note(
        cat("types are those that the file declares, since these sizes do not fit; give others with --shapes: ", error.what()));
    return std::nullopt;
  }
}

}  // namespace

Outcome scan_command(const Options& options, nlohmann::json& result) {
  if (!options.code.empty()) return scan_source_command(options, result);
  if (options.model.empty()) fail(ErrorKind::InvalidArgument, "name a model, or the folder of its code with --source");
  if (is_torch_file(options.model)) return scan_torch_command(options, result);
  const Catalog catalog;
  const ScanTargets on = scan_targets(options.devices, catalog);
  ScanResult found;
  found.memory = parse_bytes(options.memory, "--memory");
  found.link_bytes = parse_bytes(options.link, "--link");
  if (found.link_bytes > 0 && (!options.nodes.empty() || !options.ops.empty()))
    fail(ErrorKind::InvalidArgument, "--link is about the copies of a whole model; leave out --node and --op");
  const Lab lab(options);
  show_note(lab.note());
  result["model"] = model_json(lab.model(), nullptr);
  const ScanOptions scan_options{options.nodes, options.ops, cat("unmoor ", UNMOOR_VERSION)};
  const std::optional<Graph> inferred = typed_for(lab, on);
  const Graph& typed = inferred ? *inferred : lab.model().graph;
  const FileNodes nodes(lab.model().graph, typed);
  for (const std::string& device : on.devices) {
    show_progress(cat("plan for ", device), 0, 0);
    const std::string name = is_engine(device) ? runner_name(device) : parse_device(device).text();
    const PlanInfo plan = lab.placement(device);
    found.platforms.push_back(scan_plan(nodes, plan, name, scan_options));
    result["environment"]["devices"].push_back(name);
    add_versions(result, plan);
  }
  for (auto& platform : scan_catalog(nodes, catalog, on.platforms, scan_options)) found.platforms.push_back(std::move(platform));
  if (!inferred && (found.memory > 0 || found.link_bytes > 0))
    fail(ErrorKind::InvalidArgument, "--memory and --link need the sizes of values, which the shapes that were tried do not give; give others with "
         "--shapes, or leave these flags out");
  if (inferred) found.facts = model_facts(lab.model().graph, typed, nodes);
  if (options.json || !options.html.empty()) result.update(found.to_json());
  if (!options.html.empty()) result["scan"] = scan_report_json(result);
  Outcome outcome;
  outcome.text = found.text();
  if (found.open_issues() > 0) {
    outcome.status = Status::finding;
    outcome.reason =
        fmt::format("{} P0 or P1", found.open_issues() == 1 ? "1 node is" : fmt::format("{} nodes are", found.open_issues()));
  }
  return outcome;
}

}  // namespace unmoor::cli
