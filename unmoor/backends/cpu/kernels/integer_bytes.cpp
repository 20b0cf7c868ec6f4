#include <algorithm>
#include <memory>
#include <optional>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/integers.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/quantized_product.h"

namespace unmoor::cpu {

namespace {

// Where MatMulInteger and QLinearMatMul have things: a, b, their zero points, and QLinearMatMul's scales, scale and zero point of
// y.
struct Places {
  size_t a, a_zero, b, b_zero;
  bool quantized;
  static constexpr size_t a_scale = 1, b_scale = 4, y_scale = 6, y_zero = 7;
};
Places places_of(const OpCall& call) {
  return call.node.op == "MatMulInteger" ? Places{0, 2, 1, 3, false} : Places{0, 2, 3, 5, true};
}

struct WholeProduct {
  Places at;
  size_t m = 0, n = 0, k = 0;
  DType a_dtype = DType::U8, b_dtype = DType::U8, y_dtype = DType::I32;
  Packed b;  // Null if it is not constant.
  size_t b_zeros = 1, b_scales = 1;

  size_t a_bytes() const { return (m * row_stride(k) * sizeof(int16_t) + 63) / 64 * 64; }
  size_t row_bytes() const { return (n * sizeof(float) + 63) / 64 * 64; }
  ByteMatrix matrix() const { return {.is_signed = b_dtype == DType::I8, .k = k, .n = n}; }
  size_t workspace_bytes() const { return a_bytes() + 2 * row_bytes() + (b == nullptr ? matrix().packed_bytes() : 0); }
};

Support is_single(const OpCall& call, size_t i) {
  if (!call.has(i) || call.input(i).shape.elements() == 1) return yes();
  return no(Reason::Size, "input ", i, " has ", call.input(i).shape.elements(), " elements, not one");
}

Support supports_bytes(const OpCall& call) {
  const Places at = places_of(call);
  for (const size_t i : {at.a, at.a_zero, at.b, at.b_zero}) {
    if (Support types = input_is(call, i, {DType::U8, DType::I8}); !types) return types;
  }
  const Shape& a = call.input(at.a).shape;
  const Shape& b = call.input(at.b).shape;
  if (a.rank() == 0 || b.rank() != 2) return no(Reason::Rank, "operands of ", a, " and ", b);
  if (a.elements() == 0 || b.elements() == 0) return no(Reason::Size, "an empty operand");
  const auto n = static_cast<size_t>(b[1]);
  const Support zeros = all_of(is_single(call, at.a_zero), one_or_per_column(call, at.b_zero, n));
  if (!zeros || !at.quantized) return zeros;
  if (b[0] > static_cast<int64_t>(most_exact_depth)) return no(Reason::Size, "sums of ", b[0], " products");
  return all_of(input_is(call, Places::a_scale, {DType::F32}), input_is(call, Places::b_scale, {DType::F32}),
                input_is(call, Places::y_scale, {DType::F32}), is_single(call, Places::a_scale), is_single(call, Places::y_scale),
                one_or_per_column(call, Places::b_scale, n));
}

// A row of sums less what B's zero points add to them, modulo 2^32 as the definition has it.
void centre_sums(const int32_t* sums, size_t n, const int32_t* zeros, int32_t row_sum, int32_t* to) {
  for (size_t j = 0; j < n; ++j) {
    to[j] =
        static_cast<int32_t>(static_cast<uint32_t>(sums[j]) - static_cast<uint32_t>(row_sum) * static_cast<uint32_t>(zeros[j]));
  }
}

// A block of sums, centred, as int32 or quantized to y's scale.
class Finish {
 public:
  Finish(const WholeProduct& p, const KernelArgs& args, const int16_t* a, const int32_t* zeros, const float* scales)
      : p_(p), args_(args), a_(a), zeros_(zeros), scales_(scales) {}

  void operator()(const ByteBlock& block) const {
    for (size_t i = 0; i < block.rows; ++i) {
      const size_t row = block.row + i;
      const size_t first = row * p_.n + block.column;
      const int32_t* const sums = block.sums + i * block.stride;
      int32_t* const to =
          p_.at.quantized ? reinterpret_cast<int32_t*>(scratch(3, block.columns)) : output_as<int32_t>(args_, 0) + first;
      if (zeros_ == nullptr) {
        std::copy_n(sums, block.columns, to);
      } else {
        centre_sums(sums, block.columns, zeros_ + block.column, row_sum(a_ + row * row_stride(p_.k), p_.k), to);
      }
      if (p_.at.quantized) quantize(to, block.column, block.columns, first);
    }
  }

