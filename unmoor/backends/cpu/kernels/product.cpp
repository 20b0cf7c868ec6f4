#include "unmoor/backends/cpu/kernels/product.h"

#include <algorithm>
#include <map>

namespace unmoor::cpu {

PreparedProducts::PreparedProducts(const Machine& machine, Products products, const Tensor* b, Bias bias, size_t b_first, Precision precision)
    : machine_(machine), loops_(gemm_loops()), p_(std::move(products)), bias_(bias) {
  std::map<size_t, size_t> seen;
  for (const size_t offset : p_.b_offsets) {
    const auto [found, added] = seen.emplace(offset, b_starts_.size());
    if (added) b_starts_.push_back(offset);
    b_distinct_.push_back(found->second);
  }
  way_ = choose();
  if (b == nullptr) return;
  if (precision == Precision::SixParts) {
    const size_t first = b_first + b_starts_.at(0);
    const std::string how = cat(p_.transposed_b ? "transposed " : "", first);
    six_parts_.emplace(machine, p_.n, p_.k, *b, how, [&](std::vector<float>&) { return b_at(unaligned_floats(*b), first); });
    way_ = Way::SixParts;
    return;
  }
  std::string kind = cat("panels of ", loops_.panel_columns, "/", loops_.lanes, " [", p_.k, ",", p_.n, p_.transposed_b ? "] transposed" : "]");
  for (const size_t start : b_starts_) kind += cat(" ", b_first + start);
  b_ = machine.weights().get(*b, kind, b_starts_.size() * packed_b(), [&](float* to) {
    const float* const from = unaligned_floats(*b) + b_first;
    const size_t panels = loops_.panels(p_.n);
    machine.pool().each(b_starts_.size() * panels, [&](size_t i) {
      const size_t matrix = i / panels;
      const size_t panel = i % panels;
      loops_.pack_b(b_at(from, b_starts_[matrix]), p_.n, p_.k, panel, panel + 1, to + matrix * packed_b());
    });
  });
  way_ = choose();
}

PreparedProducts::Way PreparedProducts::choose() const {
  if (b_ != nullptr) {
    return p_.m <= 4 && !p_.transposed_a ? Way::Rows : Way::Shared;
  }
  if (p_.m <= 2 && !p_.transposed_a) {
    return Way::Unpacked;
  }
  const bool fits = (p_.m * p_.k + p_.n * p_.k) * sizeof(float) <= machine_.l2_bytes();
  return fits && p_.batch() >= 2 * machine_.threads() ? Way::Each : Way::Shared;
}

size_t PreparedProducts::workspace_bytes() const {
  if (way_ == Way::SixParts) return six_parts_->workspace_bytes(p_.m);
  if (way_ != Way::Shared) {
    return 0;
  }
  const size_t b = b_ == nullptr ? b_starts_.size() * packed_b() : 0;
  return (p_.batch() * packed_a() + b) * sizeof(float);
}

Strided PreparedProducts::a_at(const float* a, size_t i) const {
  const float* const data = a + p_.a_offsets[i];
  return p_.transposed_a ? Strided{data, 1, p_.m} : Strided{data, p_.k, 1};
}

Strided PreparedProducts::b_at(const float* b, size_t offset) const {
  return p_.transposed_b ? Strided{b + offset, 1, p_.k} : Strided{b + offset, p_.n, 1};
}

Epilogue PreparedProducts::epilogue_for(const Operands& operands, size_t i) const {
  Epilogue epilogue = p_.epilogue;
  if (operands.bias != nullptr) {
    const float* const bias = operands.bias + (p_.bias_offsets.empty() ? 0 : p_.bias_offsets[i]);
    if (bias_ == Bias::Row) epilogue.row_bias = bias;
    if (bias_ == Bias::Column) epilogue.column_bias = bias;
    if (bias_ == Bias::Full) {
      epilogue.addend = bias;
      epilogue.addend_stride = p_.n;
    }
  }
  if (operands.residual != nullptr) epilogue.residual = operands.residual + i * p_.m * p_.n;
  return epilogue;
}

void PreparedProducts::run(const Operands& operands) const {
  if (p_.batch() == 0 || p_.m == 0 || p_.n == 0) {
    return;
  }
  switch (way_) {
    case Way::Rows: run_rows(operands); break;
    case Way::Unpacked: run_unpacked(operands); break;
    case Way::Each: run_each(operands); break;
    case Way::Shared: run_shared(operands); break;
    case Way::SixParts: run_six_parts(operands); break;
  }
}

void PreparedProducts::run_rows(const Operands& operands) const {
  constexpr size_t group = 4;  // Panels that are read at once.
  const size_t panels = loops_.panels(p_.n);
  const size_t groups = (panels + group - 1) / group;
  for (size_t i = 0; i < p_.batch(); ++i) {
    const RowProduct product{p_.m, p_.n, p_.k, operands.a + p_.a_offsets[i], p_.k, floats_of(b_) + b_distinct_[i] * packed_b(),
                             operands.c + i * p_.m * p_.n, p_.n, epilogue_for(operands, i)};
    // A group costs about group * columns * k multiplications: give nobody less than some microseconds.
    const size_t grain = size_t{1} << 17;
    machine_.pool().ranges(groups, grain / (group * loops_.panel_columns * std::max<size_t>(p_.k, 1)) + 1, [&](size_t begin, size_t end) {
      loops_.multiply_rows(product, begin * group, std::min(end * group, panels));
    });
  }
}

void PreparedProducts::run_unpacked(const Operands& operands) const {
  constexpr size_t columns = 256;
  const size_t pieces = (p_.n + columns - 1) / columns;
  const size_t grain = (size_t{1} << 15) / (std::min(columns, p_.n) * std::max<size_t>(p_.k, 1)) + 1;
  machine_.pool().ranges(p_.batch() * p_.m * pieces, grain, [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      const size_t i = at / (p_.m * pieces);
      const size_t row = at / pieces % p_.m;
      const size_t first = at % pieces * columns;
      const size_t last = std::min(first + columns, p_.n);
      float* const c = operands.c + (i * p_.m + row) * p_.n;
      loops_.multiply_unpacked(operands.a + p_.a_offsets[i] + row * p_.k, b_at(operands.b, p_.b_offsets[i]), p_.k, first, last, c);
      if (p_.epilogue.is_identity() && operands.bias == nullptr && operands.residual == nullptr) continue;
      loops_.finish(c + first, p_.n, 1, last - first, epilogue_for(operands, i).at(row, first, p_.n));
    }
  });
}

