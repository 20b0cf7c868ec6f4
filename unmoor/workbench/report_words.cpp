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
  const std::string baseline = text(align, "baseline");
  const auto is_shared = [](const json* value) { return text(*value, "verdict") == "as-baseline"; };
  const bool shared = std::ranges::any_of(items(align, "values"), is_shared) || std::ranges::any_of(items(align, "outputs"), is_shared);
  Words words;
  words.answer = fine && shared  ? fmt::format("Yes: what is off is off by as much on the baseline {}.", baseline)
                 : fine          ? fmt::format("Yes: every kernel that could be checked alone, and every output, agrees with {}.",
                                               text(align, "reference"))
                 : first.empty() ? std::string("No: outputs differ.")
                                 : fmt::format("No: they first part at '{}'.", first);
  words.value = broken ? "NaN or shape" : fmt::format("{:.1e}", worst);
  words.label = "error of the outputs, relative";
  words.note = fine && shared ? "as the baseline" : fine ? "explained by rounding" : "more than rounding";
  words.state = fine ? "ok" : "bad";
  return words;
}

double warm_ms(const json& run) { return number_in(member(run, "warm"), "p50").value_or(-1); }

// Whether a run is the target's; on a joined page the name of a file stands behind the runner's.
bool is_of(const json& run, const std::string& target) {
  const std::string runner = text(run, "runner");
  return !target.empty() && (runner == target || runner.starts_with(target + " · "));
}

// The target's own time, or the fastest where no target is known; what is faster than the target is told beside it.
Words bench_words(const json& bench, const std::string& target) {
  const json* fastest = nullptr;
  const json* own = nullptr;
  std::string told;
  for (const json* run : items(bench, "runs")) {
    const double ms = warm_ms(*run);
    if (!(ms >= 0)) continue;
    told += fmt::format("{}{} {:.3g} ms", told.empty() ? "" : ", ", text(*run, "runner"), ms);
    if (fastest == nullptr || ms < warm_ms(*fastest)) fastest = run;
    if (own == nullptr && is_of(*run, target)) own = run;
  }
  if (fastest == nullptr) return {};
  Words words{fmt::format("A warm run, median: {}.", told)};
  const json& shown = own == nullptr ? *fastest : *own;
  words.value = fmt::format("{:.3g} ms", warm_ms(shown));
  words.label = "a warm run, median";
  words.note = text(shown, "runner");
  if (&shown != fastest)
    words.note += fmt::format("; the fastest is {} with {:.3g} ms", text(*fastest, "runner"), warm_ms(*fastest));
  constexpr double noticeable = 1.2;
  if (own != nullptr) words.state = warm_ms(*own) > noticeable * warm_ms(*fastest) ? "warn" : "ok";
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
  if (part == "bench") return bench_words(page["bench"], text(page, "target"));
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
