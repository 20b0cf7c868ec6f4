#include <fmt/format.h>

#include <algorithm>

#include "unmoor/workbench/report_data.h"
#include "unmoor/workbench/report_document.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

using nlohmann::json;

// An answer, and the number that the head of the page shows; no label: no number.
struct Words {
  std::string answer;
  std::string value = {};
  std::string label = {};
  std::string note = {};
  std::string state = {};
};

size_t taken(const json& platform) {
  return count_in(platform, "native") + count_in(platform, "constrained") + count_in(platform, "expanded");
}

Words scan_words(const json& scan) {
  const auto platforms = items(scan, "platforms");
  if (platforms.empty()) return {};
  const auto target = std::ranges::find_if(platforms, [](const json* each) { return text(*each, "role") == "target"; });
  const json& shown = target == platforms.end() ? *platforms[0] : **target;
  const size_t nodes = count_in(shown, "nodes");
  const size_t p0 = count_in(shown, "p0");
  const size_t p1 = count_in(shown, "p1");
  Words words{fmt::format("{} takes {} of {} nodes; {} P0, {} P1, {} P2.", text(shown, "name"), taken(shown), nodes, p0, p1,
                          count_in(shown, "p2"))};
  if (platforms.size() > 1) words.answer += fmt::format(" {} stand beside it.", counted(platforms.size() - 1, "platform"));
  words.value =
      fmt::format("{:.0f} %", nodes == 0 ? 100 : 100.0 * static_cast<double>(taken(shown)) / static_cast<double>(nodes));
  words.label = "of the nodes run there";
  words.note = fmt::format("{} of {} on {}", taken(shown), nodes, text(shown, "name"));
  words.state = count_in(shown, "unsupported") > 0 ? "bad" : p0 + p1 > 0 ? "warn" : "ok";
  return words;
}

Words align_words(const json& align) {
  double worst = 0;
  bool broken = false;
  for (const json* output : items(align, "outputs")) {
    const json& entire = member(*output, "entire");
    const auto error = number_in(entire, "rel_l2");
    if (error) worst = std::max(worst, *error);
    broken = broken || !text(entire, "problem").empty() || count_in(entire, "class_mismatch") > 0;
  }
  const bool fine = text(align, "verdict") != "differ";
  const std::string first = text(align, "first_divergent");
  Words words;
  words.answer = fine            ? fmt::format("Yes: every kernel that could be checked alone, and every output, agrees with {}.",
                                               text(align, "reference"))
                 : first.empty() ? std::string("No: outputs differ.")
                                 : fmt::format("No: they first part at '{}'.", first);
  words.value = broken ? "NaN or shape" : fmt::format("{:.1e}", worst);
  words.label = "error of the outputs, relative";
  words.note = fine ? "explained by rounding" : "more than rounding";
  words.state = fine ? "ok" : "bad";
  return words;
}

Words bench_words(const json& bench) {
  const json* best = nullptr;
  std::vector<std::string> told;
  for (const json* run : items(bench, "runs")) {
    const auto ms = number_in(member(*run, "warm"), "p50");
    if (!ms) continue;
    told.push_back(fmt::format("{} {:.3g} ms", text(*run, "runner"), *ms));
    if (best == nullptr || *ms < *number_in(member(*best, "warm"), "p50")) best = run;
  }
  if (best == nullptr) return {};
  Words words{"A warm run, median: "};
  for (size_t i = 0; i < told.size(); ++i) words.answer += (i == 0 ? "" : ", ") + told[i];
  words.answer += ".";
  words.value = fmt::format("{:.3g} ms", *number_in(member(*best, "warm"), "p50"));
  words.label = "a warm run, median";
  words.note = fmt::format("{}{}", text(*best, "runner"), told.size() > 1 ? ", the fastest" : "");
  words.state = "ok";
  return words;
}

Words plan_words(const json& page) {
  const json& plan = page["plan"];
  const json& names = member(page["graph"], "name");
  return {fmt::format("{} steps after fusing, {} on the host, {}.", names.is_array() ? names.size() : 0,
                      count_in(plan, "fallback_nodes"),
                      count_in(plan, "copy_count") == 1 ? "1 copy" : fmt::format("{} copies", count_in(plan, "copy_count")))};
}

Words doctor_words(const json& doctor) {
  const auto devices = items(doctor, "devices");
  const auto ready = std::ranges::count_if(devices, [](const json* device) { return text(*device, "state") == "ready"; });
  return {fmt::format("{} ready here; each ran an operator and was checked.",
                      ready == 1 ? "1 device is" : fmt::format("{} devices are", ready))};
}

Words words_for(const json& page, const std::string& part) {
  if (part == "scan") return scan_words(page["scan"]);
  if (part == "align") return align_words(page["align"]);
  if (part == "bench") return bench_words(page["bench"]);
  if (part == "plan") return plan_words(page);
  if (part == "doctor") return doctor_words(page["doctor"]);
  return {};
}

}  // namespace

void add_report_words(json& page) {
  if (!page["answers"].is_object()) page["answers"] = json::object();
  if (!page["figures"].is_array()) page["figures"] = json::array();
  for (const char* part : report_parts) {
    if (!page.contains(part) || !text(page["answers"], part).empty()) continue;
    const Words words = words_for(page, part);
    if (words.answer.empty()) continue;
    page["answers"][part] = words.answer;
    if (words.label.empty()) continue;
    page["figures"].push_back(
        {{"id", part}, {"value", words.value}, {"label", words.label}, {"note", words.note}, {"state", words.state}});
  }
}

}  // namespace unmoor
