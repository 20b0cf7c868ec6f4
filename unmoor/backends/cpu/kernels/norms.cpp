#include <algorithm>
#include <cmath>
#include <cstring>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/walk.h"
#include "unmoor/backends/cpu/simd/rows.h"
#include "unmoor/ops/window.h"

namespace unmoor::cpu {

namespace {

Support takes_floats(const OpCall& call) { return inputs_are(call, {DType::F32}); }

// y = x / base^beta; the usual betas by roots.
void divide_by_power(const float* x, const float* base, float* y, size_t n, float beta) {
  if (beta == 0.75F) {
    for (size_t i = 0; i < n; ++i) {
      const float root = std::sqrt(base[i]);
      y[i] = x[i] / (root * std::sqrt(root));
    }
  } else if (beta == 0.5F) {
    for (size_t i = 0; i < n; ++i) y[i] = x[i] / std::sqrt(base[i]);
  } else if (beta == 1.0F) {
    for (size_t i = 0; i < n; ++i) y[i] = x[i] / base[i];
  } else {
    for (size_t i = 0; i < n; ++i) y[i] = x[i] / std::pow(base[i], beta);
  }
}

struct Response {
  size_t batch, channels, plane, before, after;
  float factor, beta, bias;
  bool last;

  // Channels [first, last] that channel c sees.
  size_t first_of(size_t c) const { return c < before ? 0 : c - before; }
  size_t last_of(size_t c) const { return std::min(channels - 1, c + std::min(after, channels)); }
};

Response response_of(const OpCall& call) {
  const Shape shape = canonical(call, call.input(0).shape);
  const auto size = static_cast<size_t>(call.integer("size", 1));
  const bool flat = shape.rank() < 2;
  const size_t before = (size - 1) / 2;
  return {flat ? static_cast<size_t>(shape.elements()) : static_cast<size_t>(shape[0]),
          flat ? 1 : static_cast<size_t>(shape[1]),
          flat ? 1 : static_cast<size_t>(shape.elements(2, shape.rank())),
          before,
          size - 1 - before,
          static_cast<float>(call.real("alpha", static_cast<double>(0.0001F)) / static_cast<double>(size)),
          static_cast<float>(call.real("beta", 0.75)),
          static_cast<float>(call.real("bias", 1)),
          !flat && channels_last(call)};
}

constexpr size_t piece = 512;  // Floats of scratch on the stack.

// A piece of a plane of one channel.
void respond(const Response& r, const float* item, size_t c, size_t begin, size_t end, float* y) {
  float base[piece] = {};
  const size_t n = end - begin;
  for (size_t k = r.first_of(c); k <= r.last_of(c); ++k) {
    const float* const row = item + k * r.plane + begin;
    for (size_t i = 0; i < n; ++i) base[i] += row[i] * row[i];
  }
  for (size_t i = 0; i < n; ++i) base[i] = r.bias + r.factor * base[i];
  divide_by_power(item + c * r.plane + begin, base, y + c * r.plane + begin, n, r.beta);
}

// All channels of one pixel of a channels-last image.
void respond_last(const Response& r, const float* x, float* y) {
  float base[piece];
  for (size_t first = 0; first < r.channels; first += piece) {
    const size_t n = std::min(piece, r.channels - first);
    for (size_t i = 0; i < n; ++i) {
      float sum = 0;
      for (size_t k = r.first_of(first + i); k <= r.last_of(first + i); ++k) sum += x[k] * x[k];
      base[i] = r.bias + r.factor * sum;
    }
    divide_by_power(x + first, base, y + first, n, r.beta);
  }
}

Prepared prepare_response(const OpCall& call, Device& device) {
  const bool empty = call.input(0).shape.elements() == 0;
  return {.run = [&machine = machine_of(device), r = response_of(call), empty](Stream&, const KernelArgs& args) {
    if (empty) return;
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    const size_t image = r.channels * r.plane;
    if (r.last) {
      machine.pool().ranges(r.batch * r.plane, 4096 / r.channels + 1, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) respond_last(r, x + i * r.channels, y + i * r.channels);
      });
      return;
    }
    const size_t pieces = (r.plane + piece - 1) / piece;
    machine.pool().ranges(r.batch * r.channels * pieces, 8192 / std::min(r.plane, piece) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t item = i / pieces / r.channels;
        const size_t from = i % pieces * piece;
        respond(r, x + item * image, i / pieces % r.channels, from, std::min(from + piece, r.plane), y + item * image);
      }
    });
  }};
}

// x divided by its p-norm along an axis; 0 where that is 0.
Prepared prepare_lp(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  return {.run = [&machine = machine_of(device), at = split_at(shape, shape.axis(call.integer("axis", -1))),
                  squares = call.integer("p", 2) == 2](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    constexpr size_t columns = 64;
    const size_t pieces = (at.inner + columns - 1) / columns;
    machine.pool().ranges(at.outer * pieces, 8192 / (at.length * std::min(at.inner, columns) + 1) + 1,
                          [&](size_t begin, size_t end) {
                            for (size_t i = begin; i < end; ++i) {
                              const size_t first = i / pieces * at.length * at.inner + i % pieces * columns;
                              const size_t n = std::min(columns, at.inner - i % pieces * columns);
                              double sums[columns] = {};
                              for (size_t row = 0; row < at.length; ++row) {
                                const float* const from = x + first + row * at.inner;
                                for (size_t j = 0; j < n; ++j)
                                  sums[j] += squares ? static_cast<double>(from[j]) * static_cast<double>(from[j])
                                                     : static_cast<double>(std::fabs(from[j]));
                              }
                              for (size_t j = 0; j < n; ++j) sums[j] = squares ? std::sqrt(sums[j]) : sums[j];
                              for (size_t row = 0; row < at.length; ++row) {
                                const float* const from = x + first + row * at.inner;
                                float* const to = y + first + row * at.inner;
                                for (size_t j = 0; j < n; ++j)
                                  to[j] = sums[j] == 0 ? 0.0F : static_cast<float>(static_cast<double>(from[j]) / sums[j]);
                              }
                            }
                          });
  }};
}

