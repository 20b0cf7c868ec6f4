#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/walk.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/random.h"

namespace unmoor::cpu {

namespace {

Support makes_elements(const OpCall& call) {
  return element_bytes(call.output(0).dtype) != 0 ? yes() : no(Reason::DType, call.output(0).dtype);
}

Support makes_floats(const OpCall& call) {
  return call.output(0).dtype == DType::F32 ? yes() : no(Reason::DType, call.output(0).dtype);
}

// Fills n elements with one.
void fill(const Machine& machine, std::byte* y, const std::byte* value, size_t size, size_t n) {
  with_element(size, [&](auto zero) {
    using T = decltype(zero);
    T element;
    std::memcpy(&element, value, sizeof(T));
    machine.pool().ranges(n, (size_t{1} << 18) / sizeof(T), [&](size_t begin, size_t end) {
      std::fill(reinterpret_cast<T*>(y) + begin, reinterpret_cast<T*>(y) + end, element);
    });
  });
}

Prepared prepare_constant(const OpCall& call, Device& device) {
  const Tensor* const given = call.tensor("value");
  const Tensor value = given == nullptr ? Tensor::scalar(0.0F) : *given;
  return {.run = [&machine = machine_of(device), value, n = static_cast<size_t>(call.output(0).shape.elements())](
                     Stream&, const KernelArgs& args) {
    fill(machine, args.outputs[0].host(), value.bytes().data(), element_bytes(value.dtype()), n);
  }};
}

Prepared prepare_eye(const OpCall& call, Device&) {
  const Shape& shape = call.output(0).shape;
  const DType dtype = call.output(0).dtype;
  Tensor one(TensorType{dtype, Shape()});
  store(one, std::span<const double>(std::vector<double>{1}));
  return {.run = [one, size = element_bytes(dtype), rows = shape[0], columns = shape[1], k = call.integer("k", 0),
                  bytes = call.output(0).bytes()](Stream&, const KernelArgs& args) {
    std::byte* const y = args.outputs[0].host();
    if (bytes == 0) return;
    std::memset(y, 0, bytes);
    if (k <= -rows || k >= columns) return;
    for (int64_t row = std::max<int64_t>(0, -k); row < std::min(rows, columns - k); ++row) {
      std::memcpy(y + static_cast<size_t>(row * columns + row + k) * size, one.bytes().data(), size);
    }
  }};
}

template <class T>
void count_up(const Machine& machine, const KernelArgs& args, size_t n) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, uint64_t>;
  const auto start = static_cast<Wide>(*input_as<T>(args, 0));
  const auto delta = static_cast<Wide>(*input_as<T>(args, 2));
  T* const y = output_as<T>(args, 0);
  machine.pool().ranges(n, 65536, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = static_cast<T>(start + static_cast<Wide>(i) * delta);
  });
}

Prepared prepare_range(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), n = static_cast<size_t>(call.output(0).shape.elements()),
                  dtype = call.output(0).dtype](Stream&, const KernelArgs& args) {
    switch (dtype) {
      case DType::F32:
        return count_up<float>(machine, args, n);
      case DType::I32:
        return count_up<int32_t>(machine, args, n);
      default:
        return count_up<int64_t>(machine, args, n);
    }
  }};
}

// What the indices' elements mean, whatever their dtype.
int64_t integer_at(const std::byte* data, DType dtype, size_t i) {
  switch (dtype) {
    case DType::F32: {
      const float value = reinterpret_cast<const float*>(data)[i];
      return std::fabs(value) < 0x1p62F ? static_cast<int64_t>(value) : INT64_MAX;
    }
    case DType::I32:
      return reinterpret_cast<const int32_t*>(data)[i];
    case DType::U8:
      return reinterpret_cast<const uint8_t*>(data)[i];
    default:
      return reinterpret_cast<const int64_t*>(data)[i];
  }
}

Support supports_one_hot(const OpCall& call) {
  if (call.input(2).shape.elements() != 2) return no(Reason::Size, "values of ", call.input(2).shape);
  return all_of(makes_elements(call), input_is(call, 0, {DType::I64, DType::I32, DType::F32, DType::U8}));
}