// A product is one thread's: packed into its scratch, multiplied while it is in the cache.
void PreparedProducts::run_each(const Operands& operands) const {
  const size_t panels = loops_.panels(p_.n);
  machine_.pool().each(p_.batch(), [&](size_t i) {
    float* const a = scratch(0, packed_a());
    float* const b = scratch(1, packed_b());
    loops_.pack_a(a_at(operands.a, i), p_.m, p_.k, a);
    loops_.pack_b(b_at(operands.b, p_.b_offsets[i]), p_.n, p_.k, 0, panels, b);
    loops_.multiply({p_.m, p_.n, p_.k, a, b, operands.c + i * p_.m * p_.n, p_.n, epilogue_for(operands, i)}, {0, p_.m, 0, panels});
  });
}

void PreparedProducts::run_six_parts(const Operands& operands) const {
  const float* const a = operands.a + p_.a_offsets[0];
  const auto rows = [&](size_t row, size_t, float*) { return Strided{a + row * p_.k, p_.k, 1}; };
  six_parts_->run(p_.m, {rows}, operands.c, p_.n, epilogue_for(operands, 0), operands.workspace);
}

void PreparedProducts::pack_operands(const Operands& operands) const {
  const size_t rows = loops_.tile_rows * 8;
  const size_t row_parts = (p_.m + rows - 1) / rows;
  const size_t panels = loops_.panels(p_.n);
  const size_t a_parts = p_.batch() * row_parts;
  const size_t b_parts = b_ == nullptr ? b_starts_.size() * panels : 0;
  float* const packed_b_start = operands.workspace + p_.batch() * packed_a();
  machine_.pool().each(a_parts + b_parts, [&](size_t part) {
    if (part < a_parts) {
      const size_t i = part / row_parts;
      const size_t row = part % row_parts * rows;
      Strided a = a_at(operands.a, i);
      a.data += row * a.row_step;
      loops_.pack_a(a, std::min(rows, p_.m - row), p_.k, operands.workspace + i * packed_a() + row * p_.k);
    } else {
      const size_t i = (part - a_parts) / panels;
      const size_t panel = (part - a_parts) % panels;
      loops_.pack_b(b_at(operands.b, b_starts_[i]), p_.n, p_.k, panel, panel + 1, packed_b_start + i * packed_b());
    }
  });
}

void PreparedProducts::run_shared(const Operands& operands) const {
  pack_operands(operands);
  const float* const packed = b_ == nullptr ? operands.workspace + p_.batch() * packed_a() : floats_of(b_);
  const size_t panels = loops_.panels(p_.n);
  // Rows of A that stay in half of L2, cut further where there are too few panels for the threads.
  const size_t depth = std::clamp<size_t>(p_.k, 1, 1024);
  const size_t most = std::max<size_t>(machine_.l2_bytes() / 2 / (depth * sizeof(float)), 8 * loops_.tile_rows);
  size_t row_parts = (p_.m + most - 1) / most;
  const size_t wanted = machine_.threads() == 1 ? 1 : 4 * machine_.threads();
  if (p_.batch() * row_parts * panels < wanted) {
    row_parts = std::max(row_parts, (wanted + p_.batch() * panels - 1) / (p_.batch() * panels));
  }
  const size_t tile = loops_.tile_rows;
  const size_t tiles = (p_.m + tile - 1) / tile;
  row_parts = std::min(row_parts, tiles);
  const bool from_memory = b_ != nullptr && p_.k * p_.n * sizeof(float) > machine_.l2_bytes() / 2;
  machine_.pool().each(p_.batch() * row_parts * panels, [&](size_t at) {
    const size_t i = at / (row_parts * panels);
    const size_t part = at / panels % row_parts;
    const size_t panel = at % panels;
    const Block block{tiles * part / row_parts * tile, std::min(tiles * (part + 1) / row_parts * tile, p_.m), panel, panel + 1};
    loops_.multiply({p_.m, p_.n, p_.k, operands.workspace + i * packed_a(), packed + b_distinct_[i] * packed_b(),
                     operands.c + i * p_.m * p_.n, p_.n, epilogue_for(operands, i), from_memory},
                    block);
  });
}

}  // namespace unmoor::cpu
