#include "unmoor/workbench/report_template.h"

#include <fmt/format.h>

#include <vector>

#include "unmoor/workbench/report_data.h"

namespace unmoor {
namespace {

using nlohmann::json;
using Scopes = std::vector<const json*>;

const json nothing;

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

}  // namespace

std::string fill_template(std::string_view page, const json& view) {
  std::string out;
  Scopes scopes{&view};
  fill(out, page, scopes);
  return out;
}

}  // namespace unmoor
