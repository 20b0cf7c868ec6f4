#include "unmoor/ops/cases.h"

#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/case_text.h"
#include "unmoor/ops/case_values.h"

namespace unmoor {
namespace {

constexpr size_t most_cases = 4096;  // Alternatives multiply.

// True where `T` stands for a dtype: "T[2,3]", "value=T[1]", "to=T".
bool stands_for_dtype(std::string_view part) { return part == "T" || part.starts_with("T["); }

std::string with_dtype(const std::string& word, DType dtype) {
  const bool attribute = is_attribute_word(word);
  const size_t at = attribute ? word.find('=') + 1 : 0;
  if (!stands_for_dtype(std::string_view(word).substr(at))) return word;
  return cat(std::string_view(word).substr(0, at), short_name(dtype), std::string_view(word).substr(at + 1));
}

// Every way to choose one alternative for each attribute.
std::vector<std::vector<std::string>> choices(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> all(1);
  for (const auto& word : words) {
    std::vector<std::string> alternatives{word};
    if (is_attribute_word(word)) {
      const size_t at = word.find('=') + 1;
      alternatives = items_of(std::string_view(word).substr(at));
      for (auto& alternative : alternatives) alternative = cat(std::string_view(word).substr(0, at), alternative);
    }
    if (all.size() * alternatives.size() > most_cases) {
      fail(ErrorKind::InvalidArgument, "more than ", most_cases, " cases come from one text, at '", word, "'");
    }
    std::vector<std::vector<std::string>> next;
    for (const auto& chosen : all) {
      for (const auto& alternative : alternatives) {
        next.push_back(chosen);
        next.back().push_back(alternative);
      }
    }
    all = std::move(next);
  }
  return all;
}

const Port* port_of(const Op& op, size_t input) {
  if (op.inputs.empty()) return nullptr;
  return &op.inputs[std::min(input, op.inputs.size() - 1)];
}

// The dtypes that `T` can take in these words; one arbitrary dtype if no word has a `T`.
std::vector<DType> dtypes_of(const Op& op, const std::vector<std::string>& words, const std::vector<DType>& wanted) {
  bool any = false;
  const Port* port = nullptr;
  size_t input = 0;
  for (const auto& word : words) {
    const bool attribute = is_attribute_word(word);
    if (stands_for_dtype(attribute ? std::string_view(word).substr(word.find('=') + 1) : std::string_view(word))) {
      any = true;
      if (!attribute && port == nullptr) port = port_of(op, input);
    }
    if (!attribute) ++input;
  }
  if (!any) return {DType::F32};
  std::vector<DType> dtypes;
  for (const DType dtype : wanted) {
    if (port == nullptr || port->dtypes.empty() || std::ranges::count(port->dtypes, dtype) > 0) dtypes.push_back(dtype);
  }
  return dtypes;
}

Case concrete(std::string_view op_name, const Op* op, const std::vector<std::string>& words) {
  Case result;
  result.op = op_name;
  result.text = op_name;
  for (const auto& word : words) {
    result.text = cat(result.text, " ", word);
    if (!is_attribute_word(word)) {
      result.inputs.push_back(parse_input(word));
      continue;
    }
    const size_t at = word.find('=');
    const std::string key = word.substr(0, at);
    const auto found = op == nullptr ? Attributes::const_iterator() : op->attributes.find(key);
    const Attribute* like = op == nullptr || found == op->attributes.end() ? nullptr : &found->second;
    const Attribute value = parse_attribute_value(std::string_view(word).substr(at + 1), like);
    if (key != "outputs") {
      result.attributes[key] = value;
      continue;
    }
    const auto* count = std::get_if<int64_t>(&value);
    if (count == nullptr || *count < 1 || *count > 64)
      fail(ErrorKind::InvalidArgument, "'", word, "' is not between 1 and 64 outputs");
    result.outputs = static_cast<size_t>(*count);
  }
  return result;
}

// False if an integer input is given a fraction.
bool holds_its_values(const Case& a_case) {
  for (const auto& input : a_case.inputs) {
    const bool fraction = std::ranges::any_of(input.values, [](double value) { return value != std::floor(value); });
    if (fraction && !is_float(input.type.dtype)) return false;
  }
  return true;
}

// FNV-1a.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

ValueId add_case_input(CaseGraph& result, const Case& a_case, size_t i) {
  const auto& input = a_case.inputs[i];
  if (!input.present) return no_value;
  const Op* op = all_ops().find(a_case.op);
  const bool named = op != nullptr && i < op->inputs.size() && op->inputs[i].arity != Arity::Variadic;
  const std::string value_name = named ? op->inputs[i].name : cat("in", i);
  if (input.key) {
    const ValueId id = result.graph.add_input(value_name, map_type(input));
    result.inputs.emplace_back(make_map(input));
    return id;
  }
  Tensor tensor = make_input(input, hash_of(a_case.text) + i);
  if (input.constant) return result.graph.add_constant(value_name, std::move(tensor));
  const ValueId id = result.graph.add_input(value_name, tensor.type());
  result.inputs.emplace_back(std::move(tensor));
  return id;
}

}  // namespace

std::vector<Case> cases_of(const Op& op, const std::vector<DType>& dtypes) {
  std::vector<Case> cases;
  for (const auto& text : op.cases) {
    try {
      const auto words = words_of(text);
      for (const DType dtype : dtypes_of(op, words, dtypes)) {
        for (auto chosen : choices(words)) {
          for (auto& word : chosen) word = with_dtype(word, dtype);
          Case a_case = concrete(op.name, &op, chosen);
          if (holds_its_values(a_case)) cases.push_back(std::move(a_case));
        }
      }
    } catch (const Error& error) {
      fail(ErrorKind::Internal, error.what(), "\n  in case '", text, "' of ", op.name);
    }
  }
  return cases;
}

Case parse_case(std::string_view text) {
  auto words = words_of(text);
  if (words.empty()) fail(ErrorKind::InvalidArgument, "a case needs an operator's name first, as in Softmax f32[2,17,3] axis=1");
  const std::string op_name = words[0];
  words.erase(words.begin());
  for (const auto& word : words) {
    if (is_attribute_word(word) && items_of(word).size() > 1) {
      fail(ErrorKind::InvalidArgument, "'", word, "' has alternatives, where one case is wanted");
    }
  }
  Case a_case = concrete(op_name, all_ops().find(op_name), words);
  if (!holds_its_values(a_case)) fail(ErrorKind::InvalidArgument, "'", text, "' gives a fraction to an integer input");
  return a_case;
}

CaseGraph build_case(const Case& a_case) {
  CaseGraph result;
  Node node;
  node.name = a_case.op;
  node.op = a_case.op;
  node.attributes = a_case.attributes;
  node.origin.name = a_case.op;
  for (size_t i = 0; i < a_case.inputs.size(); ++i) node.inputs.push_back(add_case_input(result, a_case, i));
  for (size_t i = 0; i < a_case.outputs; ++i) {
    Value value;
    value.name = value.origin.name = a_case.outputs == 1 ? std::string("out") : cat("out", i);
    value.type = TensorType{DType::F32, Shape::of_unknown_rank()};
    node.outputs.push_back(result.graph.add_value(std::move(value)));
  }
  const auto types = infer_outputs(call_for(result.graph, node));
  for (size_t i = 0; i < a_case.outputs; ++i) {
    if (i >= types.size())
      fail(ErrorKind::InvalidArgument, "case '", a_case.text, "' wants ", a_case.outputs, " outputs, not ", types.size());
    result.graph.set_type(node.outputs[i], types[i]);
    result.graph.mark_output(node.outputs[i], result.graph.value(node.outputs[i]).name);
  }
  result.graph.add_node(std::move(node));
  return result;
}

}  // namespace unmoor
