#pragma once

#include <cstddef>

namespace unmoor::cpu {

// y[i] = op(a[i], b[i]) for n floats; an operand that does not move is read at [0]. y may be a or b.
struct BinaryRow {
  const float* a;
  const float* b;
  float* y;
  size_t n;
  bool a_moves;
  bool b_moves;
};
using BinaryLoop = void (*)(const BinaryRow&);

// The loops for the best instruction set here.
struct ArithmeticLoops {
  BinaryLoop add, subtract, multiply, divide, min, max, prelu;
};
const ArithmeticLoops& arithmetic_loops();

}  // namespace unmoor::cpu
