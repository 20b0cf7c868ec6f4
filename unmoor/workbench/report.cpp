#include "unmoor/workbench/report.h"

#include <cstddef>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "unmoor/workbench/report_data.h"
#include "unmoor/workbench/report_language.h"
#include "unmoor/workbench/report_template.h"

namespace embedded {
extern const std::string_view report_template_html;
extern const std::string_view report_js;
extern const std::string_view report_css;
extern const std::string_view report_csp;
}  // namespace embedded

namespace unmoor {
namespace {

using nlohmann::json;
const json nothing;

const json& item_named(const std::vector<const json*>& list, std::string_view key, std::string_view name) {
  for (const json* item : list) {
    const json& value = member(*item, key);
    if (value.is_string() && value.get_ref<const std::string&>() == name) return *item;
  }
  return nothing;
}

std::string state_of(const std::string& name) { return name == "ok" || name == "warn" || name == "bad" ? name : "none"; }

// What the page shows of one part in its rail and above its figures.
json section_view(const json& data, const json& words, const std::string& id, const std::string& question) {
  const json& figure = item_named(items(data, "figures"), "id", id);
  const json& tool = item_named(items(data, "tools"), "name", id);
  const bool failed = text(tool, "state") == "failed";
  std::string state = text(member(data, "states"), id);
  if (state.empty()) state = failed ? "bad" : text(figure, "state");
  state = state_of(state);
  const std::string answer = text(member(data, "answers"), id);
  std::string key = text(figure, "value").empty() ? text(tool, "note") : text(figure, "value");
  if (failed) key = text(member(words, "page"), "failed");
  return {{"id", id},   {"question", question}, {"answer", answer == text(data, "sentence") ? "" : answer},
          {"key", key}, {"state", state},       {"state_word", text(member(words, "states"), state)},
          {"missing", ""}, {"command", ""}};
}

bool has_section(const json& data, const std::string& id) {
  return !text(member(data, "answers"), id).empty() || member(data, id).is_structured() ||
         (id == "environment" && !text(data, "command").empty());
}

json section_views(const json& data, const json& words) {
  json out = json::array();
  for (const json* section : items(words, "sections")) {
    const std::string id = text(*section, "id");
    if (has_section(data, id)) out.push_back(section_view(data, words, id, text(*section, "question")));
  }
  return out;
}

// The tools that did not run or failed, and have nothing to show.
json missing_views(const json& data, const json& words) {
  json out = json::array();
  for (const json* tool : items(data, "tools")) {
    const std::string name = text(*tool, "name");
    const json& section = item_named(items(words, "sections"), "id", name);
    if (text(*tool, "state") == "ran" || (!section.is_null() && has_section(data, name))) continue;
    const bool failed = text(*tool, "state") == "failed";
    const std::string state = failed ? "bad" : "none";
    out.push_back({{"id", name},
                   {"question", section.is_null() ? name : text(section, "question")},
                   {"key", text(member(words, "page"), failed ? "failed" : "not_run")},
                   {"command", text(*tool, "command")},
                   {"note", text(*tool, "note")},
                   {"state", state},
                   {"state_word", text(member(words, "states"), state)},
                   {"missing", ""}});
  }
  return out;
}

json rail_view(const json& sections, const json& missing) {
  json rail = sections;
  for (json tool : missing) {
    tool["id"] = fmt::format("not-run-{}", text(tool, "id"));
    tool["missing"] = "yes";
    rail.push_back(std::move(tool));
  }
  return rail;
}

json figure_views(const json& data, const json& words) {
  json out = json::array();
  for (const json* figure : items(data, "figures")) {
    json view;
    for (const char* key : {"id", "value", "label", "note"}) view[key] = text(*figure, key);
    const std::string state = state_of(text(*figure, "state"));
    view["state"] = state;
    view["state_word"] = text(member(words, "states"), state);
    out.push_back(std::move(view));
  }
  return out;
}

// The files that a joined page is made of.
json source_views(const json& data) {
  json out = json::array();
  for (const json* source : items(data, "sources")) {
    json view;
    for (const char* key : {"file", "tool", "machine", "date", "shown", "left_out"}) view[key] = text(*source, key);
    out.push_back(std::move(view));
  }
  return out;
}

json note_views(const json& data) {
  json out = json::array();
  const json& notes = member(data, "notes");
  if (!notes.is_array()) return out;
  for (const json& note : notes) {
    if (note.is_string()) out.push_back({{"note", text(note)}});
  }
  return out;
}

json next_views(const json& data) {
  json out = json::array();
  for (const json* step : items(data, "next")) {
    json view;
    for (const char* key : {"text", "command", "effect", "see"}) view[key] = text(*step, key);
    out.push_back(std::move(view));
  }
  return out;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!out.empty()) out += between;
    out += part;
  }
  return out;
}

