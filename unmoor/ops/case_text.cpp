#include "unmoor/ops/case_text.h"

#include <charconv>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/ops/case_values.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {
namespace {

constexpr int64_t largest_input = int64_t{1} << 28;  // Elements; a case is typed by hand, not a way to fill memory.

// Cuts at `separator` outside of quotes, brackets and braces.
std::vector<std::string> cut(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == separator && !quoted && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (quoted || depth != 0) fail(ErrorKind::InvalidArgument, "in '", text, "' a quote, bracket or brace is not closed");
  return parts;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return std::string(text);
}

Shape parse_shape(std::string_view text, std::string_view word) {
  Shape shape;
  if (text.empty()) return shape;
  for (const auto& item : items_of(text)) {
    const auto dim = number<int64_t>(item);
    if (!dim || *dim < 0) fail(ErrorKind::InvalidArgument, "in '", word, "' the dimension '", item, "' is not a number");
    shape.push_back(*dim);
  }
  if (shape.rank() > 16 || shape.elements() > largest_input) {
    fail(ErrorKind::InvalidArgument, "in '", word, "' shape ", shape, " has more than 16 dimensions or ", largest_input,
         " elements");
  }
  return shape;
}

void parse_values(Case::Input& input, std::string_view text, std::string_view word) {
  const std::vector<std::string> items = text.empty() ? std::vector<std::string>() : items_of(text);
  for (const auto& item : items) {
    if (input.type.dtype == DType::String) {
      input.texts.push_back(unquoted(item));
      continue;
    }
    const auto value = item == "true" ? std::optional(1.0) : item == "false" ? std::optional(0.0) : number<double>(item);
    if (!value) fail(ErrorKind::InvalidArgument, "in '", word, "' the value '", item, "' is not a number");
    input.values.push_back(*value);
  }
  if (static_cast<int64_t>(items.size()) != input.type.shape.elements()) {
    fail(ErrorKind::InvalidArgument, "'", word, "' gives ", items.size(), " values for ", input.type.shape.elements(),
         " elements");
  }
  input.constant = true;
}

// Removes and returns the leading "[…]" or "{…}" of `rest`, without its brackets.
std::string_view take_block(std::string_view& rest, char close, std::string_view word) {
  const size_t end = rest.find(close);
  if (end == std::string_view::npos) fail(ErrorKind::InvalidArgument, "in '", word, "' a '", close, "' is missing");
  const auto inside = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  return inside;
}

// "i64->f32{3:1.5,1:2}".
Case::Input parse_map(std::string_view word) {
  const size_t arrow = word.find("->");
  const size_t brace = word.find('{');
  const auto key = dtype_named(word.substr(0, arrow));
  const auto value = brace == std::string_view::npos || brace < arrow + 2 ? std::nullopt : dtype_named(word.substr(arrow + 2, brace - arrow - 2));
  if (!key || !value || !word.ends_with('}') || (*key != DType::I64 && *key != DType::String)) {
    fail(ErrorKind::InvalidArgument, "'", word, "' is no map such as i64->f32{3:1.5} or string->i64{a:1}");
  }
  const std::string_view inside = word.substr(brace + 1, word.size() - brace - 2);
  const std::vector<std::string> entries = inside.empty() ? std::vector<std::string>() : items_of(inside);
  std::string values;
  Case::Input input;
  for (const std::string& entry : entries) {
    const std::vector<std::string> parts = cut(entry, ':');
    if (parts.size() != 2) fail(ErrorKind::InvalidArgument, "in '", word, "' the entry '", entry, "' is not key:value");
    input.keys.push_back(unquoted(parts[0]));
    values += cat(values.empty() ? "" : ",", parts[1]);
  }
  input.key = key;
  input.type = TensorType{*value, Shape{static_cast<int64_t>(entries.size())}};
  parse_values(input, values, word);
  input.constant = false;
  return input;
}

std::optional<Tensor> parse_tensor(std::string_view value) {
  const size_t bracket = value.find('[');
  if (bracket == std::string_view::npos || bracket == 0 || !dtype_named(value.substr(0, bracket))) return std::nullopt;
  return make_input(parse_input(value), 0);
}

// A body of one input and output, through a chain of operators: "Tanh,Neg".
SubGraph parse_graph(std::string_view inside) {
  Graph graph;
  ValueId value = graph.add_input("x", TensorType{DType::F32, Shape::of_unknown_rank()});
  for (const auto& op : inside.empty() ? std::vector<std::string>() : items_of(inside)) {
    Node node;
    node.name = node.op = op;
    node.inputs = {value};
    value = graph.add_value(Value{cat(op, graph.values().size()), TensorType{DType::F32, Shape::of_unknown_rank()}, {}, {}});
    node.outputs = {value};
    graph.add_node(std::move(node));
  }
  graph.mark_output(value, "y");
  return std::make_shared<const Graph>(std::move(graph));
}

Attribute parse_list(std::string_view inside, const Attribute* like) {
  const std::vector<std::string> items = inside.empty() ? std::vector<std::string>() : items_of(inside);
  const bool wants_floats = like != nullptr && std::holds_alternative<std::vector<float>>(*like);
  const bool wants_texts = like != nullptr && std::holds_alternative<std::vector<std::string>>(*like);
  std::vector<int64_t> whole;
  std::vector<float> real;
  std::vector<std::string> texts;
  for (const auto& item : items) {
    if (const auto value = number<int64_t>(item)) whole.push_back(*value);
    if (const auto value = number<float>(item)) real.push_back(*value);
    texts.push_back(unquoted(item));
  }
  if (!wants_floats && !wants_texts && whole.size() == items.size()) return whole;
  if (!wants_texts && real.size() == items.size()) return real;
  return texts;
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words = cut(text, ' ');
  std::erase(words, std::string());
  return words;
}

std::vector<std::string> items_of(std::string_view text) { return cut(text, ','); }

bool is_attribute_word(std::string_view word) {
  return word.substr(0, word.find_first_of("[{\"")).find('=') != std::string_view::npos;
}

Case::Input parse_input(std::string_view word) {
  Case::Input input;
  if (word == "-") {
    input.present = false;
    return input;
  }
  const size_t bracket = std::min(word.find('['), word.size());
  if (word.substr(0, bracket).find("->") != std::string_view::npos) return parse_map(word);
  const auto dtype = dtype_named(word.substr(0, bracket));
  if (!dtype || bracket == word.size()) {
    fail(ErrorKind::InvalidArgument, "'", word, "' is no input such as f32[2,3]: a dtype and a shape in brackets");
  }
  auto rest = word.substr(bracket);
  input.type = TensorType{*dtype, parse_shape(take_block(rest, ']', word), word)};
  if (rest.starts_with('{')) parse_values(input, take_block(rest, '}', word), word);
  // "!" and "~generator", in any order.
  while (!rest.empty()) {
    if (rest.front() == '!') {
      input.constant = true;
      rest.remove_prefix(1);
    } else if (rest.front() == '~') {
      input.generator = std::string(rest.substr(1, rest.find('!') - 1));
      rest.remove_prefix(1 + input.generator.size());
    } else {
      fail(ErrorKind::InvalidArgument, "in '", word, "' the end '", rest, "' makes no sense");
    }
  }
  return input;
}

Attribute parse_attribute_value(std::string_view value, const Attribute* like) {
  if (value.starts_with('[') && value.ends_with(']')) return parse_list(value.substr(1, value.size() - 2), like);
  if (value.starts_with("graph[") && value.ends_with(']')) return parse_graph(value.substr(6, value.size() - 7));
  if (value.starts_with('"')) return unquoted(value);
  const bool wants_float = like != nullptr && std::holds_alternative<float>(*like);
  if (const auto whole = number<int64_t>(value)) {
    if (wants_float) return static_cast<float>(*whole);
    return *whole;
  }
  if (like != nullptr && std::holds_alternative<std::string>(*like)) return std::string(value);
  if (const auto dtype = dtype_named(value)) return onnx_number(*dtype);
  if (auto tensor = parse_tensor(value)) return std::move(*tensor);
  if (const auto real = number<float>(value)) return *real;
  return std::string(value);
}

}  // namespace unmoor
