#include "unmoor/catalog/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/json.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr std::string_view before_ops = ",\n\"ops\":{\n";
constexpr std::string_view after_ops = "\n}}\n";

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

bool flag_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// A source in a line: what, where, which state, when.
std::string source_line(const json& source) {
  if (source.is_string()) return source.get<std::string>();
  std::string line;
  for (const char* key : {"repo", "package", "what", "path", "how", "url", "version", "commit", "date"}) {
    std::string part = text_of(source, key);
    if (part.empty()) continue;
    if (std::string_view(key) == "commit" && part.size() == 40) part = part.substr(0, 10);
    line += fmt::format("{}{}", line.empty() ? "" : ", ", part);
  }
  return line;
}

std::vector<std::string> texts_of(const json& list) {
  std::vector<std::string> texts;
  for (const json& each : list) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

// Fails with InvalidModel unless it is one JSON value.
json parsed(std::string_view text, const std::string& from) { return read_json(text, ErrorKind::InvalidModel, from); }

void check_header(const json& header, const std::string& from) {
  if (!header.is_object()) fail(ErrorKind::InvalidModel, from, ": a catalogue file is a JSON object");
  if (number_of(header, "schema") != 1) fail(ErrorKind::InvalidModel, from, ": 'schema' must be 1, the only one there is");
  for (const char* key : {"platform", "version", "vocabulary"}) {
    if (text_of(header, key).empty()) fail(ErrorKind::InvalidModel, from, ": '", key, "' is missing or no text");
  }
  const std::string vocabulary = text_of(header, "vocabulary");
  if (vocabulary != "onnx" && vocabulary != "aten" && vocabulary != "standard" && vocabulary != "map") {
    fail(ErrorKind::InvalidModel, from, ": 'vocabulary' is '", vocabulary, "', not onnx or aten");
  }
  if (!header.contains("sources") || !header["sources"].is_array() || header["sources"].empty()) {
    fail(ErrorKind::InvalidModel, from, ": 'sources' is missing: every fact needs one");
  }
  const std::string absent = text_of(header, "absent");
  if (!absent.empty() && absent != "unknown" && absent != "unsupported") {
    fail(ErrorKind::InvalidModel, from, ": 'absent' is '", absent, "', not unknown or unsupported");
  }
}

}  // namespace

std::string_view name(Claim claim) {
  switch (claim) {
    case Claim::Native:
      return "native";
    case Claim::Constrained:
      return "constrained";
    case Claim::Fallback:
      return "fallback";
    case Claim::Unsupported:
      return "unsupported";
    case Claim::Unknown:
      return "unknown";
  }
  return "unknown";
}

std::string facts_text(const json& content, const std::string& from) {
  check_header(content, from);
  const auto ops = content.find("ops");
  if (ops == content.end() || !ops->is_object()) fail(ErrorKind::InvalidModel, from, ": 'ops' is missing or no object");
  const auto dumped = [](const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
  std::string text = "{";
  for (const auto& [key, value] : content.items()) {
    if (key != "ops") text += fmt::format("{}{}:{}", text.size() == 1 ? "" : ",\n", dumped(key), dumped(value));
  }
  text += before_ops;
  bool first = true;
  for (const auto& [op, entry] : ops->items()) {  // Sorted by bytes, as std::map does.
    const std::string key = dumped(op);
    if (key.size() != op.size() + 2)
      fail(ErrorKind::InvalidModel, from, ": the operator's name ", key, " holds a quote or a control character");
    text += fmt::format("{}{}:{}", first ? "" : ",\n", key, dumped(entry));
    first = false;
  }
  text += after_ops;
  return text;
}

std::shared_ptr<const Facts> Facts::open(std::string_view text, const std::string& from) {
  const auto facts = std::shared_ptr<Facts>(new Facts());
  const size_t start = text.find(before_ops);
  if (start == std::string_view::npos || !text.ends_with(after_ops))
    fail(ErrorKind::InvalidModel, from, ": operators must stand one a line");
  facts->read_header(text.substr(0, start), from);
  std::string_view rest = text.substr(start + before_ops.size(), text.size() - start - before_ops.size() - after_ops.size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with(',')) line.remove_suffix(1);
    const size_t key_end = line.find("\":", 1);
    if (!line.starts_with('"') || key_end == std::string_view::npos)
      fail(ErrorKind::InvalidModel, from, ": a line of operators is broken");
    facts->lines_.emplace_back(line.substr(1, key_end - 1), line.substr(key_end + 2));
  }
  for (size_t i = 1; i < facts->lines_.size(); ++i) {
    if (facts->lines_[i - 1].first >= facts->lines_[i].first) fail(ErrorKind::InvalidModel, from, ": operators must be sorted");
  }
  return facts;
}

std::shared_ptr<const Facts> Facts::adopt(const std::string& text, const std::string& from) {
  auto kept = std::make_shared<std::string>(facts_text(parsed(text, from), from));
  const auto facts = open(*kept, from);
  const Facts* const inside = facts.get();
  struct Both {
    std::shared_ptr<std::string> text;
    std::shared_ptr<const Facts> facts;
  };
  auto both = std::make_shared<Both>(Both{std::move(kept), facts});
  return {std::move(both), inside};
}

void Facts::read_header(std::string_view text, const std::string& from) {
  const json header = parsed(fmt::format("{}}}", text), from);
  check_header(header, from);
  header_ = {text_of(header, "platform"),
             text_of(header, "version"),
             text_of(header, "title"),
             text_of(header, "vendor"),
             text_of(header, "runtime"),
             text_of(header, "described"),
             text_of(header, "vocabulary"),
             text_of(header, "date"),
             text_of(header, "notes"),
             text_of(header, "licence"),
             text_of(header, "like"),
             text_of(header, "same_as"),
             text_of(header, "fallback"),
             text_of(header, "absent"),
             text_of(header, "absent_why"),
             flag_of(header, "runs_functions"),
             flag_of(header, "static_shapes"),
             flag_of(header, "static_graph"),
             number_of(header, "opset_min"),
             number_of(header, "opset_max"),
             number_of(header, "opset_claimed"),
             {}};
  if (header_.absent.empty()) header_.absent = "unknown";
  for (const json& source : header["sources"]) header_.sources.push_back(source_line(source));
  if (const auto types = header.find("types"); types != header.end()) {
    for (const json& set : *types) types_.push_back(texts_of(set));
  }
  if (const auto reasons = header.find("reasons"); reasons != header.end()) reasons_ = texts_of(*reasons);
}

std::vector<std::string> Facts::ops() const {
  std::vector<std::string> names;
  names.reserve(lines_.size());
  for (const auto& [op, line] : lines_) names.emplace_back(op);
  return names;
}

std::string_view Facts::line_of(std::string_view op) const {
  const auto found = std::ranges::lower_bound(lines_, op, {}, [](const auto& line) { return line.first; });
  return found != lines_.end() && found->first == op ? found->second : std::string_view();
}

bool Facts::has(std::string_view op) const { return !line_of(op).empty(); }

json Facts::entry(std::string_view op) const {
  const std::string_view line = line_of(op);
  return line.empty() ? json() : parsed(line, name());
}

const std::string& Facts::source(size_t number) const { return header_.sources.at(number < header_.sources.size() ? number : 0); }

}  // namespace unmoor
