#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "unmoor/backends/cpu/kernels/broadcast.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/integers.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/quantized_product.h"

namespace unmoor::cpu {

namespace {

// What each byte stands for, and what each byte becomes.
using Values = std::array<double, 256>;
using Table = std::array<uint8_t, 256>;

// A tensor's input, followed by its scale and its zero point.
struct Quantized {
  size_t input;
  bool is_signed;
};

int number_of(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

double zero_of(const KernelArgs& args, size_t i, bool is_signed) {
  const auto* const zero = input_as<uint8_t>(args, i);
  return zero == nullptr ? 0 : number_of(*zero, is_signed);
}

Values values_of(const KernelArgs& args, const Quantized& x) {
  const auto scale = static_cast<double>(*input_as(args, x.input + 1));
  const double zero = zero_of(args, x.input + 2, x.is_signed);
  Values values;
  for (size_t i = 0; i < values.size(); ++i) values[i] = (number_of(static_cast<uint8_t>(i), x.is_signed) - zero) * scale;
  return values;
}

// value / scale, rounded with ties to even, plus the zero point, limited. NaN becomes the zero point.
struct Quantizer {
  double scale, zero;
  bool is_signed;

  uint8_t operator()(double value) const {
    constexpr double most = 1e9;                     // Far from all limits.
    constexpr double rounding = 6755399441055744.0;  // 1.5 * 2^52: what is added to it loses its fraction.
    double q = value / scale;
    q = q == q ? q : 0;
    q = q < most ? q : most;
    q = q > -most ? q : -most;
    q = (q + rounding) - rounding + zero;
    const double low = is_signed ? -128 : 0;
    const double high = is_signed ? 127 : 255;
    q = q < high ? q : high;
    q = q > low ? q : low;
    return static_cast<uint8_t>(static_cast<int32_t>(q) & 0xff);
  }
};

Quantizer quantizer_at(const KernelArgs& args, size_t scale, bool is_signed) {
  return {static_cast<double>(*input_as(args, scale)), zero_of(args, scale + 1, is_signed), is_signed};
}

Table requantized(const KernelArgs& args, const Quantized& x, const Quantizer& quantizer) {
  const Values values = values_of(args, x);
  Table table;
  for (size_t i = 0; i < table.size(); ++i) table[i] = quantizer(values[i]);
  return table;
}

void look_up(const Table& table, const uint8_t* x, size_t n, uint8_t* y) {
  for (size_t i = 0; i < n; ++i) y[i] = table[x[i]];
}

// Scales must be float32.
Support real_scales(const OpCall& call, std::initializer_list<size_t> scales) {
  for (const size_t i : scales) {
    if (Support type = input_is(call, i, {DType::F32}); !type) return type;
  }
  return yes();
}

bool is_signed_input(const OpCall& call, size_t i) { return call.input(i).dtype == DType::I8; }

// The call of one that broadcasts like its tensors alone.
Broadcast broadcast_of_inputs(const OpCall& call, std::initializer_list<size_t> inputs) {
  std::vector<std::optional<Type>> types;
  for (const size_t i : inputs) types.push_back(call.inputs[i]);
  return broadcast_of(OpCall{call.node, types, call.outputs, {}}, types.size());
}

// QLinearAdd and QLinearMul: A, B, C, each with its scale and zero point.
template <class Combine>
void combine_row(const Values& a, const Values& b, const Quantizer& quantizer, const uint8_t* x, size_t x_step, const uint8_t* z,
                 size_t z_step, size_t n, uint8_t* y, const Combine& combine) {
  if (x_step != 0 && z_step != 0) {
    constexpr size_t most = 128;
    std::array<double, most> combined;
    std::array<int32_t, most> whole;
    const double low = (quantizer.is_signed ? -128 : 0) - quantizer.zero;
    for (size_t i = 0; i < n; i += most) {
      const size_t count = std::min(most, n - i);
      for (size_t k = 0; k < count; ++k) combined[k] = combine(a[x[i + k]], b[z[i + k]]);
      byte_loops().quantize_doubles(combined.data(), count, quantizer.scale, low, low + 255, quantizer.zero, whole.data());
      for (size_t k = 0; k < count; ++k) y[i + k] = static_cast<uint8_t>(whole[k] & 0xff);
    }
    return;
  }
  if (n < 512) {
    for (size_t i = 0; i < n; ++i) y[i] = quantizer(combine(a[x[i * x_step]], b[z[i * z_step]]));
    return;
  }
  Table table;  // One operand stands still.
  for (size_t i = 0; i < table.size(); ++i) table[i] = quantizer(combine(a[x_step == 0 ? *x : i], b[z_step == 0 ? *z : i]));
  look_up(table, x_step == 0 ? z : x, n, y);
}

template <class Combine>
Prepared prepare_combination(const OpCall& call, Device& device, const Combine& combine) {
  const bool is_signed = is_signed_input(call, 0);
  return {.run = [&machine = machine_of(device), plan = broadcast_of_inputs(call, {0, 3}), is_signed, combine](
                     Stream&, const KernelArgs& args) {
    const Values a = values_of(args, {0, is_signed});
    const Values b = values_of(args, {3, is_signed});
    const Quantizer quantizer = quantizer_at(args, 6, is_signed);
    for_rows(machine.pool(), plan, [&](size_t out, const Broadcast::Offsets& in, size_t n) {
      combine_row(a, b, quantizer, input_as<uint8_t>(args, 0) + in[0], plan.moves[0] ? 1 : 0, input_as<uint8_t>(args, 3) + in[1],
                  plan.moves[1] ? 1 : 0, n, output_as<uint8_t>(args, 0) + out, combine);
    });
  }};
}

// QLinearWhere: a condition, X, Y, Z.
Prepared prepare_where(const OpCall& call, Device& device) {
  const bool is_signed = is_signed_input(call, 1);
  return {.run = [&machine = machine_of(device), plan = broadcast_of_inputs(call, {0, 1, 4}), is_signed](Stream&,
                                                                                                         const KernelArgs& args) {
    const Quantizer quantizer = quantizer_at(args, 7, is_signed);
    const Table x = requantized(args, {1, is_signed}, quantizer);
    const Table y = requantized(args, {4, is_signed}, quantizer);
    for_rows(machine.pool(), plan, [&](size_t out, const Broadcast::Offsets& in, size_t n) {
      const auto* const condition = input_as<uint8_t>(args, 0) + in[0];
      const auto* const a = input_as<uint8_t>(args, 1) + in[1];
      const auto* const b = input_as<uint8_t>(args, 4) + in[2];
      auto* const z = output_as<uint8_t>(args, 0) + out;
      for (size_t i = 0; i < n; ++i) {
        z[i] = condition[plan.moves[0] ? i : 0] != 0 ? x[a[plan.moves[1] ? i : 0]] : y[b[plan.moves[2] ? i : 0]];
      }
    });
  }};
}

// A function of one tensor: its reference tells once what becomes of each of the 256 bytes.
Table reference_table(const OpCall& call, const KernelArgs& args) {
  OpCall small = call;
  small.constants.assign(call.input_count(), nullptr);
  std::vector<Data> in(call.input_count());
  for (size_t i = 0; i < in.size(); ++i) {
    if (!call.has(i)) continue;
    const TensorType type{call.input(i).dtype, i == 0 ? Shape{256} : call.input(i).shape};
    small.inputs[i] = Type(type);
    Tensor tensor(type);
    const auto bytes = tensor.writable_bytes();
    for (size_t k = 0; i == 0 && k < bytes.size(); ++k) bytes[k] = static_cast<std::byte>(k);
    if (i != 0) std::memcpy(bytes.data(), args.inputs[i].host(), bytes.size());
    in[i] = tensor;
  }
  small.outputs = {TensorType{call.output(0).dtype, Shape{256}}};
  Outputs outputs(1);
  run_reference(small, in, outputs);
  Table table;
  std::memcpy(table.data(), outputs.all()[0].tensor().bytes().data(), table.size());
  return table;
}

Prepared prepare_function(const OpCall& call, Device& device) {
  const auto n = static_cast<size_t>(call.output(0).shape.elements());
  const auto node = std::make_shared<const Node>(call.node);  // Outlives the graph's, and the call refers to it.
  const auto kept = std::make_shared<const OpCall>(OpCall{*node, call.inputs, call.outputs, {}});
  return {.run = [&machine = machine_of(device), n, node, kept](Stream&, const KernelArgs& args) {
    const Table table = reference_table(*kept, args);
    machine.pool().ranges(n, size_t{1} << 15, [&](size_t begin, size_t end) {
      look_up(table, input_as<uint8_t>(args, 0) + begin, end - begin, output_as<uint8_t>(args, 0) + begin);
    });
  }};
}

// QLinearConcat: the result's scale and zero point, then each tensor with its own.
Support supports_concat(const OpCall& call) {
  if (Support type = input_is(call, 0, {DType::F32}); !type) return type;
  for (size_t i = 2; i < call.input_count(); i += 3) {
    if (Support types = all_of(input_is(call, i, {DType::U8, DType::I8}), input_is(call, i + 1, {DType::F32})); !types)
      return types;
  }
  return yes();
}

struct Part {
  Quantized x;
  size_t run, first;  // Bytes of this tensor in each of the result's outer pieces, and where they begin.
};

Prepared prepare_concat(const OpCall& call, Device& device) {
  const Shape& shape = call.output(0).shape;
  const size_t axis = shape.axis(call.integer("axis", 0));
  const auto outer = static_cast<size_t>(shape.elements(0, axis));
  const auto run = static_cast<size_t>(shape.elements(axis, shape.rank()));
  std::vector<Part> parts;
  size_t first = 0;
  for (size_t i = 2; i < call.input_count(); i += 3) {
    const Shape& own = call.input(i).shape;
    parts.push_back({{i, is_signed_input(call, i)}, static_cast<size_t>(own.elements(axis, own.rank())), first});
    first += parts.back().run;
  }
  const bool is_signed = call.output(0).dtype == DType::I8;
  return {.run = [&machine = machine_of(device), parts, outer, run, is_signed](Stream&, const KernelArgs& args) {
    const Quantizer quantizer = quantizer_at(args, 0, is_signed);
    for (const Part& part : parts) {
      const Table table = requantized(args, part.x, quantizer);
      const auto* const x = input_as<uint8_t>(args, part.x.input);
      auto* const y = output_as<uint8_t>(args, 0) + part.first;
      machine.pool().ranges(outer, 32768 / (part.run + 1) + 1, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) look_up(table, x + i * part.run, part.run, y + i * run);
      });
    }
  }};
}

// DynamicQuantizeLinear.
Prepared prepare_dynamic(const OpCall& call, Device& device) {
  const auto n = static_cast<size_t>(call.input(0).shape.elements());
  return {.run = [&machine = machine_of(device), n](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    const ByteRange range = byte_range(machine, x, n);
    if (float* const scale = output_as(args, 1)) *scale = range.scale;
    if (auto* const zero = output_as<uint8_t>(args, 2)) *zero = static_cast<uint8_t>(range.zero);
    auto* const y = output_as<uint8_t>(args, 0);
    if (y == nullptr || n == 0) return;
    if (range.scale == 0) {
      std::memset(y, 0, n);
      return;
    }
    machine.pool().ranges(n, size_t{1} << 15, [&](size_t begin, size_t end) {
      byte_loops().quantize_bytes(x + begin, end - begin, range.scale, range.zero, y + begin);
    });
  }};
}

}  // namespace

