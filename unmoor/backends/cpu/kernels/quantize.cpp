#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

namespace {

// Runs of elements that share a scale: of one tensor, an axis or a block where the scale's last axis is not x's; else one scale
// an element.
struct Grain {
  size_t count = 0;  // Elements.
  size_t run = 1;    // Elements next to each other with one scale; 1 also where each has the next one.
  size_t inner = 1, length = 1, block = 1, scales = 1;
  bool single = true, blocks = false;

  // Of the run that begins at element i.
  size_t scale_at(size_t i) const {
    if (single) return 0;
    const size_t along = i / inner % length / block;
    return blocks ? (i / (inner * length) * scales + along) * inner + i % inner : along;
  }
};

Grain grain_of(const OpCall& call) {
  const Shape& x = call.input(0).shape;
  const Shape& scale = call.input(1).shape;
  Grain grain{.count = static_cast<size_t>(x.elements())};
  const int64_t block = call.integer("block_size", 0);
  if (block == 0 && scale.elements() == 1 && scale.rank() < 2) {
    grain.run = std::max<size_t>(grain.count, 1);
    return grain;
  }
  const size_t axis = x.axis(call.integer("axis", 1));
  const Split at = split_at(x, axis);
  grain.single = false;
  grain.blocks = block > 0;
  grain.inner = std::max<size_t>(at.inner, 1);
  grain.length = std::max<size_t>(at.length, 1);
  grain.block = grain.blocks ? std::min(static_cast<size_t>(block), grain.length) : 1;
  grain.scales = static_cast<size_t>(scale[grain.blocks ? axis : 0]);
  grain.run = grain.blocks ? 1 : grain.inner;
  return grain;
}

// Calls body(begin, end, scale) for runs of elements, on the pool's threads.
template <class Body>
void each_run(const Machine& machine, const Grain& grain, Body&& body) {
  machine.pool().ranges(grain.count, 16384, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end;) {
      const size_t last = std::min(end, (i / grain.run + 1) * grain.run);
      body(i, last, grain.scale_at(i));
      i = last;
    }
  });
}

// round(quotient) + zero, limited; NaN becomes the zero point. Adding 1.5·2^23 rounds ties to even, as the processor does; what
// is too large for it is limited anyway.
template <class T>
T quantized(float quotient, float zero) {
  constexpr float most = 4194304.0F;
  constexpr float rounding = 12582912.0F;
  constexpr auto low = static_cast<float>(std::numeric_limits<T>::min());
  constexpr auto high = static_cast<float>(std::numeric_limits<T>::max());
  float q = quotient == quotient ? quotient : 0.0F;
  q = q < most ? q : most;
  q = q > -most ? q : -most;
  float y = (q + rounding) - rounding + zero;
  y = y < high ? y : high;
  y = y > low ? y : low;
  return static_cast<T>(static_cast<int32_t>(y));
}

template <class T>
void quantize(const Machine& machine, const Grain& grain, const KernelArgs& args) {
  const float* const x = input_as(args, 0);
  const float* const scales = input_as(args, 1);
  const T* const zeros = input_as<T>(args, 2);
  T* const y = output_as<T>(args, 0);
  each_run(machine, grain, [&](size_t begin, size_t end, size_t k) {
    const float scale = scales[k];
    const float zero = zeros == nullptr ? 0.0F : static_cast<float>(zeros[k]);
    for (size_t i = begin; i < end; ++i) y[i] = quantized<T>(x[i] / scale, zero);
  });
}

Support supports_quantize(const OpCall& call) {
  if (Support types = all_of(input_is(call, 0, {DType::F32}), input_is(call, 1, {DType::F32})); !types) return types;
  if (call.integer("precision", 0) > 1) return no(Reason::Attribute, "precision");
  switch (call.output(0).dtype) {
    case DType::U8:
    case DType::I8:
    case DType::U16:
    case DType::I16:
      return yes();
    default:
      return no(Reason::DType, "to ", call.output(0).dtype);
  }
}

Prepared prepare_quantize(const OpCall& call, Device& device) {
  return {
      .run = [&machine = machine_of(device), grain = grain_of(call), to = call.output(0).dtype](Stream&, const KernelArgs& args) {
        switch (to) {
          case DType::U8:
            return quantize<uint8_t>(machine, grain, args);
          case DType::I8:
            return quantize<int8_t>(machine, grain, args);
          case DType::U16:
            return quantize<uint16_t>(machine, grain, args);
          default:
            return quantize<int16_t>(machine, grain, args);
        }
      }};
}

template <class T>
void dequantize(const Machine& machine, const Grain& grain, const KernelArgs& args) {
  using Wide = std::conditional_t<sizeof(T) == 4, double, int32_t>;  // What a difference is exact in.
  const T* const x = input_as<T>(args, 0);
  const float* const scales = input_as(args, 1);
  const T* const zeros = input_as<T>(args, 2);
  float* const y = output_as(args, 0);
  each_run(machine, grain, [&](size_t begin, size_t end, size_t k) {
    const float scale = scales[k];
    const Wide zero = zeros == nullptr ? Wide{0} : static_cast<Wide>(zeros[k]);
    for (size_t i = begin; i < end; ++i) y[i] = static_cast<float>(static_cast<Wide>(x[i]) - zero) * scale;
  });
}

Support supports_dequantize(const OpCall& call) {
  if (call.output(0).dtype != DType::F32) return no(Reason::DType, "to ", call.output(0).dtype);
  return all_of(input_is(call, 0, {DType::U8, DType::I8, DType::U16, DType::I16, DType::I32}), input_is(call, 1, {DType::F32}));
}

Prepared prepare_dequantize(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), grain = grain_of(call), from = call.input(0).dtype](Stream&,
                                                                                                     const KernelArgs& args) {
    switch (from) {
      case DType::U8:
        return dequantize<uint8_t>(machine, grain, args);
      case DType::I8:
        return dequantize<int8_t>(machine, grain, args);
      case DType::U16:
        return dequantize<uint16_t>(machine, grain, args);
      case DType::I16:
        return dequantize<int16_t>(machine, grain, args);
      default:
        return dequantize<int32_t>(machine, grain, args);
    }
  }};
}

}  // namespace

void add_quantize_kernels(KernelTable& table) {
  table.add("QuantizeLinear", {.name = "cpu.quantizelinear.runs", .supports = supports_quantize, .prepare = prepare_quantize});
  table.add("DequantizeLinear",
            {.name = "cpu.dequantizelinear.runs", .supports = supports_dequantize, .prepare = prepare_dequantize});
}

}  // namespace unmoor::cpu
