#include "unmoor/catalog/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace unmoor {
namespace {

using nlohmann::json;

// A refusal, or a condition that cannot be told here; neither if `reason` is empty.
struct Objection {
  bool refuses = false;
  std::string reason = {};
  std::string detail = {};
};

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> texts_at(const json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const json& each : *found) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

std::optional<int64_t> number_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? std::optional(found->get<int64_t>()) : std::nullopt;
}

std::string joined(const std::vector<std::string>& texts) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t i = 0; i < texts.size() && i < most; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", texts[i]);
  return texts.size() > most ? fmt::format("{} and {} more", text, texts.size() - most) : text;
}

bool holds(const std::vector<std::string>& texts, std::string_view text) { return std::ranges::find(texts, text) != texts.end(); }

// The types of one side against its constraints: "T T1", the last repeated if it starts with a star.
Objection type_objection(const Facts& facts, const json& kernel, const std::vector<AskedValue>& values, const char* side) {
  const auto dtypes = kernel.find("dtypes");
  const std::vector<std::string> constraints = texts_at(kernel, side);
  if (dtypes == kernel.end() || !dtypes->is_object() || constraints.empty()) return {};
  for (size_t i = 0; i < values.size(); ++i) {
    const bool repeats = constraints.back().starts_with('*');
    if (!values[i].present || values[i].dtype.empty() || (i >= constraints.size() && !repeats)) continue;
    std::string constraint = constraints[std::min(i, constraints.size() - 1)];
    if (constraint.starts_with('*')) constraint.erase(0, 1);
    const auto set = number_at(*dtypes, constraint.c_str());
    if (!set || *set < 0 || static_cast<size_t>(*set) >= facts.types().size()) continue;
    const auto& allowed = facts.types()[static_cast<size_t>(*set)];
    if (holds(allowed, values[i].dtype)) continue;
    return {true, "dtype",
            fmt::format("{} is {}; it takes {}", fmt::format("{} {}", side[0] == 'i' ? "input" : "output", i), values[i].dtype,
                        joined(allowed))};
  }
  return {};
}

bool all_are(const std::string& list, const std::string& value) {
  std::string item;
  for (const char c : list + ",") {
    if (c == '[' || c == ']' || c == ' ') continue;
    if (c != ',') {
      item += c;
      continue;
    }
    if (!item.empty() && item != value) return false;
    item.clear();
  }
  return true;
}

Objection attribute_objection(const json& limit, const CatalogQuestion& question) {
  const std::string key = text_at(limit, "attribute");
  const auto found = question.attributes.find(key);
  if (found == question.attributes.end()) {
    if (limit.contains("required")) return {true, "attribute", fmt::format("{} must be {}", key, joined(texts_at(limit, "is")))};
    return {};
  }
  const std::string& value = found->second;
  if (const std::string all = text_at(limit, "all"); !all.empty() && !all_are(value, all)) {
    return {true, "attribute", fmt::format("{} is {}; all must be {}", key, value, all)};
  }
  if (const auto allowed = texts_at(limit, "is"); !allowed.empty() && !holds(allowed, value)) {
    return {true, "attribute", fmt::format("{} is {}; it takes {}", key, value, joined(allowed))};
  }
  if (holds(texts_at(limit, "not"), value)) return {true, "attribute", fmt::format("{} must not be {}", key, value)};
  return {};
}

Objection rank_objection(const json& range, const CatalogQuestion& question) {
  if (!range.is_array() || range.size() != 2 || !range[0].is_number_integer() || !range[1].is_number_integer()) return {};
  const int least = range[0].get<int>();
  const int most = range[1].get<int>();
  const std::string wanted = least == most ? fmt::format("rank {}", least) : fmt::format("rank {} to {}", least, most);
  const int rank = question.inputs.empty() ? -1 : question.inputs[0].rank;
  if (rank < 0) return {false, "rank", fmt::format("only {}", wanted)};
  return rank < least || rank > most ? Objection{true, "rank", fmt::format("input 0 has rank {}; it takes {}", rank, wanted)}
                                     : Objection{};
}

Objection constant_objection(const json& which, const CatalogQuestion& question) {
  const auto objection = [&](size_t i) {
    const bool is_open = i < question.inputs.size() && question.inputs[i].present && !question.inputs[i].constant;
    return is_open ? Objection{true, "dynamic", fmt::format("input {} must be a constant", i)} : Objection{};
  };
  if (which.is_string()) {
    for (size_t i = which == "from 1" ? 1 : 0; i < question.inputs.size(); ++i) {
      if (auto found = objection(i); found.refuses) return found;
    }
    return {};
  }
  for (const json& each : which) {
    if (!each.is_number_unsigned()) continue;
    if (auto found = objection(each.get<size_t>()); found.refuses) return found;
  }
  return {};
}