json head_view(const json& data, const json& words) {
  const json& verdict = member(member(words, "verdicts"), text(data, "verdict"));
  const std::string state = verdict.is_null() ? "none" : text(verdict, "state");
  const json& icon = member(member(words, "icons"), state);
  const std::string path = text(member(data, "model"), "path");
  const std::string model = path.substr(path.rfind('/') + 1);
  const std::string badge = text(verdict, "word");
  const std::string tool = text(data, "tool");
  std::string sentence = text(data, "sentence");
  if (sentence.empty()) {
    sentence = text(member(words, "page"), "no_sentence");
    if (const std::size_t at = sentence.find("{tool}"); at != std::string::npos) sentence.replace(at, 6, tool);
  }
  const std::string reason = text(data, "reason");
  const std::string mark = fmt::format("{} {}", text(icon, "mark"), badge.empty() ? tool : badge);
  return {{"lang", text(words, "lang")},
          {"words", member(words, "page")},
          {"generator", joined({"Unmoor", text(data, "version")}, " ")},
          {"title", joined({mark, joined({model, text(data, "target")}, " → "), "Unmoor"}, " · ")},
          {"icon_colour", text(icon, "colour")},
          {"icon_path", text(icon, "path")},
          {"model", model},
          {"source", text(data, "source")},
          {"target", text(data, "target")},
          {"dtype", text(data, "dtype")},
          {"date", text(data, "created").substr(0, 10)},
          {"badge", badge},
          {"verdict_state", state},
          {"sentence", sentence},
          {"reason", reason == sentence ? "" : reason}};
}

// Of a model of thousands, all metrics of all values would be most of the file: then only what the page draws is kept, and it says so. The
// others are in the tool's own JSON.
json for_page(const json& data) {
  constexpr size_t many_values = 1000;
  constexpr std::array<std::string_view, 9> drawn{"max_abs",  "rel_l2",   "cosine",  "over",   "class_mismatch",
                                                  "excess_e", "excess_p", "verdict", "problem"};
  json out = data;
  const auto align = out.find("align");
  if (align == out.end() || !align->is_object() || !align->contains("values") || !(*align)["values"].is_array()) return out;
  if ((*align)["values"].size() <= many_values) return out;
  if (!member(out, "readings").is_object()) out["readings"] = json::object();
  out["readings"]["layers"] = fmt::format("{} values: three metrics of each; all the others are what unmoor align --json prints.", (*align)["values"].size());
  for (json& value : (*align)["values"]) {
    if (!value.is_object()) continue;
    for (const char* const side : {"single", "entire"}) {
      if (!value.contains(side) || !value[side].is_object()) continue;
      json kept = json::object();
      for (const auto& [key, number] : value[side].items()) {
        if (std::ranges::find(drawn, key) != drawn.end() && !number.is_null()) kept[key] = number;
      }
      value[side] = std::move(kept);
    }
    for (const char* const key : {"note", "cause"}) {
      if (value.contains(key) && is_empty(value[key])) value.erase(key);
    }
  }
  return out;
}

// JSON that no HTML parser takes for markup: "<" occurs only inside its strings.
std::string script_safe(const json& data) {
  std::string out;
  for (const char c : dump_json(data)) {
    if (c == '<') out += "\\u003c";
    else out += c;
  }
  return out;
}

}  // namespace

std::string render_report(const json& data, std::string_view language) {
  const json& words = report_words(language);
  const json& own = report_words(report_languages[0]);
  const Phrases phrases(own, words);
  const bool foreign = &words != &own;
  const json head = foreign ? spoken_head(data, phrases) : json();
  const json& told = foreign ? head : data;
  json view = head_view(told, words);
  view["sections"] = section_views(told, words);
  view["missing_tools"] = missing_views(told, words);
  view["rail"] = rail_view(view["sections"], view["missing_tools"]);
  view["figures"] = figure_views(told, words);
  view["next"] = next_views(told);
  view["sources"] = source_views(told);
  view["notes"] = note_views(told);
  view["has_sources"] = !view["sources"].empty();
  view["has_figures"] = !view["figures"].empty();
  view["has_next"] = !view["next"].empty();
  view["has_missing"] = !view["missing_tools"].empty();
  view["csp"] = embedded::report_csp;
  view["css"] = embedded::report_css;
  view["js"] = embedded::report_js;
  const json carried = for_page(data);
  view["json"] = script_safe(carried);
  view["other_words"] = foreign ? script_safe(spoken_words(carried, words, phrases)) : std::string();
  return fill_template(embedded::report_template_html, view);
}

}  // namespace unmoor