Prepared prepare_one_hot(const OpCall& call, Device& device) {
  const Shape& shape = call.output(0).shape;
  const Split at = split_at(shape, shape.axis(call.integer("axis", -1)));
  return {.run = [&machine = machine_of(device), at, n = static_cast<size_t>(shape.elements()), dtype = call.input(0).dtype,
                  count = static_cast<size_t>(call.input(0).shape.elements()),
                  size = element_bytes(call.output(0).dtype)](Stream&, const KernelArgs& args) {
    if (n == 0) return;
    const std::byte* const values = args.inputs[2].host();
    fill(machine, args.outputs[0].host(), values, size, n);
    const auto depth = static_cast<int64_t>(at.length);
    for (size_t i = 0; i < count; ++i) {
      const int64_t index = integer_at(args.inputs[0].host(), dtype, i);
      if (index < -depth || index >= depth) continue;
      const auto hot = static_cast<size_t>(index < 0 ? index + depth : index);
      const size_t to = (i / at.inner * at.length + hot) * at.inner + i % at.inner;
      std::memcpy(args.outputs[0].host() + to * size, values + size, size);
    }
  }};
}

Support supports_trilu(const OpCall& call) {
  if (call.has(1) && call.input(1).shape.elements() != 1) return no(Reason::Size, "a k of ", call.input(1).shape);
  return makes_elements(call);
}

Prepared prepare_trilu(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  const size_t rank = shape.rank();
  const size_t matrices = shape.elements() == 0 ? 0 : static_cast<size_t>(shape.elements(0, rank - 2));
  return {.run = [&machine = machine_of(device), matrices, rows = shape[rank - 2], columns = shape[rank - 1],
                  size = element_bytes(call.input(0).dtype),
                  upper = call.integer("upper", 1) != 0](Stream&, const KernelArgs& args) {
    const auto* const given = input_as<int64_t>(args, 1);
    const int64_t k = std::clamp<int64_t>(given == nullptr ? 0 : *given, -rows - 1, columns + 1);
    const auto line = static_cast<size_t>(columns);
    const std::byte* const x = args.inputs[0].host();
    std::byte* const y = args.outputs[0].host();
    machine.pool().ranges(matrices * static_cast<size_t>(rows), 65536 / (line * size + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const int64_t row = static_cast<int64_t>(i) % rows;
        // The first column of the upper part, the end of the lower one.
        const auto cut = static_cast<size_t>(std::clamp<int64_t>(row + k + (upper ? 0 : 1), 0, columns));
        const size_t from = upper ? cut : 0;
        const size_t to = upper ? line : cut;
        std::byte* const out = y + i * line * size;
        std::memset(out, 0, from * size);
        if (x != y) std::memcpy(out + from * size, x + (i * line + from) * size, (to - from) * size);
        std::memset(out + to * size, 0, (line - to) * size);
      }
    });
  }};
}

// Numbers that the input's type tells.
Prepared told(std::vector<int64_t> numbers) {
  return {.run = [numbers = std::move(numbers)](
                     Stream&, const KernelArgs& args) { std::ranges::copy(numbers, output_as<int64_t>(args, 0)); },
          .unused_inputs = {true}};
}

Prepared prepare_shape(const OpCall& call, Device&) {
  const std::vector<int64_t>& dims = call.input(0).shape.dims();
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t start = call.integer("start", 0);
  const int64_t first = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  return told({dims.begin() + first, dims.begin() + first + call.output(0).shape[0]});
}

// a - b cos(2 pi n / N) + c cos(4 pi n / N).
struct Cosines {
  const char* op;
  const char* kernel;
  double a, b, c;
};
constexpr Cosines windows[] = {{"HannWindow", "cpu.hannwindow.cosines", 0.5, 0.5, 0},
                               {"HammingWindow", "cpu.hammingwindow.cosines", 25.0 / 46, 21.0 / 46, 0},
                               {"BlackmanWindow", "cpu.blackmanwindow.cosines", 0.42, 0.5, 0.08}};

