#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "unmoor/backends/cpu/kernels/broadcast.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/arithmetic.h"

namespace unmoor::cpu {

namespace {

// One row of a call with two inputs; y may be a.
struct Row {
  const std::byte* a;
  const std::byte* b;
  std::byte* y;
  size_t n;
  bool a_moves;
  bool b_moves;
};
using RowLoop = std::function<void(const Row&)>;

// The row loop of a plain function of two values.
template <class In, class Out, class F>
RowLoop loop_of(F f) {
  return [f](const Row& row) {
    const In* const a = reinterpret_cast<const In*>(row.a);
    const In* const b = reinterpret_cast<const In*>(row.b);
    Out* const y = reinterpret_cast<Out*>(row.y);
    if (row.a_moves && row.b_moves) {
      for (size_t i = 0; i < row.n; ++i) y[i] = static_cast<Out>(f(a[i], b[i]));
    } else if (row.a_moves) {
      const In b0 = b[0];
      for (size_t i = 0; i < row.n; ++i) y[i] = static_cast<Out>(f(a[i], b0));
    } else if (row.b_moves) {
      const In a0 = a[0];
      for (size_t i = 0; i < row.n; ++i) y[i] = static_cast<Out>(f(a0, b[i]));
    } else {
      const Out value = static_cast<Out>(f(a[0], b[0]));
      for (size_t i = 0; i < row.n; ++i) y[i] = value;
    }
  };
}

RowLoop loop_of(BinaryLoop loop) {
  return [loop](const Row& row) {
    loop({reinterpret_cast<const float*>(row.a), reinterpret_cast<const float*>(row.b), reinterpret_cast<float*>(row.y), row.n, row.a_moves,
          row.b_moves});
  };
}

// Integer arithmetic that wraps, as two's complement does.
template <class T>
RowLoop wrapping(std::string_view op) {
  using U = std::make_unsigned_t<T>;
  if (op == "Add") return loop_of<T, T>([](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); });
  if (op == "Sub") return loop_of<T, T>([](T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); });
  if (op == "Mul") return loop_of<T, T>([](T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); });
  if (op == "Min") return loop_of<T, T>([](T a, T b) { return b < a ? b : a; });
  if (op == "Max") return loop_of<T, T>([](T a, T b) { return a < b ? b : a; });
  return {};
}

RowLoop float_arithmetic(std::string_view op) {
  const ArithmeticLoops& loops = arithmetic_loops();
  if (op == "Add") return loop_of(loops.add);
  if (op == "Sub") return loop_of(loops.subtract);
  if (op == "Mul") return loop_of(loops.multiply);
  if (op == "Div") return loop_of(loops.divide);
  if (op == "Min") return loop_of(loops.min);
  if (op == "Max") return loop_of(loops.max);
  if (op == "PRelu") return loop_of(loops.prelu);
  if (op == "Pow") {
    return loop_of<float, float>([](float a, float b) { return b == 2.0F ? a * a : std::pow(a, b); });
  }
  return {};
}

template <class T>
RowLoop comparison(std::string_view op) {
  if (op == "Equal") return loop_of<T, uint8_t>([](T a, T b) { return a == b; });
  if (op == "Less") return loop_of<T, uint8_t>([](T a, T b) { return a < b; });
  if (op == "LessOrEqual") return loop_of<T, uint8_t>([](T a, T b) { return a <= b; });
  if (op == "Greater") return loop_of<T, uint8_t>([](T a, T b) { return a > b; });
  if (op == "GreaterOrEqual") return loop_of<T, uint8_t>([](T a, T b) { return a >= b; });
  return {};
}

RowLoop logic(std::string_view op) {
  using B = uint8_t;
  if (op == "And") return loop_of<B, B>([](B a, B b) { return (a != 0) && (b != 0); });
  if (op == "Or") return loop_of<B, B>([](B a, B b) { return (a != 0) || (b != 0); });
  if (op == "Xor" || op == "Equal") {
    const bool same = op == "Equal";
    return loop_of<B, B>([same](B a, B b) { return ((a != 0) == (b != 0)) == same; });
  }
  return {};
}

