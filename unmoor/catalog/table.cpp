#include "unmoor/catalog/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

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

// What separates the cells: what the head has most of, a tab before a semicolon before a comma.
char separator_of(std::string_view text) {
  size_t tabs = 0, semicolons = 0, commas = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') {
      if (tabs + semicolons + commas > 0) break;  // Else a title above the head.
      continue;
    }
    tabs += c == '\t' ? 1 : 0;
    semicolons += c == ';' ? 1 : 0;
    commas += c == ',' ? 1 : 0;
  }
  if (tabs > 0 && tabs >= semicolons && tabs >= commas) return '\t';
  return semicolons > 0 && semicolons >= commas ? ';' : ',';
}

TableRows read_csv(std::string_view text) {
  const char separator = separator_of(text);
  TableRows rows(1);
  std::string cell;
  bool quoted = false;
  bool blank = true;  // Nothing but spaces in the cell.
  const auto end_cell = [&] { rows.back().push_back(trimmed(cell)), cell.clear(), blank = true; };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (doubled) ++i;
      if (c == '"' && !doubled)
        quoted = false;
      else
        cell += c;
    } else if (c == '"' && blank) {
      quoted = true;
    } else if (c == separator) {
      end_cell();
    } else if (c == '\n') {
      end_cell();
      rows.emplace_back();
    } else if (c != '\r') {
      cell += c;
      blank = blank && c == ' ';
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

// Entities as the signs they stand for; those that nobody lists stay as they are.
std::string without_entities(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> entities{{{"&lt;", "<"},
                                                                                          {"&gt;", ">"},
                                                                                          {"&quot;", "\""},
                                                                                          {"&nbsp;", " "},
                                                                                          {"&#10003;", "yes"},
                                                                                          {"&check;", "yes"},
                                                                                          {"&cross;", "no"},
                                                                                          {"&amp;", "&"}}};
  std::string result;
  while (!text.empty()) {
    const auto* const found = std::ranges::find_if(entities, [&](const auto& each) { return text.starts_with(each.first); });
    if (text[0] != '&' || found == entities.end()) {
      result += text[0];
      text.remove_prefix(1);
      continue;
    }
    result += found->second;
    text.remove_prefix(found->first.size());
  }
  return result;
}

// Fails with InvalidArgument on a cell that stands for several: which column the next one belongs to would be a guess.
void refuse_spans(const std::string& tag) {
  for (const std::string_view span : {"rowspan=", "colspan="}) {
    const size_t at = tag.find(span);
    if (at == std::string::npos) continue;
    const size_t digit = tag.find_first_of("0123456789", at);
    if (digit != std::string::npos && (tag[digit] != '1' || (digit + 1 < tag.size() && std::isdigit(static_cast<unsigned char>(tag[digit + 1])) != 0)))
      fail(ErrorKind::InvalidArgument, "a cell of the table spans several rows or columns (<", tag, ">): write the table with one value a cell");
  }
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
      end_cell(), refuse_spans(tag), in_cell = true;
    else if (word == "/td" || word == "/th" || word == "/tr")
      end_cell();
    else if (word == "br" || word == "br/")
      cell += ' ';
    else if (word == "/table")
      break;
  }
  end_cell();
  return rows;
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

}  // namespace unmoor
