#include <algorithm>
#include <cmath>
#include <numeric>

#include "unmoor/backends/cpu/kernels/broadcast.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/functions.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/random.h"

namespace unmoor::cpu {

namespace {

enum class Fold { Sum, Mean, Max, Min };

float folded(Fold fold, float a, float b) {
  if (fold == Fold::Sum || fold == Fold::Mean) return a + b;
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return (fold == Fold::Max ? a < b : b < a) ? b : a;
}

// Any number of inputs, broadcast: rows of the result's last axis, in which an input steps by one or stands still.
struct Folding {
  Fold fold;
  size_t rows = 1, row = 1;
  std::vector<int64_t> dims;                // Of the result's axes but the last.
  std::vector<std::vector<int64_t>> steps;  // By input and axis.

  size_t place(size_t input, size_t index) const {
    size_t at = 0;
    for (size_t i = dims.size(); i-- > 0;) {
      at += index % static_cast<size_t>(dims[i]) * static_cast<size_t>(steps[input][i]);
      index /= static_cast<size_t>(dims[i]);
    }
    return at;
  }
};

Folding folding_of(const OpCall& call, Fold fold) {
  Shape shape = call.output(0).shape;
  const auto flat = [](const Shape& from) { return Shape{from.elements()}; };
  bool same = true;
  for (size_t k = 0; k < call.input_count(); ++k) same = same && call.input(k).shape == shape;
  if (same || shape.rank() == 0) shape = flat(shape);
  Folding folding{
      fold, static_cast<size_t>(shape.elements(0, shape.rank() - 1)), static_cast<size_t>(shape[shape.rank() - 1]), {}, {}};
  folding.dims.assign(shape.dims().begin(), shape.dims().end() - 1);
  for (size_t k = 0; k < call.input_count(); ++k) {
    folding.steps.push_back(broadcast_strides(same ? shape : call.input(k).shape, shape));
  }
  return folding;
}

void fold_piece(const Folding& f, const KernelArgs& args, size_t row, size_t begin, size_t end, float* y) {
  for (size_t k = 0; k < f.steps.size(); ++k) {
    const float* const x = input_as(args, k) + f.place(k, row);
    const bool moves = f.steps[k].back() != 0;
    for (size_t j = begin; j < end; ++j) {
      const float value = x[moves ? j : 0];
      y[j] = k == 0 ? value : folded(f.fold, y[j], value);
    }
  }
  if (f.fold != Fold::Mean) return;
  for (size_t j = begin; j < end; ++j) y[j] /= static_cast<float>(f.steps.size());
}

Kernel fold_kernel(const char* name, Fold fold) {
  return {.name = name,
          .supports = [](const OpCall& call) { return inputs_are(call, {DType::F32}); },
          .prepare = [fold](const OpCall& call, Device& device) -> Prepared {
            return {.run = [&machine = machine_of(device), folding = folding_of(call, fold)](Stream&, const KernelArgs& args) {
              constexpr size_t most = 2048;  // Stays in the first cache while all inputs are added.
              const size_t pieces = (folding.row + most - 1) / most;
              float* const y = output_as(args, 0);
              machine.pool().ranges(folding.rows * pieces, 16384 / (std::min(folding.row, most) + 1) + 1,
                                    [&](size_t first, size_t last) {
                                      for (size_t i = first; i < last; ++i) {
                                        const size_t begin = i % pieces * most;
                                        fold_piece(folding, args, i / pieces, begin, std::min(begin + most, folding.row),
                                                   y + i / pieces * folding.row);
                                      }
                                    });
            }};
          }};
}

// The remainder: with the dividend's sign if `fmod`, else with the divisor's. 0 for integers modulo 0.
template <class T>
T modulo(T a, T b, bool fmod) {
  if constexpr (std::is_same_v<T, float>) {
    const float rest = std::fmod(a, b);
    if (fmod || std::isnan(rest)) return rest;
    if (rest == 0) return std::copysign(0.0F, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    if (b == 0 || b == -1) return 0;
    const T rest = a % b;
    return !fmod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}

template <class T>
Prepared prepare_modulo(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), plan = broadcast_of(call, 2), fmod = call.integer("fmod", 0) != 0](
                     Stream&, const KernelArgs& args) {
    const T* const a = input_as<T>(args, 0);
    const T* const b = input_as<T>(args, 1);
    T* const y = output_as<T>(args, 0);
    for_rows(machine.pool(), plan, [&](size_t out, const Broadcast::Offsets& in, size_t n) {
      for (size_t i = 0; i < n; ++i)
        y[out + i] = modulo(a[in[0] + (plan.moves[0] ? i : 0)], b[in[1] + (plan.moves[1] ? i : 0)], fmod);
    });
  }};
}

Kernel modulo_kernel() {
  return {.name = "cpu.mod.broadcast",
          .supports =
              [](const OpCall& call) {
                return inputs_are(call, {DType::F32, DType::I32, DType::I64});
              },
          .prepare =
              [](const OpCall& call, Device& device) {
                switch (call.input(0).dtype) {
                  case DType::F32:
                    return prepare_modulo<float>(call, device);
                  case DType::I32:
                    return prepare_modulo<int32_t>(call, device);
                  default:
                    return prepare_modulo<int64_t>(call, device);
                }
              }};
}

// The gate's Swish times the other input.
Prepared prepare_swiglu(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), n = static_cast<size_t>(call.output(0).shape.elements()),
                  alpha = static_cast<float>(call.real("alpha", 1)),
                  swish = unary_loop(Function::Swish)](Stream&, const KernelArgs& args) {
    const float* const a = input_as(args, 0);
    const float* const b = input_as(args, 1);
    float* const y = output_as(args, 0);
    machine.pool().ranges(n, 16384, [&](size_t begin, size_t end) {
      for (size_t first = begin; first < end; first += 2048) {
        const size_t last = std::min(first + 2048, end);
        swish(a + first, y + first, last - first, alpha, 0);
        for (size_t i = first; i < last; ++i) y[i] *= b[i];
      }
    });
  }};
}

