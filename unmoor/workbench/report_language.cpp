#include "unmoor/workbench/report_language.h"

#include <algorithm>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/workbench/report_data.h"
#include "unmoor/workbench/report_document.h"

namespace embedded {
extern const std::string_view report_words_json;
extern const std::string_view report_words_zh_json;
}  // namespace embedded

namespace unmoor {
namespace {

using nlohmann::json;

constexpr int deepest = 4;             // Sentences in sentences.
constexpr size_t longest_sentence = 2000;

bool is_number(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return c >= '0' && c <= '9'; }) &&
         text.find_first_not_of("0123456789.,+-e") == std::string_view::npos;
}

bool is_word(std::string_view text) { return text.find(' ') == std::string_view::npos; }

// What is told by its name in a result and never is a sentence.
bool is_name(const std::string& key) {
  static const std::set<std::string> names{"id",   "name",    "node",   "op",      "command", "category", "block",  "see",    "state", "file",
                                           "tool", "version", "verdict", "created", "model",   "path",     "paths",  "target", "source",
                                           "dtype", "runner", "graph",  "kernel",  "fingerprint", "samples", "versions"};
  return names.contains(key);
}

// Every text below that is no name, each once.
void collect(const json& value, std::set<std::string>& texts) {
  if (value.is_string() && value.get_ref<const std::string&>().size() <= longest_sentence) texts.insert(value.get<std::string>());
  if (value.is_array())
    for (const json& item : value) collect(item, texts);
  if (value.is_object())
    for (const auto& [key, item] : value.items())
      if (!is_name(key)) collect(item, texts);
}

void translate(json& value, const Phrases& phrases) {
  if (value.is_string()) {
    if (const auto other = phrases.translated(value.get_ref<const std::string&>())) value = *other;
  } else if (value.is_array()) {
    for (json& item : value) translate(item, phrases);
  } else if (value.is_object()) {
    for (const auto& [key, item] : value.items())
      if (!is_name(key)) translate(item, phrases);
  }
}

}  // namespace

const json& report_words(std::string_view language) {
  static const json english = json::parse(embedded::report_words_json);
  static const json chinese = json::parse(embedded::report_words_zh_json);
  if (language == "en") return english;
  if (language == "zh") return chinese;
  fail(ErrorKind::InvalidArgument, "a page can be in en or zh, not in '", language, "'");
}

Phrases::Phrases(const json& from, const json& to) {
  const json& ours = member(from, "said");
  const json& theirs = member(to, "said");
  if (&from == &to || !ours.is_object()) return;
  for (const auto& [key, sentence] : ours.items()) {
    const std::string other = text(theirs, key);
    if (!other.empty()) sentences_.push_back({parsed(text(sentence)), parsed(other)});
  }
  // The one with the most words of its own fits first.
  const auto own = [](const Sentence& sentence) {
    size_t size = 0;
    for (const std::string& part : sentence.ours.between) size += part.size();
    return size;
  };
  std::ranges::stable_sort(sentences_, std::ranges::greater(), own);
}

Phrases::Form Phrases::parsed(const std::string& sentence) {
  Form form{{""}, {}};
  for (size_t at = 0; at < sentence.size();) {
    const size_t end = sentence[at] == '{' ? sentence.find('}', at) : std::string::npos;
    if (end == std::string::npos) {
      form.between.back() += sentence[at++];
      continue;
    }
    Mark mark{sentence.substr(at + 1, end - at - 1)};
    if (std::string_view("#@*").find(mark.name.back()) != std::string_view::npos) {
      mark.kind = mark.name.back();
      mark.name.pop_back();
    }
    form.marks.push_back(std::move(mark));
    form.between.emplace_back();
    at = end + 1;
  }
  return form;
}

std::optional<std::string> Phrases::translated(std::string_view text, int depth) const {
  if (text.empty() || text.size() > longest_sentence || depth > deepest) return std::nullopt;
  for (const Sentence& sentence : sentences_) {
    if (auto found = fitted(sentence, text, depth)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> Phrases::fitted(const Sentence& sentence, std::string_view text, int depth) const {
  const auto& [between, marks] = sentence.ours;
  if (!text.starts_with(between[0]) || !text.ends_with(between.back())) return std::nullopt;
  if (marks.empty() && text != between[0]) return std::nullopt;
  const size_t last = text.size() - between.back().size();
  size_t at = between[0].size();
  std::map<std::string, std::string> told;
  for (size_t i = 0; i < marks.size(); ++i) {
    const size_t stop = i + 1 == marks.size() ? last : text.find(between[i + 1], at + 1);
    if (stop == std::string_view::npos || stop > last || stop <= at) return std::nullopt;
    std::string value(text.substr(at, stop - at));
    if ((marks[i].kind == '#' && !is_number(value)) || (marks[i].kind == '@' && !is_word(value))) return std::nullopt;
    if (marks[i].kind == '*') {
      auto inner = translated(value, depth + 1);
      if (!inner) return std::nullopt;
      value = std::move(*inner);
    }
    told[marks[i].name] = std::move(value);
    at = stop + between[i + 1].size();
  }
  std::string out = sentence.theirs.between[0];
  for (size_t i = 0; i < sentence.theirs.marks.size(); ++i) out += told[sentence.theirs.marks[i].name] + sentence.theirs.between[i + 1];
  return out;
}

json spoken_head(const json& data, const Phrases& phrases) {
  json head = json::object();
  if (!data.is_object()) return head;
  const auto is_part = [](const std::string& key) {
    return key == "graph" || std::ranges::find(report_parts, key) != std::end(report_parts);
  };
  for (const auto& [key, value] : data.items()) {
    if (!is_part(key)) head[key] = value;
    else if (value.is_structured()) head[key] = json::object();
  }
  translate(head, phrases);
  return head;
}

json spoken_words(const json& data, const json& words, const Phrases& phrases) {
  std::set<std::string> texts;
  collect(data, texts);
  for (const json* category : items(member(data, "scan"), "categories")) texts.insert(text(*category, "name"));
  const json& categories = member(member(data, "graph"), "category");
  if (categories.is_array())
    for (const json& category : categories) texts.insert(text(category));
  json said = json::object();
  for (const std::string& each : texts) {
    if (const auto other = phrases.translated(each)) said[each] = *other;
  }
  return {{"lang", member(words, "lang")}, {"script", member(words, "script")}, {"said", std::move(said)}};
}

}  // namespace unmoor
