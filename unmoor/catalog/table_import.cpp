#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/catalog/table.h"

namespace unmoor {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return result;
}

// The text between any of the separators, without empty ones.
Words split(std::string_view text, std::string_view separators) {
  Words words;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

enum class Column : uint8_t { Op, Support, Types, Opset, Notes, Other };

// What one word of a head says that its column holds.
Column column_of_word(const std::string& word) {
  static const std::map<std::string, Column, std::less<>> meanings{
      {"op", Column::Op},           {"ops", Column::Op},           {"operator", Column::Op},      {"operators", Column::Op},
      {"operation", Column::Op},    {"operations", Column::Op},    {"support", Column::Support},  {"supported", Column::Support},
      {"status", Column::Support},  {"available", Column::Support}, {"type", Column::Types},       {"types", Column::Types},
      {"dtype", Column::Types},     {"dtypes", Column::Types},     {"datatype", Column::Types},   {"datatypes", Column::Types},
      {"precision", Column::Types}, {"precisions", Column::Types}, {"opset", Column::Opset},      {"opsets", Column::Opset},
      {"since", Column::Opset},     {"version", Column::Opset},    {"versions", Column::Opset},   {"note", Column::Notes},
      {"notes", Column::Notes},     {"constraint", Column::Notes}, {"constraints", Column::Notes}, {"limit", Column::Notes},
      {"limits", Column::Notes},    {"limitation", Column::Notes}, {"limitations", Column::Notes}, {"remark", Column::Notes},
      {"remarks", Column::Notes},   {"restriction", Column::Notes}, {"restrictions", Column::Notes}, {"comment", Column::Notes},
      {"comments", Column::Notes},  {"condition", Column::Notes},  {"conditions", Column::Notes}};
  const auto found = meanings.find(word);
  return found == meanings.end() ? Column::Other : found->second;
}

// "Supported data types" holds types, "Operator support" support, "Op type" operators: notes, opsets and types decide where a head
// has them, and else its last word that says anything.
Column column_of(const std::string& head) {
  const std::string text = lower(head);
  if (text == "name") return Column::Op;
  Column last = Column::Other;
  Column before = Column::Other;
  bool any_types = false;
  for (const std::string& word : split(text, " \t\n_-/()[]:,.*`")) {
    Column meaning = column_of_word(word);
    if (meaning == Column::Notes || meaning == Column::Opset) return meaning;
    if (meaning == Column::Types && before == Column::Op) meaning = Column::Op;  // "Op type" is what ONNX calls an operator's name.
    any_types = any_types || meaning == Column::Types;
    if (meaning != Column::Other) last = meaning;
    before = meaning;
  }
  return any_types ? Column::Types : last;
}

// The columns by what they hold. Fails with InvalidArgument where two say the same thing: which of them is meant would be a guess.
std::vector<Column> columns_of(const std::vector<std::string>& head) {
  std::vector<Column> columns;
  for (const std::string& each : head) columns.push_back(column_of(each));
  for (const Column once : {Column::Op, Column::Support, Column::Types, Column::Opset}) {
    const auto first = std::ranges::find(columns, once);
    if (first == columns.end()) continue;
    const auto second = std::find(first + 1, columns.end(), once);
    if (second != columns.end())
      fail(ErrorKind::InvalidArgument, "two columns of the table tell the same thing, '", head[static_cast<size_t>(first - columns.begin())],
           "' and '", head[static_cast<size_t>(second - columns.begin())], "': leave the one that is meant");
  }
  if (std::ranges::find(columns, Column::Op) == columns.end())
    fail(ErrorKind::InvalidArgument, "no column of the table is called Operator, Op or Name");
  return columns;
}

bool is_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool says_nothing(const std::string& cell) {
  return is_one_of(lower(cell), {"", "?", "unknown", "tbd", "n/a", "na", "-", "--", "–", "—", "not applicable"});
}

// "supported", "partial", "unsupported"; empty if the cell says nothing; no value if it cannot be understood. `x_marks`: the column
// has no other word than x.
std::optional<std::string> support_of(const std::string& cell, bool x_marks) {
  const std::string text = lower(cell);
  if (says_nothing(cell)) return "";
  if (text == "x") return x_marks ? std::optional<std::string>("supported") : std::nullopt;
  if (is_one_of(text, {"y", "yes", "true", "1", "full", "fully supported", "supported", "ok", "✓", "✔", "✅", "√", "☑"})) return "supported";
  if (is_one_of(text, {"n", "no", "false", "0", "none", "unsupported", "not supported", "✗", "✘", "❌", "×", "✖"})) return "unsupported";
  if (is_one_of(text, {"partial", "partially", "partly", "limited", "partial support", "partially supported"})) return "partial";
  return std::nullopt;
}

// "fp32", "tensor(float)", "seq(tensor(int64))" as the catalogue spells it; no value if it is no element type.
std::optional<std::string> dtype_of(const std::string& word) {
  static const std::map<std::string, std::string, std::less<>> names{
      {"fp32", "float32"}, {"f32", "float32"},  {"float", "float32"},   {"fp16", "float16"}, {"f16", "float16"},  {"half", "float16"},
      {"bf16", "bfloat16"}, {"fp64", "float64"}, {"f64", "float64"},     {"double", "float64"}, {"boolean", "bool"}, {"str", "string"},
      {"i8", "int8"},      {"s8", "int8"},      {"u8", "uint8"},        {"i16", "int16"},     {"u16", "uint16"},   {"i32", "int32"},
      {"u32", "uint32"},   {"i64", "int64"},    {"u64", "uint64"},      {"i4", "int4"},       {"u4", "uint4"},     {"long", "int64"}};
  static const std::set<std::string, std::less<>> known{
      "float32", "float16", "bfloat16", "float64", "bool", "string", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4",
      "uint8", "uint16", "uint32", "uint64", "complex64", "complex128", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "float4e2m1", "float8e8m0"};
  for (const std::string_view wrap : {"tensor(", "seq(", "optional("}) {
    if (!word.starts_with(wrap) || !word.ends_with(')')) continue;
    const auto inner = dtype_of(word.substr(wrap.size(), word.size() - wrap.size() - 1));
    return !inner || wrap == "tensor(" ? inner : std::optional(fmt::format("{}{})", wrap, *inner));
  }
  const auto found = names.find(word);
  const std::string name = found == names.end() ? word : found->second;
  return known.contains(name) ? std::optional(name) : std::nullopt;
}

// The element types of a cell, sorted; empty if it says nothing or names all of them; no value if a word of it is none.
std::optional<Words> dtypes_of(const std::string& cell) {
  if (says_nothing(cell) || is_one_of(lower(cell), {"all", "any", "*"})) return Words();
  constexpr size_t longest = 64;  // Of a name of an element type, however deep it lies.
  std::set<std::string> found;
  for (const std::string& word : split(lower(cell), ",;/|+& \t\n")) {
    const auto dtype = word.size() > longest ? std::nullopt : dtype_of(word);
    if (!dtype) return std::nullopt;
    found.insert(*dtype);
  }
  return Words(found.begin(), found.end());
}

struct Opsets {
  int64_t since = 1;
  int64_t until = 0;  // 0: no end.
};

// "13", "7+", ">= 7", "7-13", "opset 7 to 13", and a list of the versions there are, "1, 7, 13", of which the first counts.
std::optional<Opsets> opsets_of(const std::string& cell) {
  if (says_nothing(cell) || is_one_of(lower(cell), {"all", "any"})) return Opsets();
  std::vector<int64_t> numbers;
  Words rest;  // What stands around the numbers.
  std::string between;
  const std::string text = lower(cell);
  for (size_t i = 0; i < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      if (text[i] != ' ') between += text[i];
      ++i;
      continue;
    }
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data() + i, text.data() + text.size(), value);
    constexpr int64_t most = 1000;
    if (problem != std::errc() || value <= 0 || value > most) return std::nullopt;
    numbers.push_back(value);
    rest.push_back(between);
    between.clear();
    i = static_cast<size_t>(end - text.data());
  }
  rest.push_back(between);
  if (numbers.empty() || !is_one_of(rest[0], {"", "v", "opset", "opsets", "version", "since", ">=", "≥", "from"})) return std::nullopt;
  if (numbers.size() == 1 && is_one_of(rest[1], {"", "+", "andup", "andlater", "andnewer"})) return Opsets{numbers[0], 0};
  const bool is_range = numbers.size() == 2 && rest[2].empty() && is_one_of(rest[1], {"-", "–", "—", "~", "to", "..", "-v"});
  if (is_range && numbers[0] <= numbers[1]) return Opsets{numbers[0], numbers[1]};
  const bool is_list = rest.back().empty() && std::all_of(rest.begin() + 1, rest.end() - 1, [](const auto& each) { return is_one_of(each, {",", "/", ";"}); });
  return numbers.size() > 1 && is_list ? std::optional(Opsets{*std::ranges::min_element(numbers), 0}) : std::nullopt;
}

