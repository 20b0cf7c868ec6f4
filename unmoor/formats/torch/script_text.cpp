#include "unmoor/formats/torch/script_text.h"

#include <algorithm>
#include <cctype>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

using Kind = ScriptToken::Kind;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Line {
  size_t indent = 0;
  std::vector<ScriptToken> words = {};
};

// A text in single, double or triple quotes; its length with the quotes.
size_t length_of_text(std::string_view text, const std::string& module) {
  const char quote = text[0];
  const std::string_view triple = text.substr(0, 3);
  const bool is_triple = triple.size() == 3 && triple[1] == quote && triple[2] == quote;
  for (size_t i = is_triple ? 3 : 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (is_triple ? text.substr(i, 3) == triple : text[i] == quote) {
      return i + (is_triple ? 3 : 1);
    }
  }
  fail(ErrorKind::InvalidModel, "the code of ", module, " holds a text that does not end");
}

// Lines with their words; what stands in brackets is one line, comments are left out.
std::vector<Line> lines_of(std::string_view text, const std::string& module) {
  std::vector<Line> lines;
  Line line;
  size_t open = 0;  // Brackets.
  bool at_start = true;
  while (!text.empty()) {
    const char c = text[0];
    size_t length = 1;
    if (c == '\n') {
      if (open == 0 && !line.words.empty()) lines.push_back(std::move(line)), line = {};
      if (open == 0) at_start = true, line.indent = 0;
    } else if (c == ' ') {
      if (at_start) ++line.indent;
    } else if (c == '#') {
      length = std::min(text.find('\n'), text.size());
    } else if (c == '"' || c == '\'') {
      length = length_of_text(text, module);
      line.words.push_back({Kind::Text, text.substr(0, length)});
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {  // 2, 0.5, 1.0000000000000001e-05
      const auto goes_on = [&](size_t i) {
        return is_name(text[i]) || text[i] == '.' || ((text[i] == '-' || text[i] == '+') && (text[i - 1] == 'e' || text[i - 1] == 'E'));
      };
      while (length < text.size() && goes_on(length)) ++length;
      line.words.push_back({Kind::Number, text.substr(0, length)});
    } else if (is_name(c)) {
      while (length < text.size() && is_name(text[length])) ++length;
      line.words.push_back({Kind::Name, text.substr(0, length)});
    } else if (c != '\r' && c != '\t' && c != '\\') {
      if (text.starts_with("->")) length = 2;
      if (c == '(' || c == '[' || c == '{') ++open;
      if ((c == ')' || c == ']' || c == '}') && open > 0) --open;
      line.words.push_back({Kind::Sign, text.substr(0, length)});
    }
    if (c != '\n' && c != ' ') at_start = false;
    text.remove_prefix(length);
  }
  if (!line.words.empty()) lines.push_back(std::move(line));
  return lines;
}

// Words joined as they stand in a type: "Optional[Tensor]".
std::string joined(const std::vector<ScriptToken>& words, size_t from, size_t to) {
  std::string text;
  for (size_t i = from; i < to && i < words.size(); ++i) text += words[i].text;
  return text;
}

// The place of a sign outside of brackets, from a place on; the end if there is none.
size_t find_sign(const std::vector<ScriptToken>& words, std::string_view sign, size_t from, size_t to) {
  size_t open = 0;
  for (size_t i = from; i < to; ++i) {
    if (words[i].kind != Kind::Sign) continue;
    if (open == 0 && words[i].text == sign) return i;
    if (words[i].text == "(" || words[i].text == "[" || words[i].text == "{") ++open;
    if ((words[i].text == ")" || words[i].text == "]" || words[i].text == "}") && open > 0) --open;
  }
  return to;
}

// def name(self: T, x: Tensor, n: int=2) -> Tensor:
ScriptFunction signature(const std::vector<ScriptToken>& words, const std::string& owner) {
  if (words.size() < 5 || words[2].text != "(") fail(ErrorKind::InvalidModel, "the code of ", owner, " holds a function without parameters");
  ScriptFunction function{cat(owner, ".", words[1].text)};
  const size_t close = find_sign(words, ")", 3, words.size());
  for (size_t at = 3; at < close;) {
    const size_t comma = find_sign(words, ",", at, close);
    const size_t colon = find_sign(words, ":", at, comma);
    if (words[at].kind == Kind::Name) function.parameters.push_back({std::string(words[at].text), joined(words, colon + 1, find_sign(words, "=", colon, comma))});
    at = comma + 1;
  }
  const size_t arrow = find_sign(words, "->", close, words.size());
  function.returns = joined(words, arrow + 1, find_sign(words, ":", arrow, words.size()));
  return function;
}

}  // namespace

void read_script(std::string_view text, const std::string& module, ScriptCode& into) {
  ScriptClass* owner = nullptr;
  size_t owner_indent = 0;
  ScriptFunction* function = nullptr;
  size_t function_indent = 0;
  for (Line& line : lines_of(text, module)) {
    if (function != nullptr && line.indent > function_indent) {
      function->lines.push_back(std::move(line.words));
      continue;
    }
    function = nullptr;
    if (owner != nullptr && line.indent <= owner_indent) owner = nullptr;
    const std::string_view first = line.words[0].text;
    if (first == "class" && line.words.size() > 1) {
      const std::string name = cat(module, ".", line.words[1].text);
      owner = &into.classes[name];
      owner->name = name;
      owner_indent = line.indent;
    } else if (first == "def") {
      ScriptFunction made = signature(line.words, owner == nullptr ? module : owner->name);
      std::string path = made.path;
      function = &into.functions.insert_or_assign(std::move(path), std::move(made)).first->second;
      function_indent = line.indent;
    } else if (owner != nullptr && line.words.size() > 2 && line.words[0].kind == Kind::Name && line.words[1].text == ":") {
      owner->attributes[std::string(first)] = joined(line.words, 2, find_sign(line.words, "=", 2, line.words.size()));
    } else if (owner != nullptr && first == "__annotations__" && line.words.size() > 5 && line.words[2].text.size() > 2) {
      const std::string_view quoted = line.words[2].text;  // __annotations__["0"] = T: a name that is none of Python's.
      owner->attributes[std::string(quoted.substr(1, quoted.size() - 2))] = joined(line.words, 5, line.words.size());
    }
  }
}

}  // namespace unmoor
