#pragma once

#include <string>

#include "tests/fuzz/bytes.h"
#include "unmoor/graph/graph.h"

namespace unmoor::fuzz {

constexpr int64_t most_elements = 4096;  // Of an input, so that even absurd graphs run fast.

// What nobody would write, and what they would: numbers, texts, shapes and values for a graph to survive.
int64_t absurd_integer(Bytes& bytes);
float absurd_real(Bytes& bytes);
std::string absurd_text(Bytes& bytes);
DType any_dtype(Bytes& bytes);
int64_t absurd_dim(Bytes& bytes);
// An attribute like this one, or of another kind.
Attribute absurd_attribute(Bytes& bytes, const Attribute& like);
// The shape with dimensions made 1, largest first, until it has few enough elements.
Shape cheap(Shape shape);
// Sets some elements to limits, NaN, infinities, or bits that nobody stores.
void spoil(Bytes& bytes, Tensor& tensor);

}  // namespace unmoor::fuzz
