#include "unmoor/backends/cpu/kernels/f32x6.h"

#include <algorithm>
#include <cstring>

namespace unmoor::cpu {

namespace {

constexpr size_t most_steps = 8;    // Of 32 k that are multiplied at once: 256, as in gemm.cpp.
constexpr size_t most_blocks = 16;  // Of 32 rows that a piece of work has.

size_t rounded(size_t value) { return (value + set_rows - 1) / set_rows * set_rows; }

// Measured by prototypes: up to 64 rows memory is the limit. Rounded up to tiles, a product may be a third larger than it is.
Support is_worth_it(size_t m, size_t n, size_t k) {
  constexpr size_t few_rows = 64;
  constexpr size_t least = 64;
  if (m <= few_rows) return no(Reason::Size, m, " rows, not over ", few_rows);
  if (n < least || k < least) return no(Reason::Size, "weights of ", k, " x ", n, ", not ", least, " x ", least);
  const double filled = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double whole = static_cast<double>(rounded(m)) * static_cast<double>(rounded(n)) * static_cast<double>(rounded(k));
  return whole * 3 <= filled * 4 ? yes() : no(Reason::Size, m, " x ", k, " x ", n, " fills less than 3/4 of its tiles");
}

Support all_have_parts(const Tensor& weights) {
  const size_t count = weights.bytes().size() / sizeof(float);
  const size_t at = first_unsplit(unaligned_floats(weights), count);
  if (at == count) return yes();
  float value = 0;
  std::memcpy(&value, weights.bytes().data() + at * sizeof value, sizeof value);
  return no(Reason::DType, "weight ", at, " is ", value, ": parts of bfloat16 hold 0 and magnitudes from 1e-31 to 3.39e38");
}

const TileLoops& existing_tiles() {
  const TileChoice choice = tiles();
  if (choice.loops == nullptr) fail(ErrorKind::Internal, "a kernel for AMX was prepared though ", choice.refusal);
  return *choice.loops;
}

}  // namespace

Support takes_f32x6(size_t m, size_t n, size_t k, const Tensor& weights) {
  const TileChoice choice = tiles();
  if (choice.loops == nullptr) return no(Reason::DeviceFeature, choice.refusal);
  if (m == 0 || n == 0 || k == 0) return no(Reason::Size, "nothing to multiply");
  if (Support worth = choice.any_size ? yes() : is_worth_it(m, n, k); !worth) return worth;
  return all_have_parts(weights);
}

// What a run works on, for its steps.
struct SixPartProduct::Call {
  size_t m;
  const Rows& rows;
  float* c;
  size_t c_stride;
  const Epilogue& epilogue;
};

// Rows whose parts lie in the workspace together, and the pieces of work that they are cut into.
struct SixPartProduct::Slab {
  size_t row;
  size_t blocks;
  size_t blocks_together;
  size_t panels_together;
  const uint16_t* a;

