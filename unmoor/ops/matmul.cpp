#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/det.h"
#include "unmoor/ops/einsum.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/matrix.h"
#include "unmoor/ops/real.h"

namespace unmoor {

namespace {

const std::vector<DType>& product_types() {
  static const std::vector<DType> list{DType::F32, DType::F16, DType::BF16, DType::F64,
                                       DType::I32, DType::I64, DType::U32,  DType::U64};
  return list;
}

// Integers are multiplied unsigned, where they wrap around.
template <class Work>
void with_product_lane(DType dtype, Work&& work) {
  if (is_float(dtype)) {
    work(double{});
  } else {
    work(uint64_t{});
  }
}

Op matmul() {
  Op op;
  op.name = "MatMul";
  op.summary = "The matrix product, as NumPy's matmul.";
  op.inputs = {required("A", product_types()), required("B", product_types())};
  op.outputs = {required("Y", product_types())};
  op.infer = [](const OpCall& call) {
    require_same_dtype(call);
    return std::vector<Type>{TensorType{call.input(0).dtype, product_shape(call, call.input(0).shape, call.input(1).shape)}};
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const Tensor& a = in[0].tensor();
    const Tensor& b = in[1].tensor();
    Tensor& result = out.allocate(0, call.output(0));
    with_product_lane(a.dtype(), [&](auto lane) {
      using T = decltype(lane);
      if constexpr (std::is_same_v<T, double>) {
        const RealInput left(a), right(b);
        RealOutput y(result);
        add_matrices(left.data(), a.shape(), right.data(), b.shape(), {}, y.numbers());
        return y.store();
      }
      write_as<T>(result, multiply(read_as<T>(a), a.shape(), read_as<T>(b), b.shape()));
    });
  };
  op.cost = [](const OpCall& call) {
    return Cost{product_flop(call, call.input(0).shape, call.input(1).shape), bytes_moved(call)};
  };
  op.rounding = Rounding::Sum;
  op.category = Category::Matrix;
  op.cases = {"T[3,4]~small T[4,5]~small",
              "T[17,33]~small T[33,65]~small!",
              "T[1,128]~small T[128,64]~small!",
              "T[2,3,4]~small T[2,4,5]~small",
              "T[2,1,3,4]~small T[5,4,2]~small",
              "T[2,3,4]~small T[4,5]~small!",
              "T[4]~small T[4,5]~small",
              "T[3,4]~small T[4]~small",
              "T[4]~small T[4]~small",
              "T[2,3,4]~small T[4]~small",
              "T[4]~small T[2,4,3]~small",
              "T[0,4] T[4,5]",
              "T[3,0] T[0,5]",
              "T[0,3,4] T[0,4,5]",
              "T[0,3,4] T[4,5]!",
              "T[1,12,16,64]~small T[1,12,64,16]~small",
              "T[128,256]~small T[256,128]~small!"};
  return op;
}


std::vector<Type> infer_gemm(const OpCall& call) {
  require_same_dtype(call);
  require_rank(call, 0, 2);
  require_rank(call, 1, 2);
  const auto as_matrix = [&call](size_t i) { return call.input(i).shape.has_rank() ? call.input(i).shape : unknown_shape(2); };
  const Shape shape = product_shape(call, as_matrix(0), as_matrix(1), transposes(call));
  if (call.has(2)) require_broadcast_to(call, 2, shape);
  return {TensorType{call.input(0).dtype, shape}};
}

// Without factors integers stay exact; with some they are scaled in float64 and truncated once.
bool has_factors(const OpCall& call) { return call.real("alpha", 1) != 1 || (call.has(2) && call.real("beta", 1) != 1); }

// y = alpha·y + beta·c.
template <class T>
void scale_and_add(const OpCall& call, std::vector<T>& y, const Shape& shape, const Tensor* addend) {
  const auto alpha = static_cast<T>(call.real("alpha", 1));
  for (T& value : y) value *= alpha;
  if (addend == nullptr) return;
  const auto beta = static_cast<T>(call.real("beta", 1));
  const std::vector<T> c = read_as<T>(*addend);
  walk<1>(shape, {broadcast_strides(addend->shape(), shape)},
          [&](size_t i, const std::array<int64_t, 1>& at) { y[i] += beta * c[static_cast<size_t>(at[0])]; });
}

std::vector<double> as_doubles(const std::vector<uint64_t>& values, bool has_sign) {
  std::vector<double> result;
  for (const uint64_t value : values) {
    result.push_back(has_sign ? static_cast<double>(static_cast<int64_t>(value)) : static_cast<double>(value));
  }
  return result;
}

void gemm_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& a = in[0].tensor();
  const Tensor& b = in[1].tensor();
  Tensor& result = out.allocate(0, call.output(0));
  with_product_lane(a.dtype(), [&](auto lane) {
    using T = decltype(lane);
    std::vector<T> y = multiply(read_as<T>(a), a.shape(), read_as<T>(b), b.shape(), transposes(call));
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (has_factors(call)) {
        std::vector<double> wide = as_doubles(y, is_signed(a.dtype()));
        scale_and_add(call, wide, result.shape(), tensor_at(in, 2));
        return write_as<double>(result, wide);
      }
    }
    scale_and_add(call, y, result.shape(), tensor_at(in, 2));
    write_as<T>(result, y);
  });
}

