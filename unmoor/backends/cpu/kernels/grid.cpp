#include <algorithm>
#include <array>
#include <cmath>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/resample.h"

namespace unmoor::cpu {

namespace {

enum class Mode { Nearest, Linear, Cubic };
enum class Padding { Zeros, Border, Reflection };

// How GridSample reads an axis.
struct AxisRule {
  Mode mode;
  Padding padding;
  bool align;
  int64_t length;
  double low, high;  // The borders.
};

// What a point takes from one axis: up to four elements; what padding turns to zero has no weight.
struct AxisTaps {
  std::array<int64_t, 4> from;
  std::array<float, 4> weight;
  size_t count = 0;
};

// Folds x back between the borders, as light between two mirrors.
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  if (x >= low && x <= high) return x;
  const double distance = std::fabs(x - (x < low ? low : high));
  const double turns = std::floor(distance / range);
  const double rest = distance - turns * range;
  const bool even = std::fmod(turns, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

void add_tap(const AxisRule& rule, int64_t from, double weight, AxisTaps& taps) {
  if (from < 0 || from >= rule.length) {
    if (rule.padding == Padding::Zeros) return;
    if (rule.padding == Padding::Reflection)
      from = static_cast<int64_t>(reflected(static_cast<double>(from), rule.low, rule.high));
    from = std::clamp<int64_t>(from, 0, rule.length - 1);
  }
  taps.from[taps.count] = from;
  taps.weight[taps.count++] = static_cast<float>(weight);
}

// The elements that a grid coordinate (-1 to 1 over the axis) is made from.
AxisTaps taps_at(const AxisRule& rule, float coordinate) {
  const auto length = static_cast<double>(rule.length);
  const auto at = static_cast<double>(coordinate);
  double x = rule.align ? (at + 1) / 2 * (length - 1) : ((at + 1) * length - 1) / 2;
  x = std::isnan(x) ? -1e9 : std::clamp(x, -1e9, 1e9);  // So far outside that only padding counts.
  if (rule.mode == Mode::Nearest) x = std::nearbyint(x);
  if (x < rule.low || x > rule.high) {
    if (rule.padding == Padding::Border) x = std::clamp(x, 0.0, length - 1);
    if (rule.padding == Padding::Reflection) x = reflected(x, rule.low, rule.high);
  }
  const double floor = std::floor(x);
  const auto left = static_cast<int64_t>(floor);
  AxisTaps taps{};
  if (rule.mode == Mode::Nearest) {
    add_tap(rule, left, 1, taps);
  } else if (rule.mode == Mode::Linear) {
    add_tap(rule, left, 1 - (x - floor), taps);
    add_tap(rule, left + 1, x - floor, taps);
  } else {
    const auto weights = cubic_weights(x - floor, -0.75);
    for (size_t i = 0; i < weights.size(); ++i) add_tap(rule, left - 1 + static_cast<int64_t>(i), weights[i], taps);
  }
  return taps;
}

constexpr size_t most_axes = 3;
constexpr size_t most_taps = 64;

// A point's elements in a plane.
struct PointTaps {
  std::array<uint32_t, most_taps> from;
  std::array<float, most_taps> weight;
  size_t count;
};

struct Sampling {
  std::vector<AxisRule> rules;  // By spatial axis.
  size_t batch, channels, plane, points;
  std::vector<size_t> steps;  // Of the spatial axes.
};

// A grid point lists x first, the last axis. Elements without weight are not read: they may be infinite.
void combine(const Sampling& s, const float* grid, PointTaps& taps) {
  taps.count = 1;
  taps.from[0] = 0;
  taps.weight[0] = 1;
  const size_t spatial = s.rules.size();
  for (size_t axis = 0; axis < spatial; ++axis) {
    const AxisTaps more = taps_at(s.rules[axis], grid[spatial - 1 - axis]);
    PointTaps next;
    next.count = 0;
    for (size_t i = 0; i < taps.count; ++i) {
      for (size_t k = 0; k < more.count; ++k) {
        if (more.weight[k] == 0) continue;
        next.from[next.count] = taps.from[i] + static_cast<uint32_t>(static_cast<size_t>(more.from[k]) * s.steps[axis]);
        next.weight[next.count++] = taps.weight[i] * more.weight[k];
      }
    }
    std::copy_n(next.from.begin(), next.count, taps.from.begin());
    std::copy_n(next.weight.begin(), next.count, taps.weight.begin());
    taps.count = next.count;
  }
}

Support supports_grid(const OpCall& call) {
  if (Support types = inputs_are(call, {DType::F32}); !types) return types;
  const Shape& shape = call.input(0).shape;
  const size_t spatial = shape.rank() - 2;
  if (spatial > most_axes) return no(Reason::Rank, spatial, " spatial axes");
  if (call.input(0).shape.elements() == 0 || call.output(0).shape.elements() == 0) return no(Reason::Size, "an empty input");
  return shape.elements(2, shape.rank()) < int64_t{1} << 32 ? yes() : no(Reason::Size, "planes of 2^32 elements or more");
}

Sampling sampling_of(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  const std::string mode = call.text("mode", "linear");
  const std::string padding = call.text("padding_mode", "zeros");
  const bool align = call.integer("align_corners", 0) != 0;
  const std::vector<int64_t> steps = shape.strides();
  Sampling sampling{{},
                    static_cast<size_t>(shape[0]),
                    static_cast<size_t>(shape[1]),
                    static_cast<size_t>(shape.elements(2, shape.rank())),
                    static_cast<size_t>(call.output(0).shape.elements(2, shape.rank())),
                    {}};
  for (size_t axis = 2; axis < shape.rank(); ++axis) {
    const auto length = static_cast<double>(shape[axis]);
    sampling.rules.push_back({mode == "nearest"                      ? Mode::Nearest
                              : mode == "cubic" || mode == "bicubic" ? Mode::Cubic
                                                                     : Mode::Linear,
                              padding == "zeros"    ? Padding::Zeros
                              : padding == "border" ? Padding::Border
                                                    : Padding::Reflection,
                              align, shape[axis], align ? 0 : -0.5, length - (align ? 1 : 0.5)});
    sampling.steps.push_back(static_cast<size_t>(steps[axis]));
  }
  return sampling;
}

// The sum over a point's elements; most have the four of linear interpolation.
float sampled(const PointTaps& point, const float* plane) {
  const auto at = [&](size_t k) { return point.weight[k] * plane[point.from[k]]; };
  if (point.count == 4) return (at(0) + at(1)) + (at(2) + at(3));
  float sum = 0;
  for (size_t k = 0; k < point.count; ++k) sum += at(k);
  return sum;
}

// Weights of a block of points once for all channels.
Prepared prepare_grid(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), s = sampling_of(call)](Stream&, const KernelArgs& args) {
    constexpr size_t block = 32;
    const size_t blocks = (s.points + block - 1) / block;
    const float* const x = input_as(args, 0);
    const float* const grid = input_as(args, 1);
    float* const y = output_as(args, 0);
    machine.pool().ranges(s.batch * blocks, 1024 / (block * (s.channels + 4)) + 1, [&](size_t begin, size_t end) {
      std::vector<PointTaps> taps(block);
      for (size_t i = begin; i < end; ++i) {
        const size_t item = i / blocks;
        const size_t first = i % blocks * block;
        const size_t count = std::min(block, s.points - first);
        for (size_t p = 0; p < count; ++p) combine(s, grid + (item * s.points + first + p) * s.rules.size(), taps[p]);
        for (size_t c = item * s.channels; c < (item + 1) * s.channels; ++c) {
          for (size_t p = 0; p < count; ++p) y[c * s.points + first + p] = sampled(taps[p], x + c * s.plane);
        }
      }
    });
  }};
}

