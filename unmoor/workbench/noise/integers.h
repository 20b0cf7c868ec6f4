#pragma once

#include <cstdint>
#include <span>

#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {

enum class IntegerAnswer {
  Explained,  // What differs is what noise makes differ.
  Wrong,
  Unknown,  // No noise run came to values of this shape.
};

// Whether integers that rounding before them decided on, `found`, differ from the exact ones only as the noise runs do:
//  * where the runs do not agree, it is what one of them or the exact one has; of steps (`places` false) also what lies between;
//  * where they all agree with the exact one, of steps by one or by the most that a run is off, and in no more elements than a run
//    alone is off among the others.
// `found` has the exact one's elements. Linear in them.
IntegerAnswer explain_integers(const Sampled& sampled, std::span<const int64_t> found, bool places);

}  // namespace unmoor
