#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "unmoor/base/threads.h"
#include "unmoor/ops/op.h"

namespace unmoor::cpu {

// How an elementwise call walks its operands: rows of `inner` elements, in which an operand steps by one or stands still.
// Axes that broadcast alike are merged, so same-shape calls are one row.
struct Broadcast {
  static constexpr size_t most_inputs = 3;
  using Offsets = std::array<size_t, most_inputs>;

  size_t inner = 1;
  size_t rows = 1;
  std::array<bool, most_inputs> moves = {};  // By input: steps along a row.
  std::vector<size_t> dims;                  // Of the rows, slowest first.
  std::vector<Offsets> strides;              // In elements, by dimension.

  Offsets offsets(size_t row) const;
};

// Inputs first to first + count - 1 of the call, against its output 0.
Broadcast broadcast_of(const OpCall& call, size_t inputs);

// Calls body(output offset, input offsets, elements) for pieces of rows, on the pool's threads.
template <class Body>
void for_rows(ThreadPool& pool, const Broadcast& plan, Body&& body) {
  constexpr size_t piece = 16384;
  const size_t per_row = (plan.inner + piece - 1) / piece;
  const size_t grain = plan.inner >= piece ? 2 : 2 * piece / (plan.inner + 1) + 1;
  pool.ranges(plan.rows * per_row, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t row = i / per_row;
      const size_t from = i % per_row * piece;
      const size_t count = plan.inner - from < piece ? plan.inner - from : piece;
      Broadcast::Offsets at = plan.offsets(row);
      for (size_t k = 0; k < at.size(); ++k) {
        at[k] += plan.moves[k] ? from : 0;
      }
      body(row * plan.inner + from, at, count);
    }
  });
}

}  // namespace unmoor::cpu