// The grid that an affine map gives.
struct Affine {
  size_t batch, points, spatial;
  std::vector<std::vector<double>> places;  // By coordinate, x first: of each step along its axis.
};

Prepared prepare_affine(const OpCall& call, Device& device) {
  const Shape& shape = call.output(0).shape;
  const size_t spatial = shape.rank() - 2;
  Affine affine{static_cast<size_t>(shape[0]), static_cast<size_t>(shape.elements(1, shape.rank() - 1)), spatial, {}};
  const bool align = call.integer("align_corners", 0) != 0;
  for (size_t k = 0; k < spatial; ++k) {
    const auto length = static_cast<double>(shape[spatial - k]);
    std::vector<double>& places = affine.places.emplace_back();
    for (int64_t i = 0; i < shape[spatial - k] && shape.elements() != 0; ++i) {
      const auto at = static_cast<double>(i);
      places.push_back(align ? (length == 1 ? 0 : 2 * at / (length - 1) - 1) : (2 * at + 1) / length - 1);
    }
  }
  if (shape.elements() == 0) affine.batch = 0;
  return {.run = [&machine = machine_of(device), a = std::move(affine)](Stream&, const KernelArgs& args) {
    const float* const theta = input_as(args, 0);
    float* const y = output_as(args, 0);
    machine.pool().ranges(a.batch * a.points, 4096, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        std::array<double, most_axes> at{};
        size_t rest = i % a.points;
        for (size_t k = 0; k < a.spatial; ++k) {
          at[k] = a.places[k][rest % a.places[k].size()];
          rest /= a.places[k].size();
        }
        for (size_t r = 0; r < a.spatial; ++r) {
          const float* const row = theta + (i / a.points * a.spatial + r) * (a.spatial + 1);
          auto sum = static_cast<double>(row[a.spatial]);
          for (size_t k = 0; k < a.spatial; ++k) sum += static_cast<double>(row[k]) * at[k];
          y[i * a.spatial + r] = static_cast<float>(sum);
        }
      }
    });
  }};
}

}  // namespace

void add_grid_kernels(KernelTable& table) {
  table.add("GridSample", {.name = "cpu.gridsample.points", .supports = supports_grid, .prepare = prepare_grid});
  table.add("AffineGrid", {.name = "cpu.affinegrid.points",
                           .supports = [](const OpCall& call) { return input_is(call, 0, {DType::F32}); },
                           .prepare = prepare_affine});
}

}  // namespace unmoor::cpu
