#pragma once

#include "unmoor/graph/graph.h"
#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {

inline bool is_real(const Data& data) { return data.is_tensor() && data.tensor().dtype() == DType::F64; }

// A moved argument may leave the domain where the argument itself does not: the arccosine's at 1. There the function of the
// argument itself stands. `sign`: only sizes were made; the sign is that of the argument itself, too.
void stay_in_domain(Sampled& moved, const Sampled& plain, bool sign);

// Whether the results of moved arguments may be others than domains allow. Functions of all numbers, or of all of a sign, are no
// trouble where every result is finite and too small for a neighbour to overflow.
bool may_leave_domain(const Node& node, const Sampled& moved);

}  // namespace unmoor