void add_quantized_elementwise_kernels(KernelTable& table) {
  table.add(
      "com.microsoft:QLinearAdd",
      {.name = "cpu.qlinearadd.broadcast",
       .supports =
           [](const OpCall& call) {
             return real_scales(call, {1, 4, 6});
           },
       .prepare = [](const OpCall& call, Device& device) { return prepare_combination(call, device, std::plus<double>()); }});
  table.add("com.microsoft:QLinearMul",
            {.name = "cpu.qlinearmul.broadcast",
             .supports =
                 [](const OpCall& call) {
                   return real_scales(call, {1, 4, 6});
                 },
             .prepare = [](const OpCall& call,
                           Device& device) { return prepare_combination(call, device, std::multiplies<double>()); }});
  table.add("com.microsoft:QLinearWhere", {.name = "cpu.qlinearwhere.table",
                                           .supports =
                                               [](const OpCall& call) {
                                                 return real_scales(call, {2, 5, 7});
                                               },
                                           .prepare = prepare_where});
  for (const char* op : {"com.microsoft:QLinearSigmoid", "com.microsoft:QLinearLeakyRelu"}) {
    table.add(op, {.name = "cpu.qlinear.table",
                   .supports =
                       [](const OpCall& call) {
                         return real_scales(call, {1, 3});
                       },
                   .prepare = prepare_function});
  }
  table.add("com.microsoft:QLinearConcat",
            {.name = "cpu.qlinearconcat.table", .supports = supports_concat, .prepare = prepare_concat});
  table.add("DynamicQuantizeLinear", {.name = "cpu.dynamicquantizelinear.vector",
                                      .supports = [](const OpCall& call) { return inputs_are(call, {DType::F32}); },
                                      .prepare = prepare_dynamic});
}

}  // namespace unmoor::cpu
