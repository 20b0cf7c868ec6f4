#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

void add_einsum(OpSet& ops);

}  // namespace unmoor
