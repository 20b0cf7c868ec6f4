#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/functions.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/random.h"

namespace unmoor::cpu {

namespace {

Support takes_floats(const OpCall& call) { return inputs_are(call, {DType::F32}); }

// CausalConvWithState: each channel of each item convolved with what came before it.
struct Causal {
  size_t rows, channels, length, before;
  bool swish;
};

void convolve_row(const Causal& c, const KernelArgs& args, size_t row, float* line) {
  const float* const past = input_as(args, 3);
  if (past == nullptr) {
    std::fill_n(line, c.before, 0.0F);
  } else {
    std::copy_n(past + row * c.before, c.before, line);
  }
  std::copy_n(input_as(args, 0) + row * c.length, c.length, line + c.before);
  const float* const bias = input_as(args, 2);
  const float* const weights = input_as(args, 1) + row % c.channels * (c.before + 1);
  if (float* const y = output_as(args, 0)) {
    float* const to = y + row * c.length;
    std::fill_n(to, c.length, bias == nullptr ? 0.0F : bias[row % c.channels]);
    for (size_t j = 0; j <= c.before; ++j) {
      for (size_t t = 0; t < c.length; ++t) to[t] += weights[j] * line[t + j];
    }
    if (c.swish) unary_loop(Function::Swish)(to, to, c.length, 1, 0);
  }
  if (float* const state = output_as(args, 1)) std::copy_n(line + c.length, c.before, state + row * c.before);
}

Prepared prepare_causal(const OpCall& call, Device& device) {
  const Shape& x = call.input(0).shape;
  const Causal causal{static_cast<size_t>(x.elements(0, 2)), static_cast<size_t>(x[1]), static_cast<size_t>(x[2]),
                      static_cast<size_t>(call.input(1).shape[2]) - 1, call.text("activation", "none") != "none"};
  const size_t rows = x.elements() == 0 && causal.before == 0 ? 0 : causal.rows;  // Rows of nothing may be 2^40.
  return {.run = [&machine = machine_of(device), c = causal, rows](Stream&, const KernelArgs& args) {
    machine.pool().ranges(rows, 16384 / ((c.length + 1) * (c.before + 1)) + 1, [&](size_t begin, size_t end) {
      float* const line = scratch(0, c.before + c.length + 1);
      for (size_t row = begin; row < end; ++row) convolve_row(c, args, row, line);
    });
  }};
}

// LinearAttention: a state of keys times values that each step fades, corrects, writes and reads.
struct Linear {
  size_t batch, length, heads, shared, depth, width;
  size_t decays;  // Of a head and step: 0, 1, or one for each element of the key.
  bool one_beta;
  float scale;
};

Linear linear_of(const OpCall& call) {
  const auto dim = [](int64_t size) { return static_cast<size_t>(size); };
  const Shape& query = call.input(0).shape;
  Linear l{};
  l.batch = dim(query[0]);
  l.length = dim(query[1]);
  l.heads = dim(call.integer("q_num_heads", 1));
  l.shared = dim(call.integer("kv_num_heads", 1));
  l.depth = dim(query[2]) / l.heads;
  l.width = dim(call.input(2).shape[2]) / l.shared;
  l.decays = call.has(4) ? dim(call.input(4).shape[2]) / l.shared : 0;
  l.one_beta = call.has(5) && call.input(5).shape[2] == 1;
  const double scale = call.real("scale", 0);
  l.scale = static_cast<float>(scale != 0 ? scale : l.depth == 0 ? 1 : 1 / std::sqrt(static_cast<double>(l.depth)));
  return l;
}

// One step of one key head. `written` holds `width` floats.
void step_state(const Linear& l, const KernelArgs& args, size_t step, size_t head, float* state, float* written) {
  const size_t at = step * l.shared + head;
  const float* const key = input_as(args, 1) + at * l.depth;
  const float* const value = input_as(args, 2) + at * l.width;
  if (l.decays > 0) {
    const float* const decay = input_as(args, 4) + at * l.decays;
    for (size_t c = 0; c < l.depth; ++c) {
      const float factor = std::exp(decay[l.decays == 1 ? 0 : c]);
      for (size_t m = 0; m < l.width; ++m) state[c * l.width + m] *= factor;
    }
  }
  std::copy_n(value, l.width, written);
  if (const float* const beta = input_as(args, 5)) {
    const float factor = beta[l.one_beta ? step : at];
    for (size_t c = 0; c < l.depth; ++c) {
      for (size_t m = 0; m < l.width; ++m) written[m] -= state[c * l.width + m] * key[c];
    }
    for (size_t m = 0; m < l.width; ++m) written[m] *= factor;
  }
  for (size_t c = 0; c < l.depth; ++c) {
    for (size_t m = 0; m < l.width; ++m) state[c * l.width + m] += key[c] * written[m];
  }
  const size_t group = l.heads / l.shared;
  for (size_t g = 0; g < group; ++g) {
    const size_t reader = step * l.heads + head * group + g;
    const float* const query = input_as(args, 0) + reader * l.depth;
    float* const y = output_as(args, 0) + reader * l.width;
    std::fill_n(y, l.width, 0.0F);
    for (size_t c = 0; c < l.depth; ++c) {
      for (size_t m = 0; m < l.width; ++m) y[m] += query[c] * state[c * l.width + m];
    }
    for (size_t m = 0; m < l.width; ++m) y[m] *= l.scale;
  }
}

Support supports_linear(const OpCall& call) {
  if (Support types = takes_floats(call); !types) return types;
  if (!call.wants_output(0)) return no(Reason::Attribute, "no output is wanted");
  return call.output(0).shape.elements() == 0 ? no(Reason::Size, "an empty result") : yes();
}

Prepared prepare_linear(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), l = linear_of(call)](Stream&, const KernelArgs& args) {
    const size_t size = l.depth * l.width;
    machine.pool().each(l.batch * l.shared, [&](size_t i) {
      float* const state = scratch(0, size + 1);
      float* const written = scratch(1, l.width);
      const float* const past = input_as(args, 3);
      if (past == nullptr) {
        std::fill_n(state, size, 0.0F);
      } else {
        std::copy_n(past + i * size, size, state);
      }
      for (size_t t = 0; t < l.length; ++t) step_state(l, args, i / l.shared * l.length + t, i % l.shared, state, written);
      if (float* const present = output_as(args, 1)) std::copy_n(state, size, present + i * size);
    });
  }};
}

