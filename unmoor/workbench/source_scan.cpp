#include "unmoor/workbench/source_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/engines/python_script.h"
#include "unmoor/workbench/result.h"

namespace embedded {
extern const std::string_view unmoor_engines_python_source_rules_py;
extern const std::string_view unmoor_engines_python_source_patch_py;
extern const std::string_view unmoor_engines_python_source_scan_py;
}  // namespace embedded

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t most_answer = size_t{256} << 20;  // Bytes.
constexpr size_t most_places = 6;                  // Of a rule in a text; --json has all.

const SourceRule& rule_named(const std::string& id) {
  const auto found = std::ranges::find(source_rules(), id, &SourceRule::id);
  if (found == source_rules().end()) fail(ErrorKind::Internal, "there is no rule '", id, "' of source code");
  return *found;
}

}  // namespace

SourceScan scan_source(const std::string& folder, const std::string& python) {
  std::error_code problem;
  if (!std::filesystem::is_directory(folder, problem)) fail(ErrorKind::Io, "'", folder, "' is no folder; --source wants the folder of the code");
  const json request{{"root", std::filesystem::absolute(folder).lexically_normal().string()}};
  const std::string answer = run_python(python, "scan --source",
                                        {{"unmoor_source_rules", embedded::unmoor_engines_python_source_rules_py},
                                         {"unmoor_source_patch", embedded::unmoor_engines_python_source_patch_py},
                                         {"unmoor_source_scan", embedded::unmoor_engines_python_source_scan_py}},
                                        request.dump(-1, ' ', false, json::error_handler_t::replace), most_answer);
  const json found = json::parse(answer, nullptr, false);
  if (found.is_discarded()) fail(ErrorKind::Device, "scan --source: what Python answered is no JSON");
  SourceScan scan{folder, found.at("files").get<size_t>(), found.at("python").get<std::string>()};
  for (const json& each : found.at("skipped")) scan.skipped.emplace_back(each.at("file").get<std::string>(), each.at("why").get<std::string>());
  for (const json& each : found.at("findings")) {
    scan.findings.push_back({each.at("file").get<std::string>(), each.at("line").get<size_t>(), each.at("column").get<size_t>(),
                             each.at("rule").get<std::string>(), each.at("what").get<std::string>(), each.at("patched").get<bool>()});
  }
  scan.patch = found.at("patch").get<std::string>();
  return scan;
}

size_t SourceScan::count(const std::string& priority) const {
  return static_cast<size_t>(
      std::ranges::count_if(findings, [&](const SourceFinding& finding) { return rule_named(finding.rule).priority == priority; }));
}

json SourceScan::to_json() const {
  json result{{"root", root},  {"files", files}, {"python", python}, {"p0", count("P0")},           {"p1", count("P1")},
              {"p2", count("P2")}, {"skipped", json::array()},   {"findings", json::array()}, {"rules", json::array()}};
  for (const auto& [file, why] : skipped) result["skipped"].push_back({{"file", file}, {"why", why}});
  for (const SourceFinding& each : findings) {
    const SourceRule& rule = rule_named(each.rule);
    result["findings"].push_back({{"file", each.file},
                                  {"line", each.line},
                                  {"column", each.column},
                                  {"rule", each.rule},
                                  {"what", each.what},
                                  {"priority", rule.priority},
                                  {"why", rule.why},
                                  {"portable", rule.portable},
                                  {"patched", each.patched}});
  }
  for (const SourceRule& each : source_rules())
    result["rules"].push_back({{"id", each.id}, {"priority", each.priority}, {"why", each.why}, {"portable", each.portable}});
  return result;
}

std::string SourceScan::text() const {
  std::map<std::string, std::vector<const SourceFinding*>> by_rule;
  for (const SourceFinding& each : findings) by_rule[each.rule].push_back(&each);
  const auto patched = static_cast<size_t>(std::ranges::count_if(findings, &SourceFinding::patched));
  std::string text = fmt::format("{}: {} P0, {} P1, {} P2\n", counted(files, "file"), count("P0"), count("P1"), count("P2"));
  for (const char* const priority : {"P0", "P1", "P2"}) {
    for (const SourceRule& rule : source_rules()) {
      const auto found = by_rule.find(rule.id);
      if (rule.priority != priority || found == by_rule.end()) continue;
      text += wrapped(fmt::format("{} {}: {}. Write: {}", rule.priority, rule.id, rule.why, rule.portable));
      for (size_t i = 0; i < found->second.size() && i < most_places; ++i) {
        const SourceFinding& each = *found->second[i];
        text += fmt::format("  {}:{}: {}{}\n", shortened(each.file, 40), each.line, shortened(each.what, 20), each.patched ? " (patch)" : "");
      }
      if (found->second.size() > most_places) text += fmt::format("  and {} more (see --json)\n", found->second.size() - most_places);
    }
  }
  for (size_t i = 0; i < skipped.size() && i < most_places; ++i) text += wrapped(fmt::format("not read: {}: {}", skipped[i].first, skipped[i].second));
  if (skipped.size() > most_places) text += fmt::format("not read: {} more (see --json)\n", skipped.size() - most_places);
  if (patched > 0) text += wrapped(fmt::format("{} can be mended by a patch: --diff FILE writes it", counted(patched, "finding")));
  return text;
}

}  // namespace unmoor
