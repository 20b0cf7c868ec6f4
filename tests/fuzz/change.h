#pragma once

#include "tests/fuzz/bytes.h"
#include "unmoor/ops/cases.h"

namespace unmoor::fuzz {

// Any operator, and one of its cases; for one without cases, inputs as its ports want them. Chosen by name and text, so that bytes mean the same
// when operators and cases are added.
Case choose_case(Bytes& bytes);
// The case with up to seven things changed.
void change(Bytes& bytes, Case& a_case);

}  // namespace unmoor::fuzz
