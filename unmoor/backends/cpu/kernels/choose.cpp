#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/order.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

namespace {

// An element's order above its place from the end: of equal elements the first is the greatest.
using Ranked = uint64_t;

Ranked ranked(float value, size_t place, bool largest) {
  const uint32_t order = largest ? order_of(value) : ~order_of(value);
  return (uint64_t{order} << 32) | (UINT32_MAX - static_cast<uint32_t>(place));
}

size_t place_of(Ranked element) { return UINT32_MAX - static_cast<uint32_t>(element); }

// The `count` greatest of a line, best first. What is below all that are held already is passed by; `held` is scratch memory.
void greatest(const float* x, size_t length, size_t step, size_t count, bool largest, std::vector<Ranked>& held) {
  const size_t room = std::min(length, 2 * count + 64);
  held.clear();
  held.reserve(room);
  Ranked least = 0;
  float limit = std::numeric_limits<float>::quiet_NaN();  // The least one held, which nothing is below as long as it is NaN.
  for (size_t i = 0; i < length; ++i) {
    const float value = x[i * step];
    if (largest ? value < limit : value > limit) continue;
    const Ranked element = ranked(value, i, largest);
    if (element < least) continue;
    held.push_back(element);
    if (held.size() < room || held.size() <= count) continue;
    std::nth_element(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(count - 1), held.end(), std::greater<>());
    held.resize(count);
    least = held.back();
    limit = x[place_of(least) * step];
  }
  if (held.size() > count) {
    std::nth_element(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(count - 1), held.end(), std::greater<>());
    held.resize(count);
  }
  std::ranges::sort(held, std::greater<>());
}

// A line along the axis.
Support takes_lines(const OpCall& call) {
  if (Support types = input_is(call, 0, {DType::F32}); !types) return types;
  const Shape& shape = call.input(0).shape;
  if (shape.rank() == 0) return no(Reason::Rank, "a scalar");
  const int64_t length = shape[shape.axis(call.integer("axis", -1))];
  return length < int64_t{1} << 32 ? yes() : no(Reason::Size, "an axis of ", length);
}

Prepared prepare_top(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  const size_t axis = shape.axis(call.integer("axis", -1));
  const auto count = static_cast<size_t>(call.output(0).shape[axis]);
  return {.run = [&machine = machine_of(device), at = split_at(shape, axis), count, largest = call.integer("largest", 1) != 0](
                     Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const values = output_as(args, 0);
    auto* const places = output_as<int64_t>(args, 1);
    if (count == 0) return;
    machine.pool().ranges(at.outer * at.inner, 4096 / (at.length + 1) + 1, [&](size_t begin, size_t end) {
      std::vector<Ranked> held;
      for (size_t line = begin; line < end; ++line) {
        const float* const from = x + line / at.inner * at.length * at.inner + line % at.inner;
        const size_t to = line / at.inner * count * at.inner + line % at.inner;
        greatest(from, at.length, at.inner, count, largest, held);
        for (size_t k = 0; k < count; ++k) {
          const size_t place = place_of(held[k]);
          if (values != nullptr) values[to + k * at.inner] = from[place * at.inner];
          if (places != nullptr) places[to + k * at.inner] = static_cast<int64_t>(place);
        }
      }
    });
  }};
}

// 1 at the first greatest, else 0; NaN is the greatest.
Prepared prepare_hardmax(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  return {.run = [&machine = machine_of(device), at = split_at(shape, shape.axis(call.integer("axis", -1)))](
                     Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    machine.pool().ranges(at.outer * at.inner, 8192 / (at.length + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t line = begin; line < end; ++line) {
        const size_t first = line / at.inner * at.length * at.inner + line % at.inner;
        size_t best = 0;
        for (size_t i = 1; i < at.length; ++i) {
          if (order_of(x[first + i * at.inner]) > order_of(x[first + best * at.inner])) best = i;
        }
        for (size_t i = 0; i < at.length; ++i) y[first + i * at.inner] = i == best ? 1.0F : 0.0F;
      }
    });
  }};
}

}  // namespace

void add_choose_kernels(KernelTable& table) {
  table.add("TopK", {.name = "cpu.topk.lines", .supports = takes_lines, .prepare = prepare_top});
  table.add("Hardmax", {.name = "cpu.hardmax.lines", .supports = takes_lines, .prepare = prepare_hardmax, .in_place = true});
}

}  // namespace unmoor::cpu