ValueId maybe_scaled(Formula& f, ValueId value, double factor) { return factor == 1 ? value : f.product(value, f.number(factor)); }

void expand_float_gemm(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  Formula f(builder, call.input(0).dtype);
  std::vector<ValueId> inputs{f.raw(0), f.raw(1)};
  if (f.has(2)) inputs.push_back(maybe_scaled(f, f.raw(2), call.real("beta", 1)));
  builder.output(0, f.add("unmoor:FusedMatMul", std::move(inputs),
                          {{"transA", int64_t{transposes(call).a ? 1 : 0}},
                           {"transB", int64_t{transposes(call).b ? 1 : 0}},
                           {"alpha", static_cast<float>(call.real("alpha", 1))}}));
}

void expand_gemm(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  const DType dtype = call.input(0).dtype;
  if (is_float(dtype)) return expand_float_gemm(builder);
  Formula f(builder, has_factors(call) ? DType::F64 : dtype);
  const Attributes flip{{"perm", std::vector<int64_t>{1, 0}}};
  const ValueId a = transposes(call).a ? f.add("Transpose", {f.raw(0)}, flip) : f.raw(0);
  const ValueId b = transposes(call).b ? f.add("Transpose", {f.raw(1)}, flip) : f.raw(1);
  ValueId y = maybe_scaled(f, f.wide(f.add("MatMul", {a, b})), call.real("alpha", 1));
  if (f.has(2)) y = f.sum(y, maybe_scaled(f, f.input(2), call.real("beta", 1)));
  f.output(0, y);
}

Op gemm() {
  Op op;
  op.name = "Gemm";
  op.summary = "alpha·A·B + beta·C for matrices, each of A and B transposed if asked.";
  op.inputs = {required("A", product_types()), required("B", product_types()), optional("C", product_types())};
  op.outputs = {required("Y", product_types())};
  op.attributes = {{"alpha", 1.0F}, {"beta", 1.0F}, {"transA", int64_t{0}}, {"transB", int64_t{0}}};
  op.infer = infer_gemm;
  op.reference = gemm_reference;
  op.expand = expand_gemm;
  op.cost = [](const OpCall& call) {
    return Cost{product_flop(call, call.input(0).shape, call.input(1).shape, transposes(call)), bytes_moved(call)};
  };
  op.rounding = Rounding::Sum;
  op.category = Category::Matrix;
  op.cases = {"T[3,4]~small T[4,5]~small T[5]~small",
              "T[4,3]~small T[4,5]~small T[3,1]~small transA=1",
              "T[3,4]~small T[5,4]~small! T[5]~small! transB=1",
              "T[4,3]~small T[5,4]~small T[3,5]~small transA=1 transB=1",
              "T[3,4]~small T[4,5]~small",
              "f32[3,4]~small f32[4,5]~small f32[]~small alpha=0.5,2.0 beta=0.25,0.0",
              "T[17,65]~small T[33,65]~small! T[1,33]~small! transB=1",
              "T[0,4] T[4,5] T[5]",
              "T[1,128]~small T[1000,128]~small! T[1000]! transB=1",
              "f16[3,4]~small f16[4,5]~small f16[5]~small alpha=0.5 beta=2.0",
              "i32[3,4]~small i32[4,5]~small i32[5]~small alpha=0.5 beta=0.5",
              "u32[3,4]~small u32[5,4]~small transB=1 alpha=1.5"};
  return op;
}

}  // namespace

void add_matmul_ops(OpSet& ops) {
  ops.add(matmul());
  ops.add(gemm());
  add_einsum(ops);
  add_det(ops);
}

}  // namespace unmoor
