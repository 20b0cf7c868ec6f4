#pragma once

#include "unmoor/workbench/noise/floor.h"

namespace unmoor {

// How results that rounding has no say in are compared, by what the operator's specification defines.

struct ExactComparison {
  size_t different = 0;  // Elements, where the result is defined.
  size_t undefined = 0;  // Elements that differ where it is not: a number cast to an integer type that cannot hold it, a place
                         // that several updates of a scatter write.
};
// Output `i` of a region's exact results against the target's, bit for bit after the exact one is rounded to what is stored; the
// sign of zero counts where the operator only lays values out anew. Shapes are equal.
ExactComparison compare_exactly(const Region& region, size_t i, const Data& exact, const Data& actual);

// Whether what ArgMax, ArgMin, TopK or NonMaxSuppression gave is right though it is other than what is wanted: other indices of
// equal values, none of them twice; the values of TopK in another order where that is left open; boxes that are kept if equal
// scores are taken in another order. False for every other operator.
bool same_selection(const Region& region, size_t i, const Data& found, const Data& wanted);

// An operator whose integers are places is in it: a place next to the right one is no better than any other.
bool selects_places(const Region& region);

// A convolution of 3×3 by steps of 1 is in it, as Winograd's F(4×4, 3×3) computes: its spread is wider.
bool may_be_winograd(const Region& region);

}  // namespace unmoor
