#include <algorithm>
#include <cmath>
#include <optional>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/integers.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/quantized_product.h"

namespace unmoor::cpu {

namespace {

// Where an operator has things among its inputs. Without a_scale, A is float32 and is quantized by its own range.
struct Inputs {
  size_t a = 0, b = 1;
  std::optional<size_t> a_scale, a_zero;
  size_t b_scale = 0, b_zero = 0, bias = 0;
  std::optional<size_t> y_scale;  // Then comes the result's zero point.
};

Inputs inputs_of(const OpCall& call) {
  if (call.node.op == "com.microsoft:DynamicQuantizeMatMul") return {0, 1, {}, {}, 2, 3, 4, {}};
  if (call.node.op == "com.microsoft:MatMulIntegerToFloat") return {0, 1, 2, 4, 3, 5, 6, {}};
  return {0, 3, 1, 2, 4, 5, 6, 7};  // QGemm.
}

struct QuantizedMatMul {
  Inputs at;
  size_t m = 0, n = 0, k = 0;
  DType a_dtype = DType::F32, b_dtype = DType::I8, y_dtype = DType::F32;
  bool transposed_a = false, transposed_b = false;
  bool gemm = false;  // The bias is int32, in units of the product; results are computed in double.
  double alpha = 1;
  Packed b;                                      // Null if it is not constant.
  size_t b_scales = 1, b_zeros = 1, biases = 0;  // How many there are. biases of a Gemm: see its steps.
  size_t bias_row = 0, bias_column = 0;          // A Gemm's: elements from row to row and from column to column.

