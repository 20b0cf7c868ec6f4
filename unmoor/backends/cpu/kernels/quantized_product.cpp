#include "unmoor/backends/cpu/kernels/quantized_product.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

namespace unmoor::cpu {

namespace {

constexpr uint8_t sign_bit = 0x80;

uint8_t byte_at(const std::byte* data, size_t i) { return static_cast<uint8_t>(data[i]); }

// Two rows of k beside each other; the second may be missing.
void pack_pair(const std::byte* even, const std::byte* odd, size_t step, size_t columns, uint8_t flip, uint8_t* to) {
  for (size_t j = 0; j < columns; ++j) {
    to[2 * j] = static_cast<uint8_t>(byte_at(even, j * step) ^ flip);
    to[2 * j + 1] = odd == nullptr ? uint8_t{0} : static_cast<uint8_t>(byte_at(odd, j * step) ^ flip);
  }
}

template <class T>
void centre_row(const T* from, size_t step, size_t k, int zero, int16_t* to) {
  if (step == 1) {
    for (size_t j = 0; j < k; ++j) to[j] = static_cast<int16_t>(from[j] - zero);
  } else {
    for (size_t j = 0; j < k; ++j) to[j] = static_cast<int16_t>(from[j * step] - zero);
  }
}

}  // namespace

void ByteMatrix::pack(const Machine& machine, int8_t* to) const {
  const ByteLoops& loops = byte_loops();
  const size_t width = loops.panel_columns;
  const size_t pairs = (k + 1) / 2;
  const size_t k_step = transposed ? 1 : n;
  const size_t n_step = transposed ? k : 1;
  const uint8_t flip = is_signed ? uint8_t{0} : sign_bit;
  machine.pool().ranges(loops.panels(n), 65536 / (width * k + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t panel = begin; panel < end; ++panel) {
      const size_t columns = std::min(width, n - panel * width);
      const std::byte* const from = data + panel * width * n_step;
      auto* out = reinterpret_cast<uint8_t*>(to) + panel * width * pairs * 2;
      for (size_t q = 0; q < pairs; ++q, out += 2 * width) {
        const std::byte* const even = from + 2 * q * k_step;
        pack_pair(even, 2 * q + 1 < k ? even + k_step : nullptr, n_step, columns, flip, out);
        std::fill(out + 2 * columns, out + 2 * width, uint8_t{0});
      }
    }
  });
}

Packed pack_bytes(const Machine& machine, const Tensor& constant, size_t first, const ByteMatrix& matrix) {
  const std::string kind = cat("bytes in panels of ", byte_loops().panel_columns, " [", matrix.k, ",", matrix.n, "]",
                               matrix.transposed ? " transposed" : "", matrix.is_signed ? " signed " : " unsigned ", first);
  ByteMatrix from = matrix;
  from.data = constant.bytes().data() + first;
  return machine.weights().get(constant, kind, (matrix.packed_bytes() + 3) / 4,
                               [&](float* to) { from.pack(machine, reinterpret_cast<int8_t*>(to)); });
}

ByteRange byte_range(const Machine& machine, const float* x, size_t n) {
  float low = 0;
  float high = 0;
  std::mutex lock;
  machine.pool().ranges(n, size_t{1} << 16, [&](size_t begin, size_t end) {
    float own_low = 0;
    float own_high = 0;
    byte_loops().range(x + begin, end - begin, own_low, own_high);
    const std::lock_guard guard(lock);
    low = std::min(low, own_low);
    high = std::max(high, own_high);
  });
  ByteRange range;
  range.scale = static_cast<float>((static_cast<double>(high) - static_cast<double>(low)) / 255);
  const float zero = std::nearbyint(-low / range.scale);  // NaN where the range is zero or infinite.
  if (range.scale != 0 && !std::isnan(zero)) range.zero = static_cast<int>(std::clamp(zero, 0.0F, 255.0F));
  return range;
}

