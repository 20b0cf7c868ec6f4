#pragma once

#include "unmoor/ops/formula.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {

// Parts of the normalization family.
void add_layer_norms(OpSet& ops);    // LayerNormalization, RMSNormalization, com.microsoft:SkipLayerNormalization.
void add_channel_norms(OpSet& ops);  // BatchNormalization, InstanceNormalization, GroupNormalization, LRN.
void add_other_norms(OpSet& ops);    // MeanVarianceNormalization, LpNormalization.

struct Moments {
  double mean = 0;
  double variance = 0;  // Of the whole population.
};
Moments moments_of(std::span<const double> values);

// An operator of this family without its meaning.
Op normalization(std::string name, std::string summary, std::vector<Port> inputs, double flop);

// x minus its mean over the axes, and 1/√(variance + epsilon), as operators.
struct Centred {
  ValueId mean, difference, inverse;
};
Centred centred(Formula& f, ValueId x, const std::vector<int64_t>& axes, double epsilon);
// A value of one element a channel, shaped to meet [N, C, …] of this rank (or [N, …, C]).
ValueId per_channel(Formula& f, ValueId value, size_t rank, bool last);

constexpr float usual_epsilon = 1e-5F;
double epsilon_of(const OpCall& call, float otherwise = usual_epsilon);

}  // namespace unmoor
