#include "unmoor/catalog/aten.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

}  // namespace

CatalogAnswer answer_of_overload(const Facts& facts, const json& entry, const std::string& function,
                                 const std::vector<AskedValue>& tensors) {
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
    const auto fits = [&](const AskedValue& value) {
      return value.dtype.empty() || std::ranges::find(*types, value.dtype) != types->end();
    };
    const bool any_known =
        std::ranges::any_of(tensors, [](const AskedValue& value) { return value.present && !value.dtype.empty(); });
    if (any_known && std::ranges::none_of(tensors, [&](const AskedValue& value) { return value.present && fits(value); })) {
      return {Claim::Unsupported, "dtype", fmt::format("{} does not take {}", function, tensors.at(0).dtype), facts.source(0)};
    }
  }
  return {Claim::Native, "", detail, facts.source(0)};
}

}  // namespace unmoor