Prepared prepare_window(const OpCall& call, const Cosines& cosines) {
  const auto n = static_cast<size_t>(call.output(0).shape.elements());
  const double period = static_cast<double>(n) - (call.integer("periodic", 1) != 0 ? 0 : 1);
  return {.run = [n, period, cosines](Stream&, const KernelArgs& args) {
    float* const y = output_as(args, 0);
    for (size_t i = 0; i < n; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
      y[i] = period > 0 ? static_cast<float>(cosines.a - cosines.b * std::cos(angle) + cosines.c * std::cos(2 * angle)) : 1.0F;
    }
  }};
}

// Numbers by their place, so threads make the same ones.
Prepared prepare_random(const OpCall& call, Device& device) {
  const bool normal = call.node.op.starts_with("RandomNormal");
  const double first = normal ? call.real("mean", 0) : call.real("low", 0);
  const double width = normal ? call.real("scale", 1) : call.real("high", 1) - first;
  return {.run =
              [&machine = machine_of(device), random = CounterRandom(call),
               n = static_cast<size_t>(call.output(0).shape.elements()), normal, first, width](Stream&, const KernelArgs& args) {
                float* const y = output_as(args, 0);
                machine.pool().ranges(n, 4096, [&](size_t begin, size_t end) {
                  for (size_t i = begin; i < end; ++i)
                    y[i] = static_cast<float>(first + (normal ? random.normal(i) : random.unit(i)) * width);
                });
              },
          .unused_inputs = std::vector<bool>(call.input_count(), true)};
}

Support supports_bernoulli(const OpCall& call) { return all_of(inputs_are(call, {DType::F32}), makes_floats(call)); }

Prepared prepare_bernoulli(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), random = CounterRandom(call),
                  n = static_cast<size_t>(call.output(0).shape.elements())](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    machine.pool().ranges(n, 4096, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) y[i] = random.unit(i) < static_cast<double>(x[i]) ? 1.0F : 0.0F;
    });
  }};
}

}  // namespace

void add_create_kernels(KernelTable& table) {
  table.add("ConstantOfShape", {.name = "cpu.constantofshape.fill", .supports = makes_elements, .prepare = prepare_constant});
  table.add("EyeLike", {.name = "cpu.eyelike.diagonal", .supports = makes_elements, .prepare = prepare_eye});
  table.add("Range", {.name = "cpu.range.count",
                      .supports =
                          [](const OpCall& call) {
                            return inputs_are(call, {DType::F32, DType::I32, DType::I64});
                          },
                      .prepare = prepare_range});
  table.add("OneHot", {.name = "cpu.onehot.fill", .supports = supports_one_hot, .prepare = prepare_one_hot});
  table.add("Trilu", {.name = "cpu.trilu.rows", .supports = supports_trilu, .prepare = prepare_trilu, .in_place = true});
  const auto always = [](const OpCall& call) {
    return std::holds_alternative<TensorType>(*call.inputs[0]) ? yes() : no(Reason::DType, "no tensor");
  };
  table.add("Shape", {.name = "cpu.shape.type", .supports = always, .prepare = prepare_shape});
  table.add("Size", {.name = "cpu.size.type", .supports = always, .prepare = [](const OpCall& call, Device&) {
                       return told({call.input(0).shape.elements()});
                     }});
  for (const Cosines& window : windows) {
    table.add(window.op, {.name = window.kernel, .supports = makes_floats, .prepare = [window](const OpCall& call, Device&) {
                            return prepare_window(call, window);
                          }});
  }
  for (const char* op : {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}) {
    table.add(op, {.name = std::string_view(op).starts_with("RandomNormal") ? "cpu.random.normal" : "cpu.random.uniform",
                   .supports = makes_floats,
                   .prepare = prepare_random});
  }
  table.add("Bernoulli", {.name = "cpu.bernoulli.units", .supports = supports_bernoulli, .prepare = prepare_bernoulli});
}

}  // namespace unmoor::cpu