Objection input_objection(const json& limit, const CatalogQuestion& question) {
  const auto input = number_at(limit, "input");
  if (!input || *input < 0 || static_cast<size_t>(*input) >= question.inputs.size()) return {};
  const std::string& dtype = question.inputs[static_cast<size_t>(*input)].dtype;
  if (dtype.empty()) return {};
  const auto allowed = texts_at(limit, "dtypes");
  if (!allowed.empty() && !holds(allowed, dtype))
    return {true, "dtype", fmt::format("input {} is {}; it takes {}", *input, dtype, joined(allowed))};
  if (holds(texts_at(limit, "not_dtypes"), dtype)) return {true, "dtype", fmt::format("input {} must not be {}", *input, dtype)};
  return {};
}

Objection limit_objection(const json& limit, const CatalogQuestion& question) {
  if (!limit.is_object()) return {};
  if (limit.contains("attribute")) return attribute_objection(limit, question);
  if (limit.contains("rank")) return rank_objection(limit["rank"], question);
  if (limit.contains("constant")) return constant_objection(limit["constant"], question);
  if (limit.contains("input")) return input_objection(limit, question);
  if (const auto output = number_at(limit, "absent_output")) {
    const bool is_wanted = *output >= 0 && static_cast<size_t>(*output) < question.outputs.size() &&
                           question.outputs[static_cast<size_t>(*output)].present;
    return is_wanted ? Objection{true, "attribute", fmt::format("output {} is used; it does not give it", *output)} : Objection{};
  }
  if (limit.contains("static")) {
    const bool is_fixed = std::ranges::all_of(question.inputs, &AskedValue::fixed_shape);
    return is_fixed ? Objection{} : Objection{true, "dynamic", "shapes must be fixed"};
  }
  return {false, "attribute", text_at(limit, "text")};
}

struct Judged {
  CatalogAnswer answer;
  int rank = 0;  // The higher, the better: native over constrained over refused, and of those the one that came furthest.
};

Judged judged(const Facts& facts, const json& kernel, const CatalogQuestion& question) {
  const auto refuse = [&](std::string reason, std::string detail, size_t source, int rank) {
    return Judged{{Claim::Unsupported, std::move(reason), std::move(detail), facts.source(source)}, rank};
  };
  if (text_at(kernel, "state") == "unsupported") {
    Judged refused = refuse("no-kernel", kernel.contains("why") ? text_at(kernel, "why") : "listed as unsupported",
                            static_cast<size_t>(number_at(kernel, "source").value_or(0)), 0);
    refused.answer.as_function = !kernel.contains("no_function");
    return refused;
  }
  const int64_t since = number_at(kernel, "since").value_or(0);
  const int64_t until = number_at(kernel, "until").value_or(0);
  if (question.opset < since || (until > 0 && question.opset > until)) {
    const std::string range = until == 0       ? fmt::format("from opset {} on", since)
                              : since == until ? fmt::format("opset {} only", since)
                                               : fmt::format("opset {} to {}", since, until);
    return refuse("opset", fmt::format("the node has opset {}; the nearest kernel is for {}", question.opset, range), 0, 1);
  }
  for (const char* side : {"in", "out"}) {
    const auto objection = type_objection(facts, kernel, side[0] == 'i' ? question.inputs : question.outputs, side);
    if (objection.refuses) return refuse(objection.reason, objection.detail, 0, 2);
  }
  Judged result{{Claim::Native, "", "", facts.source(0)}, 5};
  if (const auto limits = kernel.find("limits"); limits != kernel.end() && limits->is_array()) {
    for (const json& limit : *limits) {
      const Objection objection = limit_objection(limit, question);
      const auto source = limit.is_object() ? number_at(limit, "source").value_or(0) : 0;
      if (objection.refuses) return refuse(objection.reason, objection.detail, static_cast<size_t>(source), 3);
      if (objection.reason.empty()) continue;
      const bool first = result.answer.claim == Claim::Native;
      result = {{Claim::Constrained, objection.reason,
                 first ? objection.detail : fmt::format("{}; {}", result.answer.detail, objection.detail),
                 facts.source(static_cast<size_t>(source))},
                4};
    }
  }
  return result;
}

}  // namespace

CatalogAnswer answer_of_kernels(const Facts& facts, const json& kernels, const CatalogQuestion& question) {
  Judged best{{Claim::Unknown, "no-kernel", "the catalogue's entry holds no kernel", facts.source(0)}, -1};
  if (!kernels.is_array()) return best.answer;
  for (const json& kernel : kernels) {
    if (!kernel.is_object()) continue;
    Judged each = judged(facts, kernel, question);
    // Of kernels for other opsets, the newest is the nearest: models are newer than lists.
    if (each.rank > best.rank || (each.rank == best.rank && each.rank == 1)) best = std::move(each);
  }
  return best.answer;
}

}  // namespace unmoor
