#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// Optional, OptionalHasElement, OptionalGetElement. An empty Data is an empty optional.
void add_optional_ops(OpSet& ops);

}  // namespace unmoor
