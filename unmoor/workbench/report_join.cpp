#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/workbench/report.h"
#include "unmoor/workbench/report_data.h"
#include "unmoor/workbench/report_document.h"
#include "unmoor/workbench/report_file.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

using nlohmann::json;
using Results = std::vector<StoredResult>;

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return out;
}

// The file's name without its ending; the whole path where two files would be called the same.
void label(Results& results) {
  std::map<std::string, size_t> count;
  const auto stem = [](const StoredResult& each) { return std::filesystem::path(each.file).stem().string(); };
  for (const StoredResult& each : results) ++count[stem(each)];
  for (StoredResult& each : results) each.label = printable(count[stem(each)] == 1 ? stem(each) : each.file);
}

void check_models(const Results& results) {
  const StoredResult* first = nullptr;
  for (const StoredResult& each : results) {
    const json& model = member(each.result, "model");
    const std::string mark = text(model, "fingerprint");
    if (mark.empty()) continue;
    if (first == nullptr) first = &each;
    const json& other = member(first->result, "model");
    if (mark != text(other, "fingerprint")) {
      fail(ErrorKind::InvalidArgument, "'", each.file, "' is about another model (", text(model, "path"), ") than '", first->file,
           "' (", text(other, "path"), "): a page is about one");
    }
  }
}

class Join {
 public:
  explicit Join(Results results) : results_(std::move(results)), shown_(results_.size()), left_out_(results_.size()) {}

  json make() {
    page_ = {{"schema", 1}, {"tool", "report"}, {"status", 0}, {"reason", ""}, {"notes", json::array()}};
    take_verdict();
    take_over_graph();
    take_newest("doctor");
    take_newest("align");
    if (page_.contains("align")) add_align_columns(page_);
    join_scans();
    join_benches();
    keep_words();
    add_report_words(page_);
    order_figures();
    about_model_and_machines();
    add_tools();
    add_sources();
    if (text(page_, "sentence").empty()) add_sentence();
    return std::move(page_);
  }

 private:
  bool has(size_t i, const char* part) const { return results_[i].sections.contains(part); }