  size_t a_bytes() const { return (m * row_stride(k) * sizeof(int16_t) + 63) / 64 * 64; }
  size_t row_bytes() const { return (n * sizeof(float) + 63) / 64 * 64; }
  size_t b_bytes() const { return b != nullptr ? 0 : matrix().packed_bytes(); }
  size_t workspace_bytes() const { return a_bytes() + 3 * row_bytes() + b_bytes(); }
  ByteMatrix matrix() const { return {.is_signed = b_dtype == DType::I8, .transposed = transposed_b, .k = k, .n = n}; }
};

Support bias_fits(const OpCall& call, const Inputs& at, size_t m, size_t n) {
  if (!call.has(at.bias)) return yes();
  if (!at.y_scale) return all_of(input_is(call, at.bias, {DType::F32}), one_or_per_column(call, at.bias, n));
  if (call.input(at.bias).shape.rank() > 2) return no(Reason::Rank, "a bias of ", call.input(at.bias).shape);
  const size_t elements = static_cast<size_t>(call.input(at.bias).shape.elements());
  if (elements == 1 || elements == n || elements == m || elements == m * n) return input_is(call, at.bias, {DType::I32});
  return no(Reason::Size, "a bias of ", call.input(at.bias).shape);
}

Support supports_quantized_matmul(const OpCall& call) {
  const Inputs at = inputs_of(call);
  const Shape& a = call.input(at.a).shape;
  const Shape& b = call.input(at.b).shape;
  if (a.rank() == 0 || b.rank() != 2) return no(Reason::Rank, "operands of ", a, " and ", b);
  if (a.elements() == 0 || b.elements() == 0) return no(Reason::Size, "an empty operand");
  Support types = input_is(call, at.b_scale, {DType::F32});
  if (types) types = at.a_scale ? input_is(call, *at.a_scale, {DType::F32}) : input_is(call, at.a, {DType::F32});
  if (types && at.y_scale) types = input_is(call, *at.y_scale, {DType::F32});
  if (!types) return types;
  const bool transposed = call.integer("transB", 0) != 0;
  const int64_t k = b[transposed ? 1 : 0];
  const auto n = static_cast<size_t>(b[transposed ? 0 : 1]);
  if (k > static_cast<int64_t>(most_exact_depth)) return no(Reason::Size, "sums of ", k, " products may not fit int32");
  for (const auto& single : {at.a_scale, at.a_zero}) {
    if (single && call.has(*single) && call.input(*single).shape.elements() != 1) {
      return no(Reason::Size, "input ", *single, " has more than one element");
    }
  }
  return all_of(one_or_per_column(call, at.b_scale, n), one_or_per_column(call, at.b_zero, n),
                bias_fits(call, at, static_cast<size_t>(a.elements() / k), n));
}

// Scales, zero points and bias for each column, and A as int16.
struct Ready {
  const int16_t* a;
  const int8_t* b;
  const float* scales;
  const int32_t* zeros;  // Null if they are all 0.
  const float* base;     // Null if there is none.
  float a_scale;
};

Ready make_ready(const Machine& machine, const QuantizedMatMul& q, const KernelArgs& args) {
  std::byte* const start = args.workspace.host();
  auto* const a = reinterpret_cast<int16_t*>(start);
  auto* const scales = reinterpret_cast<float*>(start + q.a_bytes());
  auto* const zeros = reinterpret_cast<int32_t*>(start + q.a_bytes() + q.row_bytes());
  auto* const base = reinterpret_cast<float*>(start + q.a_bytes() + 2 * q.row_bytes());
  Ready ready{a,       q.b != nullptr ? bytes_of(q.b) : reinterpret_cast<const int8_t*>(start + q.a_bytes() + 3 * q.row_bytes()),
              scales,  nullptr,
              nullptr, 1};
  if (q.at.a_scale) {
    const bool has_zero = args.inputs.size() > *q.at.a_zero && args.inputs[*q.at.a_zero].buffer != nullptr;
    const int zero = has_zero ? Bytes(q.a_dtype).of(args, *q.at.a_zero).at(0) : 0;
    ready.a_scale = *input_as(args, *q.at.a_scale);
    centre_rows(machine, {args.inputs[q.at.a].host(), q.a_dtype == DType::I8, q.transposed_a, zero}, q.m, q.k, a);
  } else {
    const ByteRange range = byte_range(machine, input_as(args, q.at.a), q.m * q.k);
    ready.a_scale = range.scale;
    quantize_rows(machine, input_as(args, q.at.a), q.m, q.k, range, a);
  }
  if (q.b == nullptr) {
    ByteMatrix matrix = q.matrix();
    matrix.data = args.inputs[q.at.b].host();
    matrix.pack(machine, reinterpret_cast<int8_t*>(start + q.a_bytes() + 3 * q.row_bytes()));
  }
  spread_scales(input_as(args, q.at.b_scale), q.b_scales, q.n, scales);
  if (spread_zeros(input_as<std::byte>(args, q.at.b_zero), q.b_dtype == DType::I8, q.b_zeros, q.n, zeros)) ready.zeros = zeros;
  if (q.biases != 0 && !q.gemm) {
    spread_scales(input_as(args, q.at.bias), q.biases, q.n, base);
    ready.base = base;
  }
  return ready;
}

void finish_float(const QuantizedMatMul& q, const Ready& ready, const ByteBlock& block, float* y) {
  for (size_t i = 0; i < block.rows; ++i) {
    const size_t row = block.row + i;
    const ByteScaling scaling{ready.scales + block.column, ready.a_scale,
                              ready.zeros == nullptr ? nullptr : ready.zeros + block.column,
                              ready.zeros == nullptr ? 0 : row_sum(ready.a + row * row_stride(q.k), q.k),
                              ready.base == nullptr ? nullptr : ready.base + block.column};
    byte_loops().scaled(block.sums + i * block.stride, block.columns, scaling, y + row * q.n + block.column);
  }
}

// Each step as the operator's definition has it, in double: quantized results must not fall to the other side.
void finish_gemm(const QuantizedMatMul& q, const Ready& ready, const ByteBlock& block, const KernelArgs& args) {
  const auto* const bias = q.biases == 0 ? nullptr : input_as<int32_t>(args, q.at.bias);
  const double scale = q.alpha * static_cast<double>(ready.a_scale);
  const bool whole = q.y_dtype != DType::F32;
  const double y_scale = whole ? static_cast<double>(*input_as(args, *q.at.y_scale)) : 1;
  const double y_zero = whole ? Bytes(q.y_dtype).of(args, *q.at.y_scale + 1).at(0) : 0;
  for (size_t i = 0; i < block.rows; ++i) {
    const size_t row = block.row + i;
    const int32_t sum = ready.zeros == nullptr ? 0 : row_sum(ready.a + row * row_stride(q.k), q.k);
    for (size_t j = 0; j < block.columns; ++j) {
      const size_t column = block.column + j;
      const int32_t centred = block.sums[i * block.stride + j] - (ready.zeros == nullptr ? 0 : sum * ready.zeros[column]);
      const double more = bias == nullptr ? 0 : bias[row * q.bias_row + column * q.bias_column];
      const double value = (centred + more) * static_cast<double>(ready.scales[column]) * scale;
      const size_t to = row * q.n + column;
      if (whole) {
        const double quotient = value / y_scale;
        const double rounded = std::isnan(quotient) ? 0 : std::nearbyint(quotient);
        const bool is_signed = q.y_dtype == DType::I8;
        const double limited = std::clamp(rounded + y_zero, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
        args.outputs[0].host()[to] = static_cast<std::byte>(static_cast<int>(limited) & 0xff);
      } else {
        output_as(args, 0)[to] = static_cast<float>(value);
      }
    }
  }
}

void run_quantized_matmul(const Machine& machine, const QuantizedMatMul& q, const KernelArgs& args) {
  const Ready ready = make_ready(machine, q, args);
  multiply_bytes(machine, {q.m, (q.k + 1) / 2, ready.a, row_stride(q.k), ready.b}, q.n, [&](const ByteBlock& block) {
    if (q.gemm) {
      finish_gemm(q, ready, block, args);
    } else {
      finish_float(q, ready, block, output_as(args, 0));
    }
  });
}

size_t elements_of(const OpCall& call, size_t i, size_t otherwise) {
  return call.has(i) ? static_cast<size_t>(call.input(i).shape.elements()) : otherwise;
}

QuantizedMatMul matmul_of(const OpCall& call, const Machine& machine) {
  QuantizedMatMul q;
  q.at = inputs_of(call);
  const Shape& b = call.input(q.at.b).shape;
  q.gemm = q.at.y_scale.has_value();
  q.transposed_a = q.gemm && call.integer("transA", 0) != 0;
  q.transposed_b = q.gemm && call.integer("transB", 0) != 0;
  q.k = static_cast<size_t>(b[q.transposed_b ? 1 : 0]);
  q.n = static_cast<size_t>(b[q.transposed_b ? 0 : 1]);
  q.m = elements_of(call, q.at.a, 0) / q.k;
  q.a_dtype = call.input(q.at.a).dtype;
  q.b_dtype = call.input(q.at.b).dtype;
  q.y_dtype = call.output(0).dtype;
  q.alpha = call.real("alpha", 1);
  q.b_scales = elements_of(call, q.at.b_scale, 1);
  q.b_zeros = elements_of(call, q.at.b_zero, 1);
  q.biases = elements_of(call, q.at.bias, 0);
  if (q.gemm && q.biases != 0) {
    const Shape& c = call.input(q.at.bias).shape;
    const bool by_column = c.rank() > 0 && c[c.rank() - 1] != 1;
    q.bias_column = by_column ? 1 : 0;
    q.bias_row = c.rank() < 2 || c[0] == 1 ? 0 : static_cast<size_t>(c[1]);
  }
  if (const Tensor* const constant = call.constant(q.at.b)) q.b = pack_bytes(machine, *constant, 0, q.matrix());
  return q;
}

Prepared prepare_quantized_matmul(const OpCall& call, Device& device) {
  const Machine& machine = machine_of(device);
  const auto product =
      std::make_shared<const QuantizedMatMul>(matmul_of(call, machine));  // Shared by the copies of the function below.
  std::vector<bool> unused(call.input_count(), false);
  unused[product->at.b] = product->b != nullptr;
  return {.run = [&machine, product](Stream&, const KernelArgs& args) { run_quantized_matmul(machine, *product, args); },
          .workspace_bytes = product->workspace_bytes(),
          .unused_inputs = unused};
}

}  // namespace

void add_quantized_matmul_kernels(KernelTable& table) {
  for (const char* op : {"DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QGemm"}) {
    table.add(cat("com.microsoft:", op),
              {.name = "cpu.matmul.bytes", .supports = supports_quantized_matmul, .prepare = prepare_quantized_matmul});
  }
}

}  // namespace unmoor::cpu
