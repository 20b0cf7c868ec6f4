#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// Parts of the reduce family that go along one axis.
void add_extreme_ops(OpSet& ops);  // ArgMax, ArgMin.
void add_running_ops(OpSet& ops);  // CumSum, CumProd.

}  // namespace unmoor
