#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/catalog/catalog.h"

namespace unmoor {

// What a platform says of an operator, with the older file that it differs from counted in and every number of a set or a reason
// replaced by what it stands for. Null JSON if nothing.
nlohmann::json spelled_entry(const Catalog& catalog, const Facts& facts, const std::string& op);
// Every operator that a platform says something about, sorted.
std::vector<std::string> all_listed(const Catalog& catalog, const Facts& facts);

// An operator on which two platforms or versions differ; null JSON where one says nothing.
struct CatalogDifference {
  std::string op;
  std::string kind;  // "only first", "only second", "differs"
};
std::vector<CatalogDifference> differences(const Catalog& catalog, const Facts& first, const Facts& second);

}  // namespace unmoor
