#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/rows.h"
#include "unmoor/ops/window.h"

namespace unmoor::cpu {

namespace {

enum class Last { Nothing, Mean, Root, Log };

struct ReduceOp {
  const char* op;
  const char* kernel;
  Reduction reduction;
  Last last = Last::Nothing;
};
constexpr ReduceOp reduce_ops[] = {
    {"ReduceSum", "cpu.reducesum.rows", Reduction::Sum},
    {"ReduceMean", "cpu.reducemean.rows", Reduction::Sum, Last::Mean},
    {"ReduceMax", "cpu.reducemax.rows", Reduction::Max},
    {"ReduceMin", "cpu.reducemin.rows", Reduction::Min},
    {"ReduceProd", "cpu.reduceprod.rows", Reduction::Prod},
    {"ReduceL1", "cpu.reducel1.rows", Reduction::L1},
    {"ReduceL2", "cpu.reducel2.rows", Reduction::SumSquare, Last::Root},
    {"ReduceSumSquare", "cpu.reducesumsquare.rows", Reduction::SumSquare},
    {"ReduceLogSum", "cpu.reducelogsum.rows", Reduction::Sum, Last::Log},
    {"GlobalAveragePool", "cpu.globalaveragepool.rows", Reduction::Sum, Last::Mean},
    {"GlobalMaxPool", "cpu.globalmaxpool.rows", Reduction::Max},
};

float neutral(Reduction reduction) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return reduction == Reduction::Max ? -infinity : reduction == Reduction::Min ? infinity : reduction == Reduction::Prod ? 1.0F : 0.0F;
}

// Two partial results as one.
float join(Reduction reduction, float a, float b) {
  switch (reduction) {
    case Reduction::Max: return std::isnan(a) || a > b ? a : b;
    case Reduction::Min: return std::isnan(a) || a < b ? a : b;
    case Reduction::Prod: return a * b;
    default: return a + b;
  }
}

void finish(Last last, float count, float* y, size_t n) {
  for (size_t i = 0; i < n && last != Last::Nothing; ++i) {
    y[i] = last == Last::Mean ? y[i] / count : last == Last::Root ? std::sqrt(y[i]) : std::log(y[i]);
  }
}

// Some axes of a tensor, walked in row-major order.
struct Axes {
  std::vector<size_t> dims = {};
  std::vector<size_t> strides = {};

  size_t count() const {
    size_t n = 1;
    for (const size_t dim : dims) n *= dim;
    return n;
  }
  size_t offset(size_t index) const {
    size_t at = 0;
    for (size_t i = dims.size(); i-- > 0;) {
      at += index % dims[i] * strides[i];
      index /= dims[i];
    }
    return at;
  }
};

// A reduction as walks over kept and reduced axes, and the innermost run, which is either.
struct Walk {
  Axes kept;
  Axes reduced;
  size_t run = 1;
  bool run_is_reduced = false;
};

Walk walk_of(const Shape& shape, const std::vector<bool>& reduced) {
  Walk walk;
  size_t step = 1;
  bool first = true;
  bool in_run = true;
  for (size_t i = shape.rank(); i-- > 0;) {
    const auto dim = static_cast<size_t>(shape[i]);
    if (dim == 1) continue;
    if (first) walk.run_is_reduced = reduced[i];
    first = false;
    in_run = in_run && reduced[i] == walk.run_is_reduced;
    if (in_run) {
      walk.run *= dim;
    } else {
      Axes& axes = reduced[i] ? walk.reduced : walk.kept;
      axes.dims.insert(axes.dims.begin(), dim);
      axes.strides.insert(axes.strides.begin(), step);
    }
    step *= dim;
  }
  return walk;
}

// Which axes go, or nothing if that is not known before it runs.
std::optional<std::vector<bool>> reduced_axes(const OpCall& call) {
  const size_t rank = call.input(0).shape.rank();
  std::vector<bool> reduced(rank, true);
  if (call.node.op.starts_with("Global")) {
    if (rank > 0) reduced[0] = false;
    if (rank > 1) reduced[channels_last(call) ? rank - 1 : 1] = false;
    return reduced;
  }
  std::vector<int64_t> axes;
  if (call.has(1)) {
    if (call.constant(1) == nullptr) return std::nullopt;
    const auto values = call.constant(1)->span<int64_t>();
    axes.assign(values.begin(), values.end());
  }
  if (axes.empty()) {
    return call.integer("noop_with_empty_axes", 0) == 0 ? reduced : std::vector<bool>(rank, false);
  }
  reduced.assign(rank, false);
  for (const int64_t axis : axes) reduced[call.input(0).shape.axis(axis)] = true;
  return reduced;
}

Support supports_reduce(const OpCall& call) {
  if (Support types = input_is(call, 0, {DType::F32}); !types) {
    return types;
  }
  if (call.input(0).shape.elements() == 0) {
    return no(Reason::Size, "an empty input");
  }
  return reduced_axes(call) ? yes() : no(Reason::Dynamic, "axes are not constant");
}

struct Reducer {
  const Machine& machine;
  const RowLoops& loops;
  Walk walk;
  Reduction reduction;
  Last last;

