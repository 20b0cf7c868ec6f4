#include "unmoor/catalog/aten.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace unmoor {
namespace {

using nlohmann::json;

Claim claim_of(const std::string& text) {
  for (const Claim claim : {Claim::Native, Claim::Constrained, Claim::Fallback, Claim::Unsupported}) {
    if (text == name(claim)) return claim;
  }
  return Claim::Unknown;
}

template <class T>
const std::string* at(const std::vector<T>& list, const json& value, size_t place) {
  if (!value.is_array() || value.size() <= place || !value[place].is_number_unsigned()) return nullptr;
  const auto index = value[place].get<size_t>();
  return index < list.size() ? &list[index] : nullptr;
}

const std::vector<std::string>* types_at(const Facts& facts, const json& value) {
  if (!value.is_array() || value.size() < 3 || !value[2].is_number_unsigned()) return nullptr;
  const auto index = value[2].get<size_t>();
  return index < facts.types().size() ? &facts.types()[index] : nullptr;
}

// The element type that a list of types is about: that of the data, not of an index, a mask or a condition beside it. Of floating
// tensors, if there are any, that of the result, else the first. Empty if it is not known.
std::string data_dtype(const CatalogQuestion& question) {
  const auto is_floating = [](const AskedValue& value) {
    return value.dtype.starts_with("float") || value.dtype.starts_with("bfloat") || value.dtype.starts_with("complex");
  };
  const bool any_floating = std::ranges::any_of(question.inputs, is_floating);
  std::string first;
  for (const AskedValue& value : question.inputs) {
    if (!value.present || value.dtype.empty() || (any_floating && !is_floating(value))) continue;
    if (!question.outputs.empty() && value.dtype == question.outputs[0].dtype) return value.dtype;
    if (first.empty()) first = value.dtype;
  }
  return first;
}

}  // namespace

namespace {

// All overloads that a model can call, where nobody wrote which: answers that differ are one condition.
CatalogAnswer answer_of_any(const Facts& facts, const json& entry, const CatalogQuestion& question, CallRole role) {
  const std::string base = question.op.substr(0, question.op.size() - 2);
  std::optional<CatalogAnswer> first;
  std::string listed;
  bool differ = false;
  for (const auto& [overload, answer] : entry.items()) {
    if (overload.find("dimname") != std::string::npos || overload == "out" || overload.ends_with("_out")) continue;
    CatalogQuestion each = question;
    each.op = overload.empty() ? base : fmt::format("{}.{}", base, overload);
    CatalogAnswer found = answer_of_overload(facts, entry, each, role);
    listed += fmt::format("{}{} {}", listed.empty() ? "" : ", ", each.op, name(found.claim));
    if (!first) first = std::move(found);
    else differ = differ || found.claim != first->claim;
  }
  if (!first) return {Claim::Unknown, "no-kernel", fmt::format("{}: no overload is listed", base), facts.source(0)};
  if (differ) return {Claim::Constrained, "attribute", fmt::format("its arguments decide: {}", listed), first->source};
  return *std::move(first);
}

}  // namespace

CatalogAnswer answer_of_overload(const Facts& facts, const json& entry, const CatalogQuestion& question, CallRole role) {
  if (question.op.ends_with(".*") && entry.is_object()) return answer_of_any(facts, entry, question, role);
  const std::string& function = question.op;
  const size_t dot = function.find('.');
  const std::string overload = dot == std::string::npos ? "" : function.substr(dot + 1);
  const auto found = entry.is_object() ? entry.find(overload) : entry.end();
  if (!entry.is_object() || found == entry.end() || !found->is_array() || found->empty() || !(*found)[0].is_string()) {
    return {Claim::Unknown, "no-kernel", fmt::format("{}: not among the overloads listed", function), facts.source(0)};
  }
  const Claim claim = claim_of((*found)[0].get<std::string>());
  const std::string* const why = at(facts.reasons(), *found, 1);
  const std::string detail = why == nullptr ? function : fmt::format("{}: {}", function, *why);
  if (claim != Claim::Native) return {claim, claim == Claim::Constrained ? "attribute" : "no-kernel", detail, facts.source(0)};
  if (const auto* types = types_at(facts, *found)) {
    const auto listed = [&](const std::string& dtype) { return std::ranges::find(*types, dtype) != types->end(); };
    const std::string dtype = data_dtype(question);
    if (!dtype.empty() && !listed(dtype)) {
      const auto other = std::ranges::find_if(question.inputs, [&](const AskedValue& value) { return value.present && listed(value.dtype); });
      if (role == CallRole::Part && other != question.inputs.end())
        return {Claim::Constrained, "dtype",
                fmt::format("{} takes {}, not {}; with which of them it is called here is not told", function, other->dtype, dtype),
                facts.source(0)};
      return {Claim::Unsupported, "dtype", fmt::format("{} does not take {}", function, dtype), facts.source(0)};
    }
  }
  return {Claim::Native, "", detail, facts.source(0)};
}

}  // namespace unmoor