  size_t groups(size_t panels) const { return (panels + panels_together - 1) / panels_together; }
  size_t pieces(size_t panels) const { return (blocks + blocks_together - 1) / blocks_together * groups(panels); }
};

SixPartProduct::SixPartProduct(const Machine& machine, size_t n, size_t k, const Tensor& weights, const std::string& how, const Layout& layout)
    : machine_(machine), tiles_(existing_tiles()), loops_(gemm_loops()), split_(split_loops()), n_(n), k_(k) {
  // As many rows as have their parts in half of all threads' L2, but no fewer than make the weights worth reading.
  const size_t fitting = machine.threads() * machine.l2_bytes() / 2 / (block_values() * sizeof(uint16_t));
  most_slab_blocks_ = std::max(fitting, most_blocks);
  const std::string kind = cat("bfloat16 parts of 32 columns [", k, ",", n, "] ", how);
  b_ = machine.weights().get(weights, kind, panels() * block_values() / 2, [&](float* to) {
    std::vector<float> room;
    const Strided b = layout(room);
    machine.pool().each(panels(), [&](size_t panel) { pack(b, panel, reinterpret_cast<uint16_t*>(to) + panel * block_values()); });
  });
}

void SixPartProduct::pack(const Strided& b, size_t panel, uint16_t* to) const {
  const size_t columns = std::min(set_rows, n_ - panel * set_rows);
  std::vector<float> part(sum_values);
  for (size_t s = 0; s < steps(); ++s) {
    const size_t depth = std::min(set_depth, k_ - s * set_depth);
    const float* const from = b.data + s * set_depth * b.row_step + panel * set_rows * b.column_step;
    if (columns < set_rows || depth < set_depth) std::ranges::fill(part, 0.0F);
    if (b.column_step == 1) {
      for (size_t i = 0; i < depth; ++i) std::memcpy(&part[i * set_rows], from + i * b.row_step, columns * sizeof(float));
    } else {
      loops_.transpose(from, b.column_step, columns, depth, part.data(), set_rows);
    }
    split_.columns(part.data(), set_rows, to + s * set_values);
  }
}

void SixPartProduct::run(size_t m, const Rows& rows, float* c, size_t c_stride, const Epilogue& epilogue, float* workspace) const {
  const Call call{m, rows, c, c_stride, epilogue};
  auto* const a = reinterpret_cast<uint16_t*>(workspace);
  const size_t all = rounded(m) / set_rows;
  for (size_t first = 0; first < all;) {
    Slab slab{first * set_rows, std::min(slab_blocks(m), all - first), most_blocks, panels(), a};
    first += slab.blocks;
    machine_.pool().each(slab.blocks, [&](size_t block) { split_block(call, slab.row + block * set_rows, a + block * block_values()); });
    slab.blocks_together = std::min(slab.blocks, most_blocks);
    // Sums of a piece stay in a quarter of L2; there are enough pieces for all threads.
    const size_t fitting = machine_.l2_bytes() / 4 / (slab.blocks_together * sum_values * sizeof(float));
    slab.panels_together = std::clamp<size_t>(fitting, 1, panels());
    const size_t wanted = machine_.threads() == 1 ? 1 : 4 * machine_.threads();
    while (slab.panels_together > 1 && slab.pieces(panels()) < wanted) slab.panels_together = (slab.panels_together + 1) / 2;
    while (slab.blocks_together > 1 && slab.pieces(panels()) < wanted) slab.blocks_together = (slab.blocks_together + 1) / 2;
    machine_.pool().each(slab.pieces(panels()), [&](size_t piece) { multiply(call, slab, piece); });
  }
}

void SixPartProduct::split_block(const Call& call, size_t row, uint16_t* to) const {
  const size_t count = std::min(set_rows, call.m - row);
  const Strided a = call.rows.at(row, count, scratch(0, call.rows.room_floats));
  split_.rows(a.data, a.row_step, count, k_, to);
}

// Parts of k outermost, so that the rows' parts and the panel's of 256 k stay near. Each part's sums start at zero, which makes
// them more exact than going on would.
void SixPartProduct::multiply(const Call& call, const Slab& slab, size_t piece) const {
  const size_t groups = slab.groups(panels());
  const size_t block = piece / groups * slab.blocks_together;
  const size_t blocks = std::min(slab.blocks_together, slab.blocks - block);
  const size_t panel_begin = piece % groups * slab.panels_together;
  const size_t panel_end = std::min(panel_begin + slab.panels_together, panels());
  const size_t panel_sums = blocks * sum_values;
  float* const fresh = scratch(1, (slab.panels_together + 1) * panel_sums);
  const size_t parts = (steps() + most_steps - 1) / most_steps;
  const ConfiguredTiles configured(tiles_);
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = steps() * part / parts;
    const size_t count = steps() * (part + 1) / parts - begin;
    for (size_t panel = panel_begin; panel < panel_end; ++panel) {
      float* const sums = fresh + (panel - panel_begin + 1) * panel_sums;
      const uint16_t* const b = panel_sets(panel) + begin * set_values;
      tiles_.multiply({.a = slab.a + block * block_values() + begin * set_values, .a_step = block_values(), .b = b,
                       .sums = part == 0 ? sums : fresh, .blocks = blocks, .steps = count,
                       .prefetch = reinterpret_cast<const char*>(b + count * set_values),
                       .prefetch_bytes = count * set_values * sizeof(uint16_t)});
      if (part != 0) split_.add(fresh, panel_sums, sums);
      for (size_t i = 0; part + 1 == parts && i < blocks; ++i) finish(call, slab.row + (block + i) * set_rows, panel, sums + i * sum_values);
    }
  }
}

void SixPartProduct::finish(const Call& call, size_t row, size_t panel, const float* sums) const {
  const size_t column = panel * set_rows;
  const size_t rows = std::min(set_rows, call.m - row);
  const size_t columns = std::min(set_rows, n_ - column);
  float* const c = call.c + row * call.c_stride + column;
  if (!split_.take(sums, rows, columns, c, call.c_stride)) {
    compute_again(call, row, panel);
  } else if (!call.epilogue.is_identity()) {
    loops_.finish(c, call.c_stride, rows, columns, call.epilogue.at(row, column, call.c_stride));
  }
}

// From the weights that their parts add up to, exactly.
void SixPartProduct::compute_again(const Call& call, size_t row, size_t panel) const {
  const size_t column = panel * set_rows;
  const size_t rows = std::min(set_rows, call.m - row);
  const size_t columns = std::min(set_rows, n_ - column);
  float* const b = scratch(2, steps() * sum_values);
  float* const packed = scratch(3, loops_.packed_b(columns, k_));
  for (size_t s = 0; s < steps(); ++s) split_.join_columns(panel_sets(panel) + s * set_values, b + s * sum_values);
  loops_.pack_b({b, set_rows, 1}, columns, k_, 0, loops_.panels(columns), packed);
  const Strided a = call.rows.at(row, rows, scratch(0, call.rows.room_floats));
  loops_.multiply({.m = rows, .n = columns, .k = k_, .a = a.data, .b = packed, .c = call.c + row * call.c_stride + column,
                   .c_stride = call.c_stride, .epilogue = call.epilogue.at(row, column, call.c_stride), .a_stride = a.row_step},
                  {0, rows, 0, loops_.panels(columns)});
}

}  // namespace unmoor::cpu