  void run(const float* x, float* y) const;
  void run_rows(const float* x, float* y) const;
  void run_columns(const float* x, float* y) const;
  void run_logarithm(const float* x, float* y) const;
  float count() const { return static_cast<float>(walk.reduced.count() * (walk.run_is_reduced ? walk.run : 1)); }
};

// The innermost run is summed: one result for each place of the kept axes.
void Reducer::run_rows(const float* x, float* y) const {
  const auto reduce = loops.reduce[static_cast<size_t>(reduction)];
  const size_t parts = walk.reduced.count();
  machine.pool().ranges(walk.kept.count(), 16384 / (walk.run * parts + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float* const from = x + walk.kept.offset(i);
      float result = reduce(from + walk.reduced.offset(0), walk.run, neutral(reduction));
      for (size_t j = 1; j < parts; ++j) {
        result = join(reduction, result, reduce(from + walk.reduced.offset(j), walk.run, neutral(reduction)));
      }
      y[i] = result;
    }
    finish(last, count(), y + begin, end - begin);
  });
}

bool adds(Reduction reduction) { return reduction != Reduction::Max && reduction != Reduction::Min && reduction != Reduction::Prod; }

// The innermost run is kept: rows are added up, a block of them apart, so that the rounding of a long sum does not grow with its length.
void Reducer::run_columns(const float* x, float* y) const {
  constexpr size_t most = 1024;
  constexpr size_t block = 32;
  const auto merge = loops.merge[static_cast<size_t>(reduction)];
  const auto add = loops.merge[static_cast<size_t>(Reduction::Sum)];
  const size_t pieces = (walk.run + most - 1) / most;
  const size_t parts = walk.reduced.count();
  machine.pool().ranges(walk.kept.count() * pieces, 16384 / (std::min(walk.run, most) * parts + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t column = i % pieces * most;
      const size_t n = std::min(most, walk.run - column);
      const float* const from = x + walk.kept.offset(i / pieces) + column;
      float* const to = y + i / pieces * walk.run + column;
      std::fill(to, to + n, neutral(reduction));
      if (!adds(reduction) || parts <= block) {
        for (size_t j = 0; j < parts; ++j) merge(from + walk.reduced.offset(j), to, n);
      } else {
        std::array<float, most> sums;
        for (size_t first = 0; first < parts; first += block) {
          std::fill_n(sums.begin(), n, 0.0F);
          for (size_t j = first; j < std::min(first + block, parts); ++j) merge(from + walk.reduced.offset(j), sums.data(), n);
          add(sums.data(), to, n);
        }
      }
      finish(last, count(), to, n);
    }
  });
}

void Reducer::run(const float* x, float* y) const {
  if (walk.run_is_reduced) {
    run_rows(x, y);
  } else {
    run_columns(x, y);
  }
}

