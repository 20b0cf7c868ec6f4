#include "unmoor/catalog/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

using nlohmann::json;

std::string trimmed(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0 || c == '`' || c == '*'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return result;
}

TableRows read_csv(std::string_view text) {
  TableRows rows(1);
  std::string cell;
  bool quoted = false;
  const auto end_cell = [&] { rows.back().push_back(trimmed(cell)), cell.clear(); };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (doubled) ++i;
      if (c == '"' && !doubled)
        quoted = false;
      else
        cell += c;
    } else if (c == '"' && trimmed(cell).empty()) {
      quoted = true;
    } else if (c == ',' || c == ';' || c == '\t') {
      end_cell();
    } else if (c == '\n') {
      end_cell();
      rows.emplace_back();
    } else if (c != '\r') {
      cell += c;
    }
  }
  end_cell();
  return rows;
}

TableRows read_markdown(std::string_view text) {
  TableRows rows;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with('|')) {
      if (!rows.empty()) break;  // The table ended.
      continue;
    }
    if (line.find_first_not_of("|-: ") == std::string::npos) continue;  // Below the head.
    rows.emplace_back();
    std::string cell;
    for (size_t i = 1; i < line.size(); ++i) {
      if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
        cell += line[++i];
      } else if (line[i] == '|') {
        rows.back().push_back(trimmed(cell));
        cell.clear();
      } else {
        cell += line[i];
      }
    }
    if (!trimmed(cell).empty()) rows.back().push_back(trimmed(cell));
  }
  return rows;
}

std::string without_entities(std::string text) {
  for (const auto& [entity, sign] : {std::pair{"&lt;", "<"},
                                     {"&gt;", ">"},
                                     {"&quot;", "\""},
                                     {"&nbsp;", " "},
                                     {"&#10003;", "yes"},
                                     {"&check;", "yes"},
                                     {"&amp;", "&"}}) {
    for (size_t at = text.find(entity); at != std::string::npos; at = text.find(entity, at))
      text.replace(at, std::string_view(entity).size(), sign);
  }
  return text;
}

TableRows read_html(std::string_view text) {
  TableRows rows;
  std::string cell;
  bool in_cell = false;
  const auto end_cell = [&] {
    if (in_cell && !rows.empty()) rows.back().push_back(trimmed(without_entities(cell)));
    in_cell = false;
    cell.clear();
  };
  size_t at = lower(text).find("<table");
  while (at < text.size()) {
    if (text[at] != '<') {
      cell += text[at++];
      continue;
    }
    const size_t close = text.find('>', at);
    if (close == std::string_view::npos) break;
    const std::string tag = lower(text.substr(at + 1, close - at - 1));
    const std::string word = tag.substr(0, tag.find_first_of(" \t\n"));
    at = close + 1;
    if (word == "tr")
      end_cell(), rows.emplace_back();
    else if (word == "td" || word == "th")
      end_cell(), in_cell = true;
    else if (word == "/td" || word == "/th" || word == "/tr")
      end_cell();
    else if (word == "br")
      cell += ' ';
    else if (word == "/table")
      break;
  }
  end_cell();
  return rows;
}

enum class Column : uint8_t { Op, Support, Types, Opset, Notes, Other };

Column column_of(const std::string& head) {
  const std::string text = lower(head);
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (has("support") || has("status") || has("available")) return Column::Support;
  if (has("type") || has("precision")) return Column::Types;
  if (has("opset") || has("since") || has("version")) return Column::Opset;
  if (has("note") || has("constraint") || has("limit") || has("remark") || has("restriction") || has("comment"))
    return Column::Notes;
  if (has("operator") || text == "op" || text == "ops" || text == "name" || has("op name") || has("onnx op")) return Column::Op;
  return Column::Other;
}

bool is_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// "supported", "partial", "unsupported"; empty if the cell says nothing; no value if it cannot be understood.
std::optional<std::string> support_of(const std::string& cell) {
  const std::string text = lower(cell);
  if (text.empty() || text == "?" || text == "unknown" || text == "tbd") return "";
  if (is_one_of(text, {"y", "yes", "true", "1", "x", "full", "supported", "ok", "✓", "✔", "✅", "√"})) return "supported";
  if (is_one_of(text, {"n", "no", "false", "0", "none", "unsupported", "not supported", "-", "✗", "✘", "❌", "×"}))
    return "unsupported";
  if (is_one_of(text, {"partial", "partially", "partly", "limited", "partial support", "partially supported"})) return "partial";
  return std::nullopt;
}