// By elimination with the greatest pivot of each column, in double; `a` is overwritten.
double determinant(double* a, size_t side) {
  double product = 1;
  for (size_t k = 0; k < side; ++k) {
    size_t pivot = k;
    for (size_t row = k + 1; row < side; ++row) {
      if (std::fabs(a[row * side + k]) > std::fabs(a[pivot * side + k])) pivot = row;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * side, a + (k + 1) * side, a + pivot * side);
      product = -product;
    }
    const double first = a[k * side + k];
    product *= first;
    if (first == 0) return product;
    for (size_t row = k + 1; row < side; ++row) {
      const double factor = a[row * side + k] / first;
      for (size_t column = k + 1; column < side; ++column) a[row * side + column] -= factor * a[k * side + column];
    }
  }
  return product;
}

Prepared prepare_det(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  return {.run = [&machine = machine_of(device), side = static_cast<size_t>(shape[shape.rank() - 1]),
                  count = static_cast<size_t>(call.output(0).shape.elements())](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    machine.pool().ranges(count, 16384 / (side * side * side + 1) + 1, [&](size_t begin, size_t end) {
      std::vector<double> a(side * side);
      for (size_t i = begin; i < end; ++i) {
        std::copy_n(x + i * a.size(), a.size(), a.begin());
        y[i] = static_cast<float>(determinant(a.data(), side));
      }
    });
  }};
}

// Multinomial: draws by the inverse of the cumulated probabilities, which are the exponentials of the input.
struct Draw {
  std::string who;
  CounterRandom random;
  size_t rows, samples, classes;
  bool wide;
};

void draw_row(const Draw& d, const KernelArgs& args, size_t row, std::vector<double>& cumulated) {
  const float* const x = input_as(args, 0) + row * d.classes;
  const float largest = *std::max_element(x, x + d.classes);
  double sum = 0;
  for (size_t c = 0; c < d.classes; ++c) cumulated[c] = sum += std::exp(static_cast<double>(x[c]) - static_cast<double>(largest));
  for (size_t s = row * d.samples; s < (row + 1) * d.samples; ++s) {
    const double at = d.random.unit(s) * sum;
    // The first whose sum passes the place; the last where none does.
    const auto found = std::partition_point(cumulated.begin(), cumulated.end() - 1, [at](double value) { return value <= at; });
    const auto chosen = found - cumulated.begin();
    if (d.wide) {
      output_as<int64_t>(args, 0)[s] = chosen;
    } else {
      output_as<int32_t>(args, 0)[s] = static_cast<int32_t>(chosen);
    }
  }
}

Prepared prepare_draw(const OpCall& call, Device& device) {
  const Shape& shape = call.output(0).shape;
  Draw draw{title(call),
            CounterRandom(call),
            static_cast<size_t>(shape[0]),
            static_cast<size_t>(shape[1]),
            static_cast<size_t>(call.input(0).shape[1]),
            call.output(0).dtype == DType::I64};
  if (draw.samples == 0) draw.rows = 0;
  return {.run = [&machine = machine_of(device), draw = std::move(draw)](Stream&, const KernelArgs& args) {
    if (draw.classes == 0 && draw.rows > 0) fail(ErrorKind::InvalidArgument, draw.who, ": there are no classes to draw from");
    machine.pool().ranges(draw.rows, 4096 / (draw.classes + draw.samples + 1) + 1, [&](size_t begin, size_t end) {
      std::vector<double> cumulated(draw.classes);
      for (size_t row = begin; row < end; ++row) draw_row(draw, args, row, cumulated);
    });
  }};
}

}  // namespace

void add_state_kernels(KernelTable& table) {
  table.add("CausalConvWithState", {.name = "cpu.causalconvwithstate.rows", .supports = takes_floats, .prepare = prepare_causal});
  table.add("LinearAttention", {.name = "cpu.linearattention.heads", .supports = supports_linear, .prepare = prepare_linear});
  table.add("Det", {.name = "cpu.det.elimination", .supports = takes_floats, .prepare = prepare_det});
  table.add("Multinomial", {.name = "cpu.multinomial.rows", .supports = takes_floats, .prepare = prepare_draw});
}

}  // namespace unmoor::cpu
