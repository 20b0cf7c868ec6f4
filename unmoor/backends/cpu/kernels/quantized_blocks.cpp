#include <algorithm>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/bytes.h"
#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/ops/packed.h"

namespace unmoor::cpu {

namespace {

// MatMulNBits: A[m,k] times the transpose of weights [n,k], whose rows are blocks of small numbers with a scale and a zero point
// each. The weights stay as they are in the file: they are what is slow to read.
struct BlockMatMul {
  size_t m = 0, n = 0, k = 0;
  size_t bits = 4, block = 0, blocks = 0;  // `blocks` of a row.
  bool packed_zeros = false;               // Zero points are numbers of as many bits, rows beginning with a byte; else float32.

  size_t padded_k() const { return blocks * block; }
  size_t row_bytes() const { return padded_k() * bits / 8; }
  size_t zero_bytes() const { return (blocks * bits + 7) / 8; }
  bool few_rows() const { return m <= 4; }
};

struct Weights {
  const uint8_t* numbers;
  const float* scales;
  const float* zeros;  // One of these two, or neither: then a zero point is half of the numbers' range.
  const uint8_t* zero_bytes;
};

// Row `row` of the weights as floats: padded_k() of them.
void unpack_row(const BlockMatMul& b, const Weights& w, size_t row, float* to) {
  const ByteLoops& loops = byte_loops();
  for (size_t i = 0; i < b.blocks; ++i) {
    auto zero = static_cast<float>(1U << (b.bits - 1));
    if (w.zeros != nullptr) zero = w.zeros[row * b.blocks + i];
    if (w.zero_bytes != nullptr) zero = packed_at({w.zero_bytes + row * b.zero_bytes(), b.zero_bytes()}, b.bits, i);
    loops.unpack(w.numbers + row * b.row_bytes() + i * b.block * b.bits / 8, b.block, b.bits, zero, w.scales[row * b.blocks + i],
                 to + i * b.block);
  }
}

// Each row of the weights is met by all rows of A while it is in L1.
void run_few_rows(const Machine& machine, const BlockMatMul& b, const Weights& w, const KernelArgs& args) {
  const float* const a = input_as(args, 0);
  const float* const bias = input_as(args, 5);
  float* const y = output_as(args, 0);
  const GemmLoops& gemm = gemm_loops();
  machine.pool().ranges(b.n, 32768 / b.padded_k() + 1, [&](size_t begin, size_t end) {
    float* const row = scratch(0, b.padded_k());
    for (size_t j = begin; j < end; ++j) {
      unpack_row(b, w, j, row);
      for (size_t i = 0; i < b.m; ++i) {
        float sum = 0;
        gemm.multiply_unpacked(a + i * b.k, {row, 1, b.k}, b.k, 0, 1, &sum);
        y[i * b.n + j] = bias == nullptr ? sum : sum + bias[j];
      }
    }
  });
}

// A is packed for all; each panel of the weights is unpacked, packed and multiplied by whoever takes it.
void run_panels(const Machine& machine, const BlockMatMul& b, const Weights& w, const KernelArgs& args) {
  const GemmLoops& gemm = gemm_loops();
  const size_t width = gemm.panel_columns;
  auto* const a = reinterpret_cast<float*>(args.workspace.host());
  const size_t rows = gemm.tile_rows * 8;
  machine.pool().each((b.m + rows - 1) / rows, [&](size_t part) {
    const size_t row = part * rows;
    gemm.pack_a({input_as(args, 0) + row * b.k, b.k, 1}, std::min(rows, b.m - row), b.k, a + row * b.k);
  });
  machine.pool().each(gemm.panels(b.n), [&](size_t panel) {
    const size_t column = panel * width;
    const size_t columns = std::min(width, b.n - column);
    float* const plain = scratch(0, columns * b.padded_k());
    float* const packed = scratch(1, width * b.k);
    for (size_t j = 0; j < columns; ++j) unpack_row(b, w, column + j, plain + j * b.padded_k());
    gemm.pack_b({plain, 1, b.padded_k()}, columns, b.k, 0, 1, packed);
    Product product{b.m, columns, b.k, a, packed, output_as(args, 0) + column, b.n};
    if (const float* const bias = input_as(args, 5)) product.epilogue.column_bias = bias + column;
    gemm.multiply(product, {0, b.m, 0, 1});
  });
}

Support supports_blocks(const OpCall& call) {
  for (const size_t i : {size_t{0}, size_t{2}, size_t{5}}) {
    if (Support type = input_is(call, i, {DType::F32}); !type) return type;
  }
  if (Support type = input_is(call, 3, {DType::F32, DType::U8}); !type) return type;
  if (call.has(4)) return no(Reason::Attribute, "input g_idx");
  if (call.input(1).shape.elements() == 0) return no(Reason::Size, "weights left out");
  if (call.input(0).shape.elements() == 0) return no(Reason::Size, "an empty input");
  const int64_t padded = call.input(1).shape.elements() / call.integer("N", 1) * (8 / call.integer("bits", 4));
  constexpr int64_t most = int64_t{1} << 18;  // A panel of them is unpacked at once.
  return padded <= most ? yes() : no(Reason::Size, "rows of ", padded, " weights");
}

Prepared prepare_blocks(const OpCall& call, Device& device) {
  BlockMatMul b;
  b.k = static_cast<size_t>(call.integer("K", 1));
  b.n = static_cast<size_t>(call.integer("N", 1));
  b.m = static_cast<size_t>(call.input(0).shape.elements()) / b.k;
  b.bits = static_cast<size_t>(call.integer("bits", 4));
  b.block = static_cast<size_t>(call.integer("block_size", 32));
  b.blocks = (b.k + b.block - 1) / b.block;
  b.packed_zeros = call.has(3) && call.input(3).dtype == DType::U8;
  const size_t packed_a = b.few_rows() ? 0 : b.m * b.k * sizeof(float);
  return {.run =
              [&machine = machine_of(device), b](Stream&, const KernelArgs& args) {
                const Weights weights{input_as<uint8_t>(args, 1), input_as(args, 2), b.packed_zeros ? nullptr : input_as(args, 3),
                                      b.packed_zeros ? input_as<uint8_t>(args, 3) : nullptr};
                (b.few_rows() ? run_few_rows : run_panels)(machine, b, weights, args);
              },
          .workspace_bytes = packed_a};
}

}  // namespace

void add_quantized_block_kernels(KernelTable& table) {
  table.add("com.microsoft:MatMulNBits", {.name = "cpu.matmul.blocks", .supports = supports_blocks, .prepare = prepare_blocks});
}

}  // namespace unmoor::cpu