void quantize_rows(const Machine& machine, const float* x, size_t rows, size_t k, const ByteRange& range, int16_t* to) {
  const size_t stride = row_stride(k);
  machine.pool().ranges(rows, 32768 / (k + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      int16_t* const out = to + row * stride;
      if (range.scale != 0) {
        byte_loops().quantize(x + row * k, k, range.scale, -range.zero, 255 - range.zero, out);
      } else {
        std::fill(out, out + k, int16_t{0});
      }
      std::fill(out + k, out + stride, int16_t{0});
    }
  });
}

void centre_rows(const Machine& machine, const ByteRows& x, size_t rows, size_t k, int16_t* to) {
  const size_t stride = row_stride(k);
  const size_t row_step = x.transposed ? 1 : k;
  const size_t step = x.transposed ? rows : 1;
  machine.pool().ranges(rows, 65536 / (k + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      int16_t* const out = to + row * stride;
      const std::byte* const from = x.data + row * row_step;
      if (x.is_signed) {
        centre_row(reinterpret_cast<const int8_t*>(from), step, k, x.zero, out);
      } else {
        centre_row(reinterpret_cast<const uint8_t*>(from), step, k, x.zero, out);
      }
      std::fill(out + k, out + stride, int16_t{0});
    }
  });
}

int32_t row_sum(const int16_t* row, size_t k) { return std::accumulate(row, row + k, int32_t{0}); }

void multiply_bytes(const Machine& machine, const ByteProduct& product, size_t n,
                    const std::function<void(const ByteBlock&)>& finish) {
  constexpr size_t most_sums = 8192;          // Of a block: they stay in L1 and L2 until they are finished.
  constexpr size_t enough = size_t{1} << 18;  // Products that are worth a piece of their own.
  if (product.rows == 0 || n == 0) return;
  const ByteLoops& loops = byte_loops();
  const size_t width = loops.panel_columns;
  const size_t panels = loops.panels(n);
  const size_t row_parts = (product.rows + 47) / 48;
  const size_t rows = (product.rows + row_parts - 1) / row_parts;
  const size_t group =
      std::clamp<size_t>(enough / (rows * width * 2 * product.pairs + 1) + 1, 1, std::max<size_t>(most_sums / (rows * width), 1));
  const size_t groups = (panels + group - 1) / group;
  machine.pool().each(row_parts * groups, [&](size_t piece) {
    const size_t row = piece / groups * rows;
    const size_t begin = piece % groups * group;
    const size_t end = std::min(begin + group, panels);
    if (row >= product.rows) return;
    const size_t stride = (end - begin) * width;
    auto* const sums = reinterpret_cast<int32_t*>(scratch(2, rows * stride));
    ByteProduct part = product;
    part.rows = std::min(rows, product.rows - row);
    part.a += row * product.a_stride;
    loops.multiply(part, begin, end, sums, stride);
    finish({row, part.rows, begin * width, std::min(end * width, n) - begin * width, sums, stride});
  });
}

void spread_scales(const float* from, size_t count, size_t n, float* to) {
  for (size_t j = 0; j < n; ++j) to[j] = from[count == 1 ? 0 : j];
}

bool spread_zeros(const std::byte* from, bool is_signed, size_t count, size_t n, int32_t* to) {
  bool any = false;
  for (size_t j = 0; j < n; ++j) {
    const uint8_t byte = from == nullptr ? uint8_t{0} : byte_at(from, count == 1 ? 0 : j);
    to[j] = is_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte} - 128;
    any = any || to[j] != 0;
  }
  return any;
}

Support one_or_per_column(const OpCall& call, size_t input, size_t n) {
  if (!call.has(input)) return yes();
  const Shape& shape = call.input(input).shape;
  const bool per_column = shape.rank() > 0 && shape[shape.rank() - 1] == static_cast<int64_t>(n);
  if (shape.elements() == 1 || (per_column && shape.elements() == static_cast<int64_t>(n))) return yes();
  return no(Reason::Size, "input ", input, " of shape ", shape, " is not one number, nor one for each of ", n, " columns");
}

}  // namespace unmoor::cpu
