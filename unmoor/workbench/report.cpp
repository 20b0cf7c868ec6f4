#include "unmoor/workbench/report.h"

#include <cstddef>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "unmoor/workbench/report_data.h"

namespace embedded {
extern const std::string_view report_template_html;
extern const std::string_view report_words_json;
extern const std::string_view report_js;
extern const std::string_view report_css;
extern const std::string_view report_csp;
}  // namespace embedded

namespace unmoor {
namespace {

using nlohmann::json;
using Scopes = std::vector<const json*>;

const json nothing;

const json& item_named(const std::vector<const json*>& list, std::string_view key, std::string_view name) {
  for (const json* item : list) {
    const json& value = member(*item, key);
    if (value.is_string() && value.get_ref<const std::string&>() == name) return *item;
  }
  return nothing;
}

void append_escaped(std::string& out, std::string_view raw) {
  for (const char c : raw) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
}

// The innermost scope that has the name; "a.b" is b within a.
const json& find(const Scopes& scopes, std::string_view path) {
  const std::size_t dot = path.find('.');
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (!(*scope)->is_object() || !(*scope)->contains(std::string(path.substr(0, dot)))) continue;
    const json& value = member(**scope, path.substr(0, dot));
    return dot == std::string_view::npos ? value : member(value, path.substr(dot + 1));
  }
  return nothing;
}

bool is_empty(const json& value) {
  return value.is_null() || value == false || (value.is_string() && value.get_ref<const std::string&>().empty());
}

// {{name}} escaped, {{{name}}} as it is, {{#name}}…{{/name}} for each item of a list, or once if not empty.
void fill(std::string& out, std::string_view page, Scopes& scopes) {
  while (true) {
    const std::size_t open = page.find("{{");
    out += page.substr(0, open);
    if (open == std::string_view::npos) return;
    const std::size_t mark = open + 2 < page.size() && page[open + 2] == '{' ? 3 : 2;
    const std::size_t close = page.find("}}", open);
    const std::string_view tag = page.substr(open + mark, close - open - mark);
    page.remove_prefix(close + mark);
    if (!tag.starts_with('#')) {
      const json& value = find(scopes, tag);
      if (!value.is_string()) continue;
      const std::string& words = value.get_ref<const std::string&>();
      if (mark == 3) out += words;
      else append_escaped(out, words);
      continue;
    }
    const std::string end = fmt::format("{{{{/{}}}}}", tag.substr(1));
    const std::size_t stop = page.find(end);
    const auto once = [&](const json& item) {
      scopes.push_back(&item);
      fill(out, page.substr(0, stop), scopes);
      scopes.pop_back();
    };
    const json& value = find(scopes, tag.substr(1));
    if (value.is_array())
      for (const json& item : value) once(item);
    else if (!is_empty(value)) once(value);
    page.remove_prefix(stop + end.size());
  }
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
  std::string key = text(figure, "value").empty() ? text(tool, "note") : text(figure, "value");
  if (failed) key = text(member(words, "page"), "failed");
  return {{"id", id},   {"question", question}, {"answer", text(member(data, "answers"), id)},
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
  for (const char c : dump_json(for_page(data))) {
    if (c == '<') out += "\\u003c";
    else out += c;
  }
  return out;
}

}  // namespace

std::string render_report(const json& data) {
  const json words = json::parse(embedded::report_words_json);
  json view = head_view(data, words);
  view["sections"] = section_views(data, words);
  view["missing_tools"] = missing_views(data, words);
  view["rail"] = rail_view(view["sections"], view["missing_tools"]);
  view["figures"] = figure_views(data, words);
  view["next"] = next_views(data);
  view["sources"] = source_views(data);
  view["notes"] = note_views(data);
  view["has_sources"] = !view["sources"].empty();
  view["has_figures"] = !view["figures"].empty();
  view["has_next"] = !view["next"].empty();
  view["has_missing"] = !view["missing_tools"].empty();
  view["csp"] = embedded::report_csp;
  view["css"] = embedded::report_css;
  view["js"] = embedded::report_js;
  view["json"] = script_safe(data);
  std::string out;
  Scopes scopes{&view};
  fill(out, embedded::report_template_html, scopes);
  return out;
}

}  // namespace unmoor
