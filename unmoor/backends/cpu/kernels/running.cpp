#include <algorithm>
#include <array>
#include <type_traits>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

namespace {

// CumSum and CumProd. The axis is read when it runs: it may be computed.
struct Running {
  std::string who;
  Shape shape;
  DType dtype;
  bool product, exclusive, reverse, wide;

  Split split(int64_t axis) const {
    const auto rank = static_cast<int64_t>(shape.rank());
    if (axis < -rank || axis >= rank) fail(ErrorKind::InvalidModel, who, ": axis ", axis, " is outside of shape ", shape);
    return split_at(shape, static_cast<size_t>(axis < 0 ? axis + rank : axis));
  }
};

// Sums of floats are kept as doubles, those of integers wrap around.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, float>, double,
                               std::make_unsigned_t<std::conditional_t<std::is_same_v<T, float>, int, T>>>;

// `columns` lines next to each other, each of `length` elements `step` apart.
template <class T, bool product>
void run_lines(const Running& r, const T* x, T* y, size_t length, size_t step, size_t columns) {
  constexpr size_t most = 256;
  std::array<Sum<T>, most> sums;
  for (size_t first = 0; first < columns; first += most) {
    const size_t n = std::min(most, columns - first);
    std::fill_n(sums.begin(), n, static_cast<Sum<T>>(product ? 1 : 0));
    for (size_t i = 0; i < length; ++i) {
      const size_t at = (r.reverse ? length - 1 - i : i) * step + first;
      for (size_t j = 0; j < n; ++j) {
        const auto value = static_cast<Sum<T>>(x[at + j]);
        const Sum<T> next = product ? sums[j] * value : sums[j] + value;
        y[at + j] = static_cast<T>(r.exclusive ? sums[j] : next);
        sums[j] = next;
      }
    }
  }
}

template <class T>
void run_all(const Machine& machine, const Running& r, const KernelArgs& args) {
  const Split at = r.split(Indices(args, 1, r.wide)[0]);
  const T* const x = input_as<T>(args, 0);
  T* const y = output_as<T>(args, 0);
  constexpr size_t most = 256;
  const size_t pieces = (at.inner + most - 1) / most;
  machine.pool().ranges(at.outer * pieces, 16384 / (at.length * std::min(at.inner, most) + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t first = i % pieces * most;
      const size_t from = i / pieces * at.length * at.inner + first;
      const size_t columns = std::min(most, at.inner - first);
      if (r.product) {
        run_lines<T, true>(r, x + from, y + from, at.length, at.inner, columns);
      } else {
        run_lines<T, false>(r, x + from, y + from, at.length, at.inner, columns);
      }
    }
  });
}

Support supports_running(const OpCall& call) {
  if (Support types =
          all_of(input_is(call, 0, {DType::F32, DType::I32, DType::I64}), input_is(call, 1, {DType::I32, DType::I64}));
      !types)
    return types;
  return call.input(1).shape.elements() == 1 ? yes() : no(Reason::Size, "an axis of ", call.input(1).shape);
}

Prepared prepare_running(const OpCall& call, Device& device) {
  Running running{title(call),
                  call.input(0).shape,
                  call.input(0).dtype,
                  call.node.op == "CumProd",
                  call.integer("exclusive", 0) != 0,
                  call.integer("reverse", 0) != 0,
                  call.input(1).dtype == DType::I64};
  return {.run = [&machine = machine_of(device), running = std::move(running)](Stream&, const KernelArgs& args) {
    switch (running.dtype) {
      case DType::F32:
        return run_all<float>(machine, running, args);
      case DType::I32:
        return run_all<int32_t>(machine, running, args);
      default:
        return run_all<int64_t>(machine, running, args);
    }
  }};
}

}  // namespace

void add_running_kernels(KernelTable& table) {
  table.add("CumSum", {.name = "cpu.cumsum.lines", .supports = supports_running, .prepare = prepare_running, .in_place = true});
  table.add("CumProd", {.name = "cpu.cumprod.lines", .supports = supports_running, .prepare = prepare_running, .in_place = true});
}

}  // namespace unmoor::cpu
