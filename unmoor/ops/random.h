#pragma once

#include <cstddef>
#include <cstdint>

#include "unmoor/ops/op.h"

namespace unmoor {

// Random numbers by position: number i does not depend on how many were drawn before, so every device and every order of work
// makes the same ones. Philox 4x32-10 (Salmon and others 2011). Immutable.
class CounterRandom {
 public:
  explicit CounterRandom(int64_t seed) : key_(static_cast<uint64_t>(seed)) {}
  // Seeded by an operator's attribute `seed`, a float of which every bit counts, or by the node's name where it is absent.
  explicit CounterRandom(const OpCall& call);

  double unit(size_t i) const;    // In [0, 1).
  double normal(size_t i) const;  // Of mean 0 and deviation 1.

 private:
  uint64_t key_;
};

// RandomNormal, RandomUniform, their Like forms, Multinomial, Bernoulli.
void add_random_ops(OpSet& ops);

}  // namespace unmoor