 private:
  void quantize(const int32_t* sums, size_t column, size_t columns, size_t first) const {
    const Bytes y(p_.y_dtype);
    const double left = static_cast<double>(*input_as(args_, Places::a_scale));
    const double scale = static_cast<double>(*input_as(args_, Places::y_scale));
    const double zero = y.of(args_, Places::y_zero).at(0);
    for (size_t j = 0; j < columns; ++j) {
      const double factor = left * static_cast<double>(scales_[column + j]);
      y.put_row(args_.outputs[0].host(), first + j, 1, sums + j, 1, {0, factor, scale, zero});
    }
  }

  const WholeProduct& p_;
  const KernelArgs& args_;
  const int16_t* a_;
  const int32_t* zeros_;
  const float* scales_;
};

void run_bytes(const Machine& machine, const WholeProduct& p, const KernelArgs& args) {
  std::byte* const start = args.workspace.host();
  auto* const a = reinterpret_cast<int16_t*>(start);
  auto* const zeros = reinterpret_cast<int32_t*>(start + p.a_bytes());
  auto* const scales = reinterpret_cast<float*>(start + p.a_bytes() + p.row_bytes());
  auto* const panels = reinterpret_cast<int8_t*>(start + p.a_bytes() + 2 * p.row_bytes());
  const bool has_zero = p.at.a_zero < args.inputs.size() && args.inputs[p.at.a_zero].buffer != nullptr;
  const int zero = has_zero ? Bytes(p.a_dtype).of(args, p.at.a_zero).at(0) : 0;
  centre_rows(machine, {args.inputs[p.at.a].host(), p.a_dtype == DType::I8, false, zero}, p.m, p.k, a);
  if (p.b == nullptr) {
    ByteMatrix matrix = p.matrix();
    matrix.data = args.inputs[p.at.b].host();
    matrix.pack(machine, panels);
  }
  const bool shifted = spread_zeros(input_as<std::byte>(args, p.at.b_zero), p.b_dtype == DType::I8, p.b_zeros, p.n, zeros);
  if (p.at.quantized) spread_scales(input_as(args, Places::b_scale), p.b_scales, p.n, scales);
  const int8_t* const b = p.b == nullptr ? panels : bytes_of(p.b);
  multiply_bytes(machine, {p.m, (p.k + 1) / 2, a, row_stride(p.k), b}, p.n,
                 Finish(p, args, a, shifted ? zeros : nullptr, scales));
}

Prepared prepare_bytes(const OpCall& call, Device& device) {
  const Machine& machine = machine_of(device);
  WholeProduct p;
  p.at = places_of(call);
  const Shape& b = call.input(p.at.b).shape;
  const auto count = [&call](size_t i) { return call.has(i) ? static_cast<size_t>(call.input(i).shape.elements()) : size_t{1}; };
  p.k = static_cast<size_t>(b[0]);
  p.n = static_cast<size_t>(b[1]);
  p.m = count(p.at.a) / p.k;
  p.a_dtype = call.input(p.at.a).dtype;
  p.b_dtype = call.input(p.at.b).dtype;
  p.y_dtype = call.output(0).dtype;
  p.b_zeros = count(p.at.b_zero);
  p.b_scales = p.at.quantized ? count(Places::b_scale) : 1;
  if (const Tensor* const constant = call.constant(p.at.b)) p.b = pack_bytes(machine, *constant, 0, p.matrix());
  std::vector<bool> unused(call.input_count(), false);
  unused[p.at.b] = p.b != nullptr;
  const size_t workspace = p.workspace_bytes();
  return {.run = [&machine, p = std::move(p)](Stream&, const KernelArgs& args) { run_bytes(machine, p, args); },
          .workspace_bytes = workspace,
          .unused_inputs = unused};
}

}  // namespace

void add_integer_bytes_kernels(KernelTable& table) {
  table.add("MatMulInteger", {.name = "cpu.matmulinteger.bytes", .supports = supports_bytes, .prepare = prepare_bytes});
  table.add("QLinearMatMul", {.name = "cpu.qlinearmatmul.bytes", .supports = supports_bytes, .prepare = prepare_bytes});
}

}  // namespace unmoor::cpu
