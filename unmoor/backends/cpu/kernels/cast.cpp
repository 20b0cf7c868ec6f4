#include <cmath>
#include <limits>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/half.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::cpu {

namespace {

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
struct Truth {
  uint8_t value;
};

// Toward zero; what int64 cannot hold becomes its nearest end, NaN 0.
int64_t truncated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  return value <= -9223372036854775808.0 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
}

template <class To, class From>
To converted(From from) {
  if constexpr (std::is_same_v<From, Half>) {
    return converted<To>(from_f16(from.bits));
  } else if constexpr (std::is_same_v<From, Brain>) {
    return converted<To>(from_bf16(from.bits));
  } else if constexpr (std::is_same_v<From, Truth>) {
    return converted<To>(static_cast<int32_t>(from.value != 0));
  } else if constexpr (std::is_same_v<To, Truth>) {
    return {static_cast<uint8_t>(from != From{0})};
  } else if constexpr (std::is_same_v<To, Half>) {
    return {to_f16(static_cast<double>(from))};
  } else if constexpr (std::is_same_v<To, Brain>) {
    return {to_bf16(static_cast<double>(from))};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(truncated(static_cast<double>(from)));
  } else {
    return static_cast<To>(from);
  }
}

using Loop = void (*)(const std::byte* from, std::byte* to, size_t begin, size_t end);

template <class From, class To>
void loop(const std::byte* from, std::byte* to, size_t begin, size_t end) {
  const auto* const x = reinterpret_cast<const From*>(from);
  auto* const y = reinterpret_cast<To*>(to);
  for (size_t i = begin; i < end; ++i) y[i] = converted<To>(x[i]);
}

template <class From>
Loop loop_to(DType to) {
  // 64-bit integers round once to the small floats, which the way over double would not.
  constexpr bool wide = std::is_same_v<From, int64_t>;
  switch (to) {
    case DType::F32:
      return loop<From, float>;
    case DType::F64:
      return loop<From, double>;
    case DType::I32:
      return loop<From, int32_t>;
    case DType::I64:
      return loop<From, int64_t>;
    case DType::U8:
      return loop<From, uint8_t>;
    case DType::I8:
      return loop<From, int8_t>;
    case DType::Bool:
      return loop<From, Truth>;
    case DType::F16:
      return wide ? nullptr : Loop(loop<From, Half>);
    case DType::BF16:
      return wide ? nullptr : Loop(loop<From, Brain>);
    default:
      return nullptr;
  }
}

void widen_f16(const std::byte* from, std::byte* to, size_t begin, size_t end) {
  half_loops().from_f16(reinterpret_cast<const uint16_t*>(from) + begin, end - begin, reinterpret_cast<float*>(to) + begin);
}
void narrow_f16(const std::byte* from, std::byte* to, size_t begin, size_t end) {
  half_loops().to_f16(reinterpret_cast<const float*>(from) + begin, end - begin, reinterpret_cast<uint16_t*>(to) + begin);
}
void widen_bf16(const std::byte* from, std::byte* to, size_t begin, size_t end) {
  half_loops().from_bf16(reinterpret_cast<const uint16_t*>(from) + begin, end - begin, reinterpret_cast<float*>(to) + begin);
}
void narrow_bf16(const std::byte* from, std::byte* to, size_t begin, size_t end) {
  half_loops().to_bf16(reinterpret_cast<const float*>(from) + begin, end - begin, reinterpret_cast<uint16_t*>(to) + begin);
}

Loop find_loop(DType from, DType to) {
  if (from == DType::F16 && to == DType::F32) return widen_f16;
  if (from == DType::F32 && to == DType::F16) return narrow_f16;
  if (from == DType::BF16 && to == DType::F32) return widen_bf16;
  if (from == DType::F32 && to == DType::BF16) return narrow_bf16;
  switch (from) {
    case DType::F32:
      return loop_to<float>(to);
    case DType::F64:
      return loop_to<double>(to);
    case DType::I32:
      return loop_to<int32_t>(to);
    case DType::I64:
      return loop_to<int64_t>(to);
    case DType::U8:
      return loop_to<uint8_t>(to);
    case DType::I8:
      return loop_to<int8_t>(to);
    case DType::Bool:
      return loop_to<Truth>(to);
    case DType::F16:
      return loop_to<Half>(to);
    case DType::BF16:
      return loop_to<Brain>(to);
    default:
      return nullptr;
  }
}

Support supports_cast(const OpCall& call) {
  const DType from = call.input(0).dtype;
  const DType to = call.output(0).dtype;
  return find_loop(from, to) != nullptr ? yes() : no(Reason::DType, from, " to ", to);
}

Prepared prepare_cast(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), n = static_cast<size_t>(call.output(0).shape.elements()),
                  loop = find_loop(call.input(0).dtype, call.output(0).dtype)](Stream&, const KernelArgs& args) {
    machine.pool().ranges(n, 16384,
                          [&](size_t begin, size_t end) { loop(args.inputs[0].host(), args.outputs[0].host(), begin, end); });
  }};
}

}  // namespace

void add_cast_kernels(KernelTable& table) {
  table.add("Cast", {.name = "cpu.cast.loop", .supports = supports_cast, .prepare = prepare_cast});
  table.add("CastLike", {.name = "cpu.castlike.loop", .supports = supports_cast, .prepare = prepare_cast});
}

}  // namespace unmoor::cpu
