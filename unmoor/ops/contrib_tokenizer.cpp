#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/text.h"

namespace unmoor {
namespace {

using Tokens = std::vector<std::string>;

// How a text is cut: at separators, into what an expression matches, or into characters. Matches are as long as they can be.
struct Rules {
  std::vector<std::unique_ptr<RE2>> separators = {};
  std::unique_ptr<RE2> token = nullptr;
  size_t shortest = 1;  // In characters.
  bool marks = false;
  std::string pad = {};
};

std::unique_ptr<RE2> compiled(const OpCall& call, const std::string& pattern) {
  RE2::Options options;
  options.set_longest_match(true);
  options.set_log_errors(false);
  auto expression = std::make_unique<RE2>(pattern, options);
  if (!expression->ok()) fail(ErrorKind::InvalidModel, title(call), ": the pattern '", pattern, "': ", expression->error());
  return expression;
}

Rules rules_of(const OpCall& call) {
  for (const char* key : {"mark", "mincharnum", "pad_value"}) {
    if (!call.has_attribute(key)) fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' is missing");
  }
  Rules rules;
  rules.marks = call.integer("mark", 0) != 0;
  rules.pad = call.text("pad_value", "");
  const int64_t shortest = call.integer("mincharnum", 1);
  if (shortest < 1) fail(ErrorKind::InvalidModel, title(call), ": mincharnum is ", shortest);
  rules.shortest = static_cast<size_t>(shortest);
  const Tokens separators = call.texts("separators");
  const std::string token = call.text("tokenexp", "");
  if (separators.empty() == token.empty())
    fail(ErrorKind::InvalidModel, title(call), ": one of 'separators' and 'tokenexp' must be set");
  if (separators == Tokens{""} || token == ".") {  // Into characters, line ends too.
    if (rules.shortest > 1) {
      fail(ErrorKind::InvalidModel, title(call), ": mincharnum is ", shortest, ", but tokens are single characters");
    }
    return rules;
  }
  if (!token.empty()) rules.token = compiled(call, token);
  for (const std::string& each : separators) {
    if (each.empty()) fail(ErrorKind::InvalidModel, title(call), ": an empty separator stands among others");
    rules.separators.push_back(compiled(call, each));
  }
  return rules;
}

size_t character_bytes(std::string_view text, size_t at) {
  size_t bytes = 1;
  while (at + bytes < text.size() && (static_cast<unsigned char>(text[at + bytes]) & 0xC0U) == 0x80U) ++bytes;
  return bytes;
}

// The first match at or after `from`: where it is and how long, or nothing.
struct Found {
  size_t at;
  size_t size;
};
std::optional<Found> find(const RE2& expression, std::string_view text, size_t from) {
  re2::StringPiece match;
  const re2::StringPiece whole(text.data(), text.size());
  if (!expression.Match(whole, from, text.size(), RE2::UNANCHORED, &match, 1)) return std::nullopt;
  return Found{static_cast<size_t>(match.data() - text.data()), match.size()};
}

void keep(const Rules& rules, Tokens& tokens, std::string_view token) {
  if (!token.empty() && code_points(token).size() >= rules.shortest) tokens.emplace_back(token);
}

// What is left between the matches of one separator.
void cut(const Rules& rules, const RE2& separator, std::string_view text, Tokens& tokens) {
  size_t from = 0;
  while (from <= text.size()) {
    const auto found = find(separator, text, from);
    if (!found) break;
    keep(rules, tokens, text.substr(from, found->at - from));
    from = found->at + (found->size > 0 ? found->size : character_bytes(text, found->at));
  }
  if (from < text.size()) keep(rules, tokens, text.substr(from));
}

// A match that is too short is looked for again one character on.
Tokens matches(const Rules& rules, std::string_view text) {
  Tokens tokens;
  size_t from = 0;
  while (from < text.size()) {
    const auto found = find(*rules.token, text, from);
    if (!found || found->at >= text.size()) break;
    const size_t before = tokens.size();
    keep(rules, tokens, text.substr(found->at, found->size));
    from = found->at + (tokens.size() > before ? found->size : character_bytes(text, found->at));
  }
  return tokens;
}

Tokens tokens_of(const Rules& rules, const std::string& text) {
  code_points(text);  // Only UTF-8 can be cut.
  if (rules.token != nullptr) return matches(rules, text);
  Tokens tokens;
  if (rules.separators.empty()) {
    for (size_t at = 0; at < text.size(); at += character_bytes(text, at))
      tokens.push_back(text.substr(at, character_bytes(text, at)));
    return tokens;
  }
  tokens = {text};
  for (const auto& separator : rules.separators) {
    Tokens parts;
    for (const std::string& token : tokens) cut(rules, *separator, token, parts);
    tokens = std::move(parts);
  }
  return tokens;
}

std::vector<Type> infer_tokenizer(const OpCall& call) {
  rules_of(call);
  Shape shape = call.input(0).shape;
  if (!shape.has_rank()) return {TensorType{DType::String, shape}};
  if (shape.rank() != 1 && shape.rank() != 2)
    fail(ErrorKind::InvalidModel, title(call), ": the input has shape ", shape, ", not [C] or [N,C]");
  // Of nothing no axis is added.
  const bool known = shape.is_known();
  if (known && shape.elements() == 0) return {TensorType{DType::String, shape}};
  if (!known) return {TensorType{DType::String, Shape::of_unknown_rank()}};
  shape.push_back(Shape::unknown);
  return {TensorType{DType::String, std::move(shape)}};
}

void run_tokenizer(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Rules rules = rules_of(call);
  const Tensor& x = in[0].tensor();
  Shape shape = x.shape();
  std::vector<Tokens> all;
  size_t width = 0;
  for (const std::string& text : x.strings()) {
    all.push_back(tokens_of(rules, text));
    width = std::max(width, all.back().size());
  }
  const size_t columns = width == 0 ? 0 : width + (rules.marks ? 2 : 0);
  if (!all.empty()) shape.push_back(static_cast<int64_t>(columns));
  auto& texts = out.allocate(0, {DType::String, std::move(shape)}).writable_strings();
  for (size_t i = 0; i < all.size() && columns > 0; ++i) {
    auto to = texts.begin() + static_cast<std::ptrdiff_t>(i * columns);
    if (rules.marks) *to++ = std::string(1, '\x02');
    to = std::ranges::move(all[i], to).out;
    to = std::fill_n(to, width - all[i].size(), rules.pad);
    if (rules.marks) *to = std::string(1, '\x03');
  }
}

}  // namespace

void add_contrib_tokenizer(OpSet& ops) {
  Op op;
  op.name = "com.microsoft:Tokenizer";
  op.summary = "Texts cut at separators or into what an expression matches, side by side, filled up with a padding text.";
  op.inputs = {required("X", {DType::String})};
  op.outputs = {required("Y", {DType::String})};
  op.attributes = {{"mark", int64_t{0}},
                   {"mincharnum", int64_t{1}},
                   {"pad_value", std::string()},
                   {"separators", std::vector<std::string>()},
                   {"tokenexp", std::string()}};
  op.infer = infer_tokenizer;
  op.reference = run_tokenizer;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Text;
  op.cases = {"string[2]{\"Hello World\",\"I love science !\"} mark=0,1 mincharnum=1 pad_value=# separators=[\" \"]",
              "string[2]{\"a bc  def\",\"\"} mark=0 mincharnum=1,2,3 pad_value=# separators=[\" \"]",
              "string[1,2]{\"a;b,c\",\"d\"} mark=0 mincharnum=1 pad_value=\"\" separators=[\";\",\",\"]",
              "string[2]{abc,\"\xc3\xa9t\xc3\xa9\"} mark=0,1 mincharnum=1 pad_value=# separators=[\"\"]",
              "string[2]{\"one 2 three\",\"four4five\"} mark=0,1 mincharnum=1,4 pad_value=# tokenexp=\"[a-z]+\"",
              "string[2,1]{\"aXbXXc\",\"XX\"} mark=0 mincharnum=1 pad_value=p separators=[\"X+\"]",
              "string[2]{\"\",\" \"} mark=0,1 mincharnum=1 pad_value=# separators=[\" \"]",
              "string[0] mark=0 mincharnum=1 pad_value=# separators=[\" \"]",
              "string[2,0] mark=1 mincharnum=1 pad_value=# tokenexp=\".\"",
              "string[1]{abcabc} mark=0 mincharnum=1 pad_value=# tokenexp=\"a|ab\"",
              "string[1]{abc} mark=0 mincharnum=1 pad_value=# tokenexp=\"x*\"",
              "string[2,3] mark=0 mincharnum=2 pad_value=# tokenexp=\"\\w+\""};
  ops.add(std::move(op));
}

}  // namespace unmoor
