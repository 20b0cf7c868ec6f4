#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix.
void add_window_ops(OpSet& ops);

}  // namespace unmoor