// log Σ e^x, the greatest x taken out, which is left in y by a reduction of its own. Where it is infinite it decides the result.
void Reducer::run_logarithm(const float* x, float* y) const {
  run(x, y);
  const size_t parts = walk.reduced.count();
  const size_t columns = walk.run_is_reduced ? 1 : walk.run;  // Results next to each other.
  const size_t length = walk.run_is_reduced ? walk.run : 1;
  machine.pool().ranges(walk.kept.count() * columns, 4096 / (length * parts + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float* const from = x + walk.kept.offset(i / columns) + i % columns;
      const float top = std::isfinite(y[i]) ? y[i] : 0.0F;
      double sum = 0;
      for (size_t j = 0; j < parts; ++j) {
        const float* const line = from + walk.reduced.offset(j);
        for (size_t k = 0; k < length; ++k) sum += static_cast<double>(std::exp(line[k] - top));
      }
      y[i] = top + static_cast<float>(std::log(sum));
    }
  });
}

Kernel log_sum_exp_kernel() {
  return {.name = "cpu.reducelogsumexp.rows",
          .supports = supports_reduce,
          .prepare = [](const OpCall& call, Device& device) -> Prepared {
            Reducer reducer{machine_of(device), row_loops(), walk_of(call.input(0).shape, *reduced_axes(call)), Reduction::Max, Last::Nothing};
            return {.run = [reducer = std::move(reducer)](Stream&, const KernelArgs& args) {
              reducer.run_logarithm(reinterpret_cast<const float*>(args.inputs[0].host()), reinterpret_cast<float*>(args.outputs[0].host()));
            }};
          }};
}

Kernel reduce_kernel(const ReduceOp& one) {
  return {.name = one.kernel,
          .supports = supports_reduce,
          .prepare =
              [one](const OpCall& call, Device& device) -> Prepared {
                Reducer reducer{machine_of(device), row_loops(), walk_of(call.input(0).shape, *reduced_axes(call)), one.reduction, one.last};
                return {.run = [reducer = std::move(reducer)](Stream&, const KernelArgs& args) {
                  reducer.run(reinterpret_cast<const float*>(args.inputs[0].host()), reinterpret_cast<float*>(args.outputs[0].host()));
                }};
              }};
}

// The place of the first greatest or least of n elements; NaN is either.
size_t best_of(const float* line, size_t n, size_t step, bool greatest) {
  size_t best = 0;
  for (size_t j = 0; j < n && !std::isnan(line[best * step]); ++j) {
    const float value = line[j * step];
    if (std::isnan(value) || (greatest ? value > line[best * step] : value < line[best * step])) best = j;
  }
  return best;
}

Prepared prepare_arg(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  const size_t axis = shape.axis(call.integer("axis", 0));
  const auto outer = static_cast<size_t>(shape.elements(0, axis));
  const auto length = static_cast<size_t>(shape[axis]);
  const auto inner = static_cast<size_t>(shape.elements(axis + 1, shape.rank()));
  const bool greatest = call.node.op == "ArgMax";
  return {.run = [&machine = machine_of(device), outer, length, inner, greatest](Stream&, const KernelArgs& args) {
    const float* const x = reinterpret_cast<const float*>(args.inputs[0].host());
    auto* const y = reinterpret_cast<int64_t*>(args.outputs[0].host());
    machine.pool().ranges(outer * inner, 8192 / (length + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        y[i] = static_cast<int64_t>(best_of(x + i / inner * length * inner + i % inner, length, inner, greatest));
      }
    });
  }};
}

Support supports_arg(const OpCall& call) {
  if (Support types = all_of(inputs_are(call, {DType::F32}), integer_is(call, "select_last_index", 0, 0)); !types) {
    return types;
  }
  return call.input(0).shape.rank() == 0 ? no(Reason::Rank, "a scalar") : call.input(0).shape.elements() == 0 ? no(Reason::Size, "an empty input") : yes();
}

}  // namespace

void add_reduce_kernels(KernelTable& table) {
  for (const ReduceOp& one : reduce_ops) table.add(one.op, reduce_kernel(one));
  table.add("ReduceLogSumExp", log_sum_exp_kernel());
  table.add("ArgMax", {.name = "cpu.argmax.line", .supports = supports_arg, .prepare = prepare_arg});
  table.add("ArgMin", {.name = "cpu.argmin.line", .supports = supports_arg, .prepare = prepare_arg});
}

}  // namespace unmoor::cpu
