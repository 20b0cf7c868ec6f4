#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

void add_det(OpSet& ops);

}  // namespace unmoor
