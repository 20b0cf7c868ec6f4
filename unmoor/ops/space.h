#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// DepthToSpace, SpaceToDepth, RoiAlign.
void add_space_ops(OpSet& ops);

}  // namespace unmoor
