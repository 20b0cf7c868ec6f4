#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "unmoor/catalog/facts.h"

namespace unmoor {

// What a file of ATen operators says of one overload: "aten::add" and its entry, "Tensor". `dtypes` are those of the tensors it
// is called with: one of them must be among the types that are listed.
CatalogAnswer answer_of_overload(const Facts& facts, const nlohmann::json& entry, const std::string& function,
                                 const std::vector<AskedValue>& tensors);

}  // namespace unmoor
