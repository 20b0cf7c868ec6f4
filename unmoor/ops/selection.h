#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// NonZero, Compress, NonMaxSuppression, ReverseSequence.
void add_selection_ops(OpSet& ops);

}  // namespace unmoor
