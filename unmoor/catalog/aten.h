#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "unmoor/catalog/facts.h"

namespace unmoor {

// What a file of ATen operators says of one overload, "aten::add.Tensor" as `question.op`; `entry` is that of "aten::add". Where
// element types are listed, they are about the data of the call, not about indices or masks. One call of several that stand for
// a node may be about either: then a type that only the other has is a condition, no refusal. Any thread may call it.
enum class CallRole : uint8_t { Whole, Part };
CatalogAnswer answer_of_overload(const Facts& facts, const nlohmann::json& entry, const CatalogQuestion& question, CallRole role);

}  // namespace unmoor