std::string dtype_of(std::string text) {
  text = lower(trimmed(text));
  if (text == "fp32" || text == "float" || text == "f32") return "float32";
  if (text == "fp16" || text == "half" || text == "f16") return "float16";
  if (text == "bf16") return "bfloat16";
  if (text == "fp64" || text == "double" || text == "f64") return "float64";
  return text;
}

std::vector<std::string> dtypes_of(const std::string& cell) {
  std::vector<std::string> found;
  std::string word;
  for (const char c : cell + ",") {
    const bool ends = c == ',' || c == ';' || c == '/' || c == '|' || c == ' ' || c == '\n';
    if (!ends) word += c;
    if (ends && !word.empty()) found.push_back(dtype_of(word)), word.clear();
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

size_t place_of(json& types, const std::vector<std::string>& set) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == json(set)) return i;
  }
  types.push_back(set);
  return types.size() - 1;
}

}  // namespace

TableRows read_table(std::string_view text) {
  TableRows rows;
  const std::string small = lower(text);
  if (small.find("<table") != std::string::npos) {
    rows = read_html(text);
  } else {
    const bool markdown = small.starts_with('|') || small.find("\n|") != std::string::npos;
    rows = markdown ? read_markdown(text) : read_csv(text);
  }
  std::erase_if(rows, [](const auto& row) { return std::ranges::all_of(row, &std::string::empty); });
  if (rows.size() < 2)
    fail(ErrorKind::InvalidArgument,
         "there is no table with a head and a row: wanted is CSV, a Markdown table, or an HTML table");
  return rows;
}

void import_rows(const TableRows& rows, ImportedOps& into) {
  std::vector<Column> columns;
  for (const std::string& head : rows[0]) columns.push_back(column_of(head));
  if (std::ranges::find(columns, Column::Op) == columns.end()) {
    fail(ErrorKind::InvalidArgument, "no column of the table is called Operator, Op or Name");
  }
  const bool has_support = std::ranges::find(columns, Column::Support) != columns.end();
  *into.ops = json::object();
  *into.types = json::array();
  for (size_t i = 1; i < rows.size(); ++i) {
    std::string op;
    std::string support = has_support ? "" : "supported";
    json kernel{{"since", 1}};
    bool understood = true;
    for (size_t k = 0; k < rows[i].size() && k < columns.size(); ++k) {
      const std::string& cell = rows[i][k];
      if (columns[k] == Column::Op && op.empty()) op = cell;
      if (columns[k] == Column::Support) {
        const auto said = support_of(cell);
        understood = understood && said.has_value();
        support = said.value_or("");
      }
      if (columns[k] == Column::Opset && !cell.empty()) {
        int64_t since = 0;
        const auto [end, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), since);
        if (problem == std::errc() && since > 0)
          kernel["since"] = since;
        else
          understood = false;
      }
      if (columns[k] == Column::Types && !cell.empty()) {
        kernel["dtypes"] = {{"T", place_of(*into.types, dtypes_of(cell))}};
        kernel["in"] = {"T"};
      }
      if (columns[k] == Column::Notes && !cell.empty()) kernel["limits"] = {{{"text", cell}}};
    }
    const bool is_name = !op.empty() && std::ranges::all_of(op, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':' || c == '.';
    });
    if (!understood || !is_name) {
      std::string line;
      for (const auto& cell : rows[i]) line += fmt::format("{}{}", line.empty() ? "" : " | ", cell);
      into.unread.push_back(fmt::format("row {}: {}", i + 1, line));
      continue;
    }
    if (support.empty()) continue;
    if (support == "unsupported") kernel["state"] = "unsupported";
    if (support == "partial" && !kernel.contains("limits")) kernel["limits"] = {{{"text", "supported in part"}}};
    (*into.ops)[op].push_back(std::move(kernel));
  }
}

}  // namespace unmoor