  // The newest result that has the part, noted as shown; the others are noted as left out.
  std::optional<size_t> newest(const char* part) {
    std::optional<size_t> found;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!has(i, part)) continue;
      if (found) {
        left_out_[i].push_back(fmt::format("{} ({} is newer)", part, results_[*found].file));
        continue;
      }
      found = i;
      shown_[i].emplace_back(part);
      holder_[part] = i;
    }
    return found;
  }

  void take_newest(const char* part) {
    if (const auto i = newest(part)) page_[part] = results_[*i].sections[part];
  }

  void take_verdict() {
    const auto found = std::ranges::find_if(
        results_, [](const StoredResult& each) { return !text(each.result, "sentence").empty() && each.tool == "migrate"; });
    if (found == results_.end()) return;
    migrated_ = static_cast<size_t>(found - results_.begin());
    for (const char* key : {"verdict", "sentence", "next", "source", "target", "dtype", "readings"}) {
      if (found->result.contains(key)) page_[key] = found->result[key];
    }
  }

  // Plan and profile speak of nodes by their place in one graph: the plan's, and a profile of another graph is left out.
  void take_over_graph() {
    const auto plan = newest("plan");
    if (plan) {
      page_["plan"] = results_[*plan].sections["plan"];
      page_["graph"] = results_[*plan].sections["graph"];
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!has(i, "profile") || !plan || member(results_[i].sections, "graph") == page_["graph"]) continue;
      left_out_[i].push_back(fmt::format("profile (the plan of {} has other steps)", results_[*plan].file));
      results_[i].sections.erase("profile");
    }
    if (const auto profile = newest("profile")) {
      page_["profile"] = results_[*profile].sections["profile"];
      page_["graph"] = results_[*profile].sections["graph"];
    }
  }

  std::vector<size_t> holders(const char* part) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (has(i, part)) found.push_back(i);
    }
    return found;
  }

  // In the order of the page.
  static std::vector<std::string> ordered(const std::vector<std::string>& parts) {
    std::vector<std::string> found;
    for (const char* part : report_parts) {
      if (std::ranges::find(parts, part) != parts.end()) found.emplace_back(part);
    }
    return found;
  }

  static void append(json& to, const json& object, const char* name) {
    for (const json* item : items(object, name)) to.push_back(*item);
  }

  // A name with the file's label behind it.
  static void rename(json& object, const char* key, const std::string& behind) {
    if (object.is_object()) object[key] = text(object, key) + " · " + behind;
  }

  // Platforms side by side; those that several files have are told apart by the file.
  void join_scans() {
    const auto found = holders("scan");
    if (found.empty()) return;
    std::map<std::string, size_t> count;
    for (const size_t i : found) {
      for (const json* platform : items(results_[i].sections["scan"], "platforms")) ++count[text(*platform, "name")];
    }
    json scan{{"platforms", json::array()}, {"nodes", json::array()}, {"categories", json::array()}};
    std::set<std::string> categories;
    for (const size_t i : found) {
      shown_[i].emplace_back("scan");
      json& part = results_[i].sections["scan"];
      for (json& platform : part["platforms"]) {
        if (count[text(platform, "name")] > 1) rename(platform, "name", results_[i].label);
      }
      if (!part["nodes"].is_array()) part["nodes"] = json::array();
      for (json& node : part["nodes"]) {
        if (count[text(node, "platform")] > 1) rename(node, "platform", results_[i].label);
      }
      append(scan["platforms"], part, "platforms");
      append(scan["nodes"], part, "nodes");
      for (const json* category : items(part, "categories")) {
        if (categories.insert(text(*category, "name")).second) scan["categories"].push_back(*category);
      }
    }
    holder_["scan"] = found[0];
    joined_["scan"] = found.size();
    page_["scan"] = std::move(scan);
  }

  void join_benches() {
    const auto found = holders("bench");
    if (found.empty()) return;
    json bench{{"runs", json::array()}, {"ratios", json::array()}, {"warnings", json::array()}};
    const bool several = found.size() > 1;
    if (several) bench["warnings"].push_back("runs of different files were not measured in turns: a ratio is of one file");
    for (const size_t i : found) {
      shown_[i].emplace_back("bench");
      json& part = results_[i].sections["bench"];
      for (json& run : part["runs"]) {
        if (several) rename(run, "runner", results_[i].label);
      }
      if (!part["ratios"].is_array()) part["ratios"] = json::array();
      for (json& ratio : part["ratios"]) {
        for (const char* side : {"a", "b"}) {
          if (several) rename(ratio, side, results_[i].label);
        }
      }
      append(bench["runs"], part, "runs");
      append(bench["ratios"], part, "ratios");
      const json& warnings = member(part, "warnings");
      for (size_t k = 0; warnings.is_array() && k < warnings.size(); ++k) {
        bench["warnings"].push_back(several ? fmt::format("{}: {}", results_[i].label, text(warnings[k])) : text(warnings[k]));
      }
    }
    compare_inputs(found, bench);
    holder_["bench"] = found[0];
    joined_["bench"] = found.size();
    page_["bench"] = std::move(bench);
  }

  void compare_inputs(const std::vector<size_t>& found, json& bench) const {
    const auto inputs = [&](size_t i) -> const json& { return member(member(results_[i].result, "model"), "inputs"); };
    for (const size_t i : found) {
      if (inputs(i) == inputs(found[0])) continue;
      bench["warnings"].push_back(fmt::format("{} ran other inputs than {}: their times are not to be compared", results_[i].file,
                                              results_[found[0]].file));
    }
  }

  // What migrate said of a section stands if the section is all its own.
  void keep_words() {
    json answers = json::object();
    json figures = json::array();
    std::vector<std::string> newer;
    for (const auto& [part, i] : holder_) {
      const bool joined = joined_.contains(part) && joined_[part] > 1;
      const json& result = results_[i].result;
      if (!joined) {
        if (const std::string answer = text(member(result, "answers"), part); !answer.empty()) answers[part] = answer;
        for (const json* figure : items(result, "figures")) {
          if (text(*figure, "id") == part) figures.push_back(*figure);
        }
      }
      if (migrated_ && i != *migrated_ && !(joined && has(*migrated_, part.c_str()))) newer.push_back(part);
    }
    page_["answers"] = std::move(answers);
    page_["figures"] = std::move(figures);
    if (!newer.empty()) {
      page_["notes"].push_back(fmt::format("The verdict is that of {}; {} {} from elsewhere and may say otherwise.",
                                           results_[*migrated_].file, listed(newer), newer.size() == 1 ? "is" : "are"));
    }
  }

  void order_figures() {
    json ordered = json::array();
    for (const char* part : report_parts) {
      for (const json* figure : items(page_, "figures")) {
        if (text(*figure, "id") == part) ordered.push_back(*figure);
      }
    }
    page_["figures"] = std::move(ordered);
  }

  void about_model_and_machines() {
    json& environment = page_["environment"] = {{"devices", json::array()}, {"versions", json::object()}};
    std::set<json> hosts;
    for (const StoredResult& each : results_) {
      const json& model = member(each.result, "model");
      if (!page_.contains("model") && model.is_object()) page_["model"] = model;
      const json& about = member(each.result, "environment");
      hosts.insert(member(about, "host"));
      const json& devices = member(about, "devices");
      for (size_t i = 0; devices.is_array() && i < devices.size(); ++i) {
        if (std::ranges::find(environment["devices"], devices[i]) == environment["devices"].end())
          environment["devices"].push_back(devices[i]);
      }
      const json& versions = member(about, "versions");
      if (!versions.is_object()) continue;
      for (const auto& [what, version] : versions.items()) {
        const json& known = member(environment["versions"], what);
        if (known.is_null())
          environment["versions"][what] = version;
        else if (known != version)
          environment["versions"][what + " · " + each.label] = version;
      }
    }
    if (hosts.size() == 1)
      environment["host"] = *hosts.begin();
    else
      for (const StoredResult& each : results_)
        environment["host"][each.label] = each.machine.empty() ? "not told" : each.machine;
    if (text(page_, "target").empty() && page_.contains("align")) page_["target"] = text(page_["align"], "target");
  }

  void add_tools() {
    const std::string path = text(member(page_, "model"), "path");
    const std::string model = path.empty() ? "MODEL" : shell_word(path);
    const std::string target = text(page_, "target").empty() ? "DEVICE" : shell_word(text(page_, "target"));
    const std::array<std::pair<const char*, std::string>, 6> commands{
        {{"doctor", "unmoor doctor"},
         {"scan", fmt::format("unmoor scan {} --on {}", model, target)},
         {"plan", fmt::format("unmoor run {} --on {}", model, target)},
         {"align", fmt::format("unmoor align {} --target {}", model, target)},
         {"bench", fmt::format("unmoor bench {} --on {},cpu", model, target)},
         {"profile", fmt::format("unmoor migrate {} --to {}", model, target)}}};
    page_["tools"] = json::array();
    for (const auto& [tool, command] : commands) {
      page_["tools"].push_back(
          {{"name", tool}, {"state", page_.contains(tool) ? "ran" : "not run"}, {"command", command}, {"note", ""}});
    }
  }

  void add_sources() {
    page_["sources"] = json::array();
    for (size_t i = 0; i < results_.size(); ++i) {
      const StoredResult& each = results_[i];
      std::string date = each.created.substr(0, 16) + " UTC";
      date[10] = ' ';
      if (each.dated_by_file) date += ", when the file was written";
      page_["sources"].push_back({{"file", printable(each.file)},
                                  {"tool", each.tool},
                                  {"machine", each.machine},
                                  {"date", date},
                                  {"created", each.created},
                                  {"shown", listed(ordered(shown_[i]))},
                                  {"left_out", listed(left_out_[i])}});
    }
  }

  void add_sentence() {
    std::vector<std::string> parts;
    for (const char* part : report_parts) {
      if (page_.contains(part)) parts.emplace_back(part);
    }
    page_["sentence"] = fmt::format("Results of {} from {}.", listed(parts), counted(results_.size(), "file"));
  }

  Results results_;                                 // Newest first.
  std::vector<std::vector<std::string>> shown_;     // Sections, by result.
  std::vector<std::vector<std::string>> left_out_;  // Sections and why, by result.
  std::map<std::string, size_t> holder_;            // The newest result of each section that is shown.
  std::map<std::string, size_t> joined_;            // How many results a section is made of.
  std::optional<size_t> migrated_;
  json page_;
};

}  // namespace

json joined_report(const std::vector<std::string>& files) {
  Results results;
  for (const std::string& file : files) {
    if (std::ranges::count(files, file) > 1) fail(ErrorKind::InvalidArgument, "'", file, "' was given twice");
    results.push_back(read_stored_result(file));
  }
  check_models(results);
  label(results);
  std::ranges::stable_sort(results, std::ranges::greater(), &StoredResult::created);
  return Join(std::move(results)).make();
}

}  // namespace unmoor
