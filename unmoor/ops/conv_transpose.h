#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

void add_conv_transpose(OpSet& ops);

}  // namespace unmoor
