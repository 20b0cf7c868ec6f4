#pragma once

#include <nlohmann/json_fwd.hpp>

#include "unmoor/catalog/facts.h"

namespace unmoor {

// What the kernels of one operator, as a file lists them, say to a node: the best answer that any of them gives.
CatalogAnswer answer_of_kernels(const Facts& facts, const nlohmann::json& kernels, const CatalogQuestion& question);

}  // namespace unmoor
