#pragma once

#include <array>
#include <functional>

#include "unmoor/ops/numeric.h"

namespace unmoor {

enum class CellKind { Rnn, Gru, Lstm };

// Sizes of a recurrent layer; unknown ones are `Shape::unknown`.
struct Recurrence {
  CellKind kind = CellKind::Rnn;
  int64_t gates = 1;  // Blocks of rows in W and R.
  int64_t steps = Shape::unknown, batch = Shape::unknown, input = Shape::unknown, hidden = Shape::unknown;
  int64_t directions = 1;
  bool batch_first = false;  // Attribute `layout` 1.
};
// From attributes and input shapes. Fails with InvalidModel where they do not fit.
Recurrence recurrence_of(const OpCall& call, CellKind kind);

// What a cell applies to its gates, its candidate and its state: f, g and h of ONNX's equations; g and h may be empty.
struct CellFunctions {
  std::array<std::function<double(double)>, 3> of;
};
// By direction, from `activations`, `activation_alpha`, `activation_beta` and `clip`. Fails with InvalidModel on an unknown name.
std::vector<CellFunctions> cell_functions(const OpCall& call, const Recurrence& sizes);

// One direction's weights: W and R transposed to [input, gates·hidden] and [hidden, gates·hidden].
struct CellWeights {
  std::vector<double> w, r, w_bias, r_bias, peepholes;
};

// Steps one item's state (`cell` for LSTM only) by its input row.
void step_cell(const OpCall& call, const Recurrence& sizes, const CellWeights& weights, const CellFunctions& functions,
               const double* x, std::span<double> state, std::span<double> cell);

}  // namespace unmoor
