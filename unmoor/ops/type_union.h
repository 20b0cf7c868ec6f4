#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// The type of a value that is one or the other: dimensions on which they disagree are unknown. Fails with InvalidModel where
// they are not of the same kind or dtype.
Type either_type(const OpCall& call, const Type& a, const Type& b);

SequenceType sequence_of(Type element);
OptionalType optional_of(Type element);
// The element of a sequence or optional type; null if it is not known. Fails with InvalidModel on another type.
const Type* element_of(const OpCall& call, size_t input);

}  // namespace unmoor
