#include <cstring>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

namespace {

// A table of angles: where the row of an item's position is.
struct Table {
  size_t items, length, columns;  // Of what tells the rows: the positions, or the table itself. 1: the same for all.
  int64_t rows;
};

// RotaryEmbedding of [batch, heads, length, width], or [batch, length, heads, width].
struct Rotary {
  std::string who;
  size_t batch, heads, length, width, half;
  bool packed, interleaved, positions;
  Table cos, sin;

  size_t row_of(const Table& table, const int64_t* ids, size_t item, size_t step) const {
    const size_t at = (table.items == 1 ? 0 : item) * table.length + (table.length == 1 ? 0 : step);
    if (ids == nullptr) return at * table.columns;
    const int64_t row = ids[at];
    if (row < -table.rows || row >= table.rows) {
      fail(ErrorKind::InvalidArgument, who, ": position ", row, " is outside of the ", table.rows, " in the table");
    }
    return static_cast<size_t>(row < 0 ? row + table.rows : row) * table.columns;
  }
};

void turn(const Rotary& r, const float* x, const float* cos, const float* sin, float* y) {
  if (r.interleaved) {
    for (size_t c = 0; c < r.half; ++c) {
      const float a = x[2 * c];
      const float b = x[2 * c + 1];
      y[2 * c] = cos[c] * a - sin[c] * b;
      y[2 * c + 1] = sin[c] * a + cos[c] * b;
    }
  } else {
    for (size_t c = 0; c < r.half; ++c) {
      const float a = x[c];
      const float b = x[c + r.half];
      y[c] = cos[c] * a - sin[c] * b;
      y[c + r.half] = sin[c] * a + cos[c] * b;
    }
  }
  if (x != y && 2 * r.half < r.width) std::memcpy(y + 2 * r.half, x + 2 * r.half, (r.width - 2 * r.half) * sizeof(float));
}

Rotary rotary_of(const OpCall& call) {
  const auto dim = [](int64_t size) { return static_cast<size_t>(size); };
  const Shape& x = call.input(0).shape;
  Rotary r{};
  r.who = title(call);
  r.packed = x.rank() == 3;
  r.heads = dim(r.packed ? call.integer("num_heads", 1) : x[1]);
  r.batch = dim(x[0]);
  r.length = dim(r.packed ? x[1] : x[2]);
  r.width = r.packed ? dim(x[2]) / r.heads : dim(x[3]);
  r.interleaved = call.integer("interleaved", 0) != 0;
  const int64_t turning = call.integer("rotary_embedding_dim", 0);
  r.half = (turning == 0 ? r.width : dim(turning)) / 2;
  r.positions = call.has(3);
  const auto table = [&](size_t i) {
    const Shape& shape = call.input(i).shape;
    const Shape& rows = r.positions ? call.input(3).shape : shape;
    return Table{dim(rows[0]), dim(rows[1]), dim(shape[shape.rank() - 1]), shape[0]};
  };
  r.cos = table(1);
  r.sin = table(2);
  if (x.elements() == 0) r.batch = 0;
  return r;
}

Support supports_rotary(const OpCall& call) {
  return all_of(input_is(call, 0, {DType::F32}), input_is(call, 1, {DType::F32}), input_is(call, 2, {DType::F32}));
}

Prepared prepare_rotary(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), r = rotary_of(call)](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    const auto* const ids = r.positions ? input_as<int64_t>(args, 3) : nullptr;
    machine.pool().ranges(r.batch * r.length, 8192 / (r.heads * r.width + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t item = i / r.length;
        const size_t step = i % r.length;
        const float* const cos = input_as(args, 1) + r.row_of(r.cos, ids, item, step);
        const float* const sin = input_as(args, 2) + r.row_of(r.sin, ids, item, step);
        for (size_t head = 0; head < r.heads; ++head) {
          const size_t at = (r.packed ? i * r.heads + head : (item * r.heads + head) * r.length + step) * r.width;
          turn(r, x + at, cos, sin, y + at);
        }
      }
    });
  }};
}

}  // namespace

void add_rotary_kernels(KernelTable& table) {
  table.add("RotaryEmbedding",
            {.name = "cpu.rotaryembedding.heads", .supports = supports_rotary, .prepare = prepare_rotary, .in_place = true});
}

}  // namespace unmoor::cpu