Support supports_dropout(const OpCall& call) {
  if (Support types = input_is(call, 0, {DType::F32}); !types) return types;
  for (size_t i = 1; i < call.input_count(); ++i) {
    if (call.has(i) && call.input(i).shape.elements() != 1) return no(Reason::Size, "input ", i, " of ", call.input(i).shape);
  }
  return call.has(1) ? input_is(call, 1, {DType::F32}) : yes();
}

// What is dropped when training is chosen by its place, as the reference chooses it.
Prepared prepare_dropout(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), who = title(call), random = CounterRandom(call.integer("seed", 0)),
                  n = static_cast<size_t>(call.output(0).shape.elements())](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    auto* const mask = output_as<uint8_t>(args, 1);
    const float* const given = input_as(args, 1);
    const auto* const training = input_as<uint8_t>(args, 2);
    const double ratio = given == nullptr ? 0.5 : static_cast<double>(*given);
    const bool trains = training != nullptr && *training != 0;
    if (trains && !(ratio >= 0 && ratio < 1)) fail(ErrorKind::InvalidArgument, who, ": ratio ", ratio, " is outside of [0,1)");
    const bool drops = trains && ratio > 0;
    machine.pool().ranges(n, 8192, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const bool kept = !drops || random.unit(i) >= ratio;
        if (mask != nullptr) mask[i] = kept ? 1 : 0;
        if (y != nullptr) y[i] = !drops ? x[i] : kept ? static_cast<float>(static_cast<double>(x[i]) / (1 - ratio)) : 0.0F;
      }
    });
  }};
}

}  // namespace

void add_fold_kernels(KernelTable& table) {
  table.add("Sum", fold_kernel("cpu.sum.rows", Fold::Sum));
  table.add("Mean", fold_kernel("cpu.mean.rows", Fold::Mean));
  table.add("Max", fold_kernel("cpu.max.rows", Fold::Max));
  table.add("Min", fold_kernel("cpu.min.rows", Fold::Min));
  table.add("Mod", modulo_kernel());
  table.add("SwiGLU", {.name = "cpu.swiglu.vector",
                       .supports = [](const OpCall& call) { return inputs_are(call, {DType::F32}); },
                       .prepare = prepare_swiglu});
  table.add("Dropout", {.name = "cpu.dropout.copy", .supports = supports_dropout, .prepare = prepare_dropout, .in_place = true});
}

}  // namespace unmoor::cpu