constexpr double mean_variance_epsilon = 1e-9;  // Added to the deviation in ONNX's definition.

// Kept and reduced axes of MeanVarianceNormalization, and the innermost run where it is reduced.
struct Statistics {
  std::vector<size_t> kept_dims, kept_steps, dims, steps;
  size_t run = 1;

  static size_t place(const std::vector<size_t>& dims, const std::vector<size_t>& steps, size_t index) {
    size_t at = 0;
    for (size_t i = dims.size(); i-- > 0;) {
      at += index % dims[i] * steps[i];
      index /= dims[i];
    }
    return at;
  }
  static size_t count(const std::vector<size_t>& dims) {
    size_t n = 1;
    for (const size_t dim : dims) n *= dim;
    return n;
  }
};

Statistics statistics_of(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  std::vector<bool> reduced(shape.rank(), false);
  for (const int64_t axis : call.integers("axes", {0, 2, 3})) reduced[shape.axis(axis)] = true;
  const std::vector<int64_t> steps = shape.strides();
  Statistics s;
  bool innermost = true;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    const auto dim = static_cast<size_t>(shape[axis]);
    innermost = innermost && reduced[axis];
    if (innermost) {
      s.run *= dim;
      continue;
    }
    std::vector<size_t>& dims = reduced[axis] ? s.dims : s.kept_dims;
    std::vector<size_t>& by = reduced[axis] ? s.steps : s.kept_steps;
    dims.insert(dims.begin(), dim);
    by.insert(by.begin(), static_cast<size_t>(steps[axis]));
  }
  return s;
}

// Groups with no run of their own are visited element by element.
Prepared prepare_mean_variance(const OpCall& call, Device& device) {
  const bool empty = call.input(0).shape.elements() == 0;
  return {.run = [&machine = machine_of(device), s = statistics_of(call), empty](Stream&, const KernelArgs& args) {
    if (empty) return;
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    const size_t parts = Statistics::count(s.dims);
    const auto n = static_cast<double>(parts * s.run);
    machine.pool().ranges(Statistics::count(s.kept_dims), 8192 / (parts * s.run + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t group = begin; group < end; ++group) {
        const size_t base = Statistics::place(s.kept_dims, s.kept_steps, group);
        const auto each = [&](auto&& visit) {
          for (size_t part = 0; part < parts; ++part) visit(base + Statistics::place(s.dims, s.steps, part));
        };
        double sum = 0;
        each([&](size_t at) {
          sum += s.run == 1 ? static_cast<double>(x[at]) : static_cast<double>(row_loops().sum(x + at, s.run));
        });
        const double mean = sum / n;
        double squares = 0;
        each([&](size_t at) {
          const double away = static_cast<double>(x[at]) - mean;
          squares += s.run == 1 ? away * away : static_cast<double>(row_loops().squares(x + at, s.run, static_cast<float>(mean)));
        });
        const auto factor = static_cast<float>(1 / (std::sqrt(squares / n) + mean_variance_epsilon));
        const auto shift = static_cast<float>(mean);
        each([&](size_t at) {
          for (size_t i = at; i < at + s.run; ++i) y[i] = (x[i] - shift) * factor;
        });
      }
    });
  }};
}

// The p-norm of each channel.
Prepared prepare_global_lp(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  const Shape first = canonical(call, shape);
  const bool last = channels_last(call);
  return {.run = [&machine = machine_of(device), planes = static_cast<size_t>(first.elements(0, 2)),
                  plane = static_cast<size_t>(first.elements(2, first.rank())), channels = static_cast<size_t>(first[1]), last,
                  p = static_cast<double>(call.integer("p", 2))](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    machine.pool().ranges(planes, 16384 / (plane + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const float* const from = last ? x + i / channels * channels * plane + i % channels : x + i * plane;
        const size_t step = last ? channels : 1;
        double sum = 0;
        for (size_t j = 0; j < plane; ++j) {
          const auto value = static_cast<double>(std::fabs(from[j * step]));
          sum += p == 1 ? value : p == 2 ? value * value : std::pow(value, p);
        }
        y[i] = static_cast<float>(p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p));
      }
    });
  }};
}

}  // namespace

void add_norm_kernels(KernelTable& table) {
  table.add("LRN", {.name = "cpu.lrn.planes", .supports = takes_floats, .prepare = prepare_response});
  table.add("LpNormalization",
            {.name = "cpu.lpnormalization.lines", .supports = takes_floats, .prepare = prepare_lp, .in_place = true});
  table.add("MeanVarianceNormalization", {.name = "cpu.meanvariancenormalization.groups",
                                          .supports = takes_floats,
                                          .prepare = prepare_mean_variance,
                                          .in_place = true});
  table.add("GlobalLpPool", {.name = "cpu.globallppool.planes", .supports = takes_floats, .prepare = prepare_global_lp});
}

}  // namespace unmoor::cpu