// The loop for an operator and the type of its inputs; empty if there is none.
RowLoop find_loop(std::string_view op, DType dtype) {
  const auto either = [&](RowLoop arithmetic, RowLoop compared) { return arithmetic ? arithmetic : compared; };
  switch (dtype) {
    case DType::F32: return either(float_arithmetic(op), comparison<float>(op));
    case DType::I64: return either(wrapping<int64_t>(op), comparison<int64_t>(op));
    case DType::I32: return either(wrapping<int32_t>(op), comparison<int32_t>(op));
    case DType::U8: return comparison<uint8_t>(op);
    case DType::Bool: return logic(op);
    default: return {};
  }
}

Support supports_binary(const OpCall& call) {
  if (call.input_count() != 2) {
    return no(Reason::Attribute, "takes two inputs, not ", call.input_count());
  }
  const DType dtype = call.input(0).dtype;
  if (call.input(1).dtype != dtype) {
    return no(Reason::DType, "inputs of ", dtype, " and ", call.input(1).dtype);
  }
  return find_loop(call.node.op, dtype) ? yes() : no(Reason::DType, call.node.op, " of ", dtype);
}

Prepared prepare_binary(const OpCall& call, Device& device) {
  const Machine& machine = machine_of(device);
  const size_t in_bytes = bytes_of(call.input(0).dtype, 1);
  const size_t out_bytes = bytes_of(call.output(0).dtype, 1);
  return {.run = [&machine, plan = broadcast_of(call, 2), loop = find_loop(call.node.op, call.input(0).dtype), in_bytes,
                  out_bytes](Stream&, const KernelArgs& args) {
    const std::byte* const a = args.inputs[0].host();
    const std::byte* const b = args.inputs[1].host();
    std::byte* const y = args.outputs[0].host();
    for_rows(machine.pool(), plan, [&](size_t out, const Broadcast::Offsets& in, size_t n) {
      loop({a + in[0] * in_bytes, b + in[1] * in_bytes, y + out * out_bytes, n, plan.moves[0], plan.moves[1]});
    });
  }};
}

// Where(condition, x, y) for elements of any whole number of bytes.
template <class T>
void where_row(const uint8_t* condition, const T* x, const T* y, T* out, size_t n, const std::array<bool, 3>& moves) {
  const size_t cs = moves[0] ? 1 : 0;
  const size_t xs = moves[1] ? 1 : 0;
  const size_t ys = moves[2] ? 1 : 0;
  for (size_t i = 0; i < n; ++i) {
    out[i] = condition[i * cs] != 0 ? x[i * xs] : y[i * ys];
  }
}

template <class T>
Prepared prepare_where(const OpCall& call, const Machine& machine) {
  return {.run = [&machine, plan = broadcast_of(call, 3)](Stream&, const KernelArgs& args) {
    const auto* const condition = reinterpret_cast<const uint8_t*>(args.inputs[0].host());
    const T* const x = reinterpret_cast<const T*>(args.inputs[1].host());
    const T* const y = reinterpret_cast<const T*>(args.inputs[2].host());
    T* const out = reinterpret_cast<T*>(args.outputs[0].host());
    for_rows(machine.pool(), plan, [&](size_t at, const Broadcast::Offsets& in, size_t n) {
      where_row(condition + in[0], x + in[1], y + in[2], out + at, n, plan.moves);
    });
  }};
}

Kernel where_kernel() {
  return {.name = "cpu.where.broadcast",
          .supports =
              [](const OpCall& call) {
                return input_is(call, 1, {DType::F32, DType::I64, DType::I32, DType::Bool, DType::U8, DType::I8, DType::F64, DType::F16, DType::BF16});
              },
          .prepare =
              [](const OpCall& call, Device& device) {
                switch (bytes_of(call.output(0).dtype, 1)) {
                  case 1: return prepare_where<uint8_t>(call, machine_of(device));
                  case 2: return prepare_where<uint16_t>(call, machine_of(device));
                  case 4: return prepare_where<uint32_t>(call, machine_of(device));
                  default: return prepare_where<uint64_t>(call, machine_of(device));
                }
              }};
}

std::string lower(std::string_view op) {
  std::string text(op);
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

}  // namespace

void add_binary_kernels(KernelTable& table) {
  const auto add = [&table](const char* op, bool in_place) {
    table.add(op, {.name = cat("cpu.", lower(op), ".broadcast"), .supports = supports_binary, .prepare = prepare_binary, .in_place = in_place});
  };
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "PRelu", "And", "Or", "Xor"}) add(op, true);
  // Not in place: int64[1] and bool[8] have equal bytes, and an element that is broadcast is read again after its bytes were written.
  for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) add(op, false);
  table.add("Where", where_kernel());
}

}  // namespace unmoor::cpu