bool is_operator_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':' || c == '.';
  });
}

// One row as it is understood: an operator's name and what it says.
struct Row {
  std::string op;
  std::string support;
  json kernel = {{"since", 1}};
};

class Importer {
 public:
  Importer(const TableRows& rows, ImportedOps& into) : columns_(columns_of(rows[0])), into_(into) {
    const auto at = std::ranges::find(columns_, Column::Support);
    has_support_ = at != columns_.end();
    const auto place = static_cast<size_t>(at - columns_.begin());
    x_marks_ = std::ranges::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
      return place >= row.size() || row[place].empty() || lower(row[place]) == "x";
    });
  }

  void add(const std::vector<std::string>& cells, size_t number) {
    auto row = read(cells);
    if (!row) {
      into_.unread.push_back(fmt::format("row {}: {}", number, fmt::join(cells, " | ")));
      return;
    }
    if (row->support.empty()) return;
    if (row->support == "unsupported") row->kernel["state"] = "unsupported";
    if (row->support == "partial" && !row->kernel.contains("limits")) row->kernel["limits"] = {{{"text", "supported in part"}}};
    (*into_.ops)[row->op].push_back(std::move(row->kernel));
  }

 private:
  std::optional<Row> read(const std::vector<std::string>& cells) {
    Row row;
    row.support = has_support_ ? "" : "supported";
    std::string notes;
    for (size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
      if (columns_[i] == Column::Op && row.op.empty()) row.op = cells[i];
      if (columns_[i] == Column::Notes && !says_nothing(cells[i])) notes += fmt::format("{}{}", notes.empty() ? "" : "; ", cells[i]);
      if (columns_[i] == Column::Support) {
        const auto said = support_of(cells[i], x_marks_);
        if (!said) return std::nullopt;
        row.support = *said;
      }
      if (columns_[i] == Column::Opset && !add_opsets(cells[i], row.kernel)) return std::nullopt;
      if (columns_[i] == Column::Types && !add_types(cells[i], row.kernel)) return std::nullopt;
    }
    if (!notes.empty()) row.kernel["limits"] = {{{"text", notes}}};
    return is_operator_name(row.op) ? std::optional(std::move(row)) : std::nullopt;
  }

  static bool add_opsets(const std::string& cell, json& kernel) {
    const auto opsets = opsets_of(cell);
    if (!opsets) return false;
    kernel["since"] = opsets->since;
    if (opsets->until > 0) kernel["until"] = opsets->until;
    return true;
  }

  bool add_types(const std::string& cell, json& kernel) {
    const auto dtypes = dtypes_of(cell);
    if (!dtypes) return false;
    if (dtypes->empty()) return true;
    const auto [place, fresh] = sets_.emplace(*dtypes, sets_.size());
    if (fresh) into_.types->push_back(*dtypes);
    kernel["dtypes"] = {{"T", place->second}};
    kernel["in"] = {"T"};
    return true;
  }

  std::vector<Column> columns_;
  ImportedOps& into_;
  std::map<Words, size_t> sets_;  // Of element types, by their number in the file.
  bool has_support_ = false;
  bool x_marks_ = false;
};

}  // namespace

void import_rows(const TableRows& rows, ImportedOps& into) {
  *into.ops = json::object();
  *into.types = json::array();
  Importer importer(rows, into);
  for (size_t i = 1; i < rows.size(); ++i) importer.add(rows[i], i + 1);
}

}  // namespace unmoor
