#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

void add_pad_op(OpSet& ops);

}  // namespace unmoor
