#include "unmoor/ops/quantize.h"

#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {

Limits limits_of(DType dtype) {
  const auto bits = static_cast<int>(bits_of(dtype));
  if (is_signed(dtype)) return {-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1) - 1};
  return {0, std::ldexp(1, bits) - 1};
}

double quantized(double quotient, double zero_point, Limits limits) {
  const double rounded_value = std::isnan(quotient) ? 0 : std::nearbyint(quotient);
  return std::clamp(rounded_value + zero_point, limits.low, limits.high);
}

namespace {

const std::vector<DType>& small_types() {
  static const std::vector<DType> list{DType::U8,         DType::I8,     DType::U16,        DType::I16, DType::F8E4M3FN,
                                       DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::U4,  DType::I4,
                                       DType::F4E2M1,     DType::U2,     DType::I2};
  return list;
}

std::vector<DType> with_i32(std::vector<DType> list) {
  list.push_back(DType::I32);
  return list;
}

std::vector<DType> with_f8_scale() {
  std::vector<DType> list = float_types();
  list.push_back(DType::F8E8M0);
  return list;
}

// The dtype that an attribute names, or nothing for 0.
std::optional<DType> dtype_or_none(const OpCall& call, std::string_view key) {
  return call.integer(key, 0) == 0 ? std::nullopt : dtype_attribute(call, key);
}

enum class Grain { Tensor, Axis, Block };

// How the scale of shape `scale` lies over x. Fails with InvalidModel where it does not.
Grain grain_of(const OpCall& call, const Shape& x, const Shape& scale) {
  const int64_t block = call.integer("block_size", 0);
  if (block < 0) fail(ErrorKind::InvalidModel, title(call), ": block_size is ", block);
  if (block > 0) {
    bool fits = scale.rank() == x.rank() && x.rank() > 0;
    const size_t axis = fits ? axis_of(call, x, call.integer("axis", 1)) : 0;
    for (size_t i = 0; fits && i < x.rank(); ++i) {
      const int64_t wanted = i != axis || x[i] < 0 ? x[i] : x[i] / block + (x[i] % block == 0 ? 0 : 1);
      fits = wanted < 0 || scale[i] < 0 || scale[i] == wanted;
    }
    if (!fits) fail(ErrorKind::InvalidModel, title(call), ": scale ", scale, " does not fit input ", x, " in blocks of ", block);
    return Grain::Block;
  }
  if (scale.rank() == 0 || (scale.rank() == 1 && scale[0] == 1)) return Grain::Tensor;
  if (scale.rank() != 1)
    fail(ErrorKind::InvalidModel, title(call), ": scale ", scale, " has more than one dimension and no block_size");
  same_dim(call, scale[0], x.rank() == 0 ? 1 : x[axis_of(call, x, call.integer("axis", 1))], "the number of scales");
  return Grain::Axis;
}

// Which scale each element of x has.
class ScaleIndex {
 public:
  ScaleIndex(const OpCall& call, const Shape& x, const Shape& scale) : grain_(grain_of(call, x, scale)) {
    if (grain_ == Grain::Tensor) return;
    const size_t axis = axis_of(call, x, call.integer("axis", 1));
    at_ = split_at(x, axis);
    block_ = grain_ == Grain::Block ? static_cast<size_t>(call.integer("block_size", 0)) : 1;
    scales_ = static_cast<size_t>(scale[grain_ == Grain::Block ? axis : 0]);
  }
  size_t of(size_t i) const {
    if (grain_ == Grain::Tensor) return 0;
    const size_t along = i / at_.inner % at_.length / block_;
    if (grain_ == Grain::Axis) return along;
    return (i / (at_.inner * at_.length) * scales_ + along) * at_.inner + i % at_.inner;
  }

 private:
  Grain grain_;
  Split at_;
  size_t block_ = 1;
  size_t scales_ = 1;
};

void check_scale(const OpCall& call) {
  const Shape& x = call.input(0).shape;
  const Shape& scale = call.input(1).shape;
  if (x.has_rank() && scale.has_rank()) grain_of(call, x, scale);
  if (!call.has(2) || !scale.is_known() || !call.input(2).shape.is_known()) return;
  if (call.input(2).shape.elements() != scale.elements()) {
    fail(ErrorKind::InvalidModel, title(call), ": scale ", scale, " and zero point ", call.input(2).shape, " differ in shape");
  }
}

std::vector<Type> infer_quantize(const OpCall& call) {
  check_scale(call);
  const auto wanted = dtype_or_none(call, "output_dtype");
  const DType dtype = call.has(2) ? call.input(2).dtype : wanted.value_or(DType::U8);
  if (wanted && *wanted != dtype) {
    fail(ErrorKind::InvalidModel, title(call), ": output_dtype is ", *wanted, " and the zero point ", dtype);
  }
  if (std::ranges::find(small_types(), dtype) == small_types().end()) {
    fail(ErrorKind::InvalidModel, title(call), ": output_dtype cannot be ", dtype);
  }
  return {TensorType{dtype, call.input(0).shape}};
}

// The division is done in the dtype of the scale, unless `precision` says another.
DType division_dtype(const OpCall& call) {
  const DType scale = call.input(1).dtype;
  const DType wide = call.input(0).dtype == DType::F64 ? DType::F64 : DType::F32;
  if (wide == DType::F64) return wide;
  const DType dtype = dtype_or_none(call, "precision").value_or(scale == DType::F8E8M0 || !is_float(scale) ? wide : scale);
  return is_float(dtype) ? dtype : wide;
}

void store_small_floats(const OpCall& call, Tensor& result, std::span<const double> values) {
  const bool saturate = call.integer("saturate", 1) != 0;
  const DType dtype = result.dtype();
  if (saturate || bits_of(dtype) != 8 || !is_float(dtype)) return store(result, values);
  const auto bytes = result.writable_span<uint8_t>();
  for (size_t i = 0; i < values.size(); ++i) bytes[i] = to_f8(dtype, values[i], false);
}

void quantize_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& input = in[0].tensor();
  const ScaleIndex index(call, input.shape(), in[1].tensor().shape());
  std::vector<double> x = doubles(input);
  const std::vector<double> scale = doubles(in[1].tensor());
  const std::vector<double> zero = doubles_at(in, 2);
  Tensor& result = out.allocate(0, call.output(0));
  const bool whole = is_integer(result.dtype());
  const Limits limits = whole ? limits_of(result.dtype()) : Limits{};
  const DType division = division_dtype(call);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t k = index.of(i);
    const double quotient = rounded(division, x[i] / scale[k]);
    const double offset = zero.empty() ? 0 : zero[k];
    x[i] = whole ? quantized(quotient, offset, limits) : quotient + offset;
  }
  store_small_floats(call, result, x);
}

// Scale or zero point shaped to meet x. Blocks are repeated along the axis: a step of its own, then cut to size.
ValueId spread(Formula& f, ValueId value) {
  const OpCall& call = f.call();
  const Shape& x = call.input(0).shape;
  const Shape& scale = call.input(1).shape;
  if (!x.has_rank() || !scale.has_rank()) fail(ErrorKind::Unsupported, title(call), " cannot be expanded: ranks are not known");
  const Grain grain = grain_of(call, x, scale);
  if (grain == Grain::Tensor) return f.reshaped(value, {});
  const size_t axis = axis_of(call, x, call.integer("axis", 1));
  if (grain == Grain::Axis) {
    std::vector<int64_t> shape(x.rank(), 1);
    shape[axis] = -1;
    return f.reshaped(value, std::move(shape));
  }
  if (!x.is_known() || !scale.is_known())
    fail(ErrorKind::Unsupported, title(call), " cannot be expanded: its shapes are not known");
  std::vector<int64_t> apart = scale.dims();
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
  std::vector<int64_t> repeated = apart;
  repeated[axis + 1] = std::min(call.integer("block_size", 1), std::max<int64_t>(x[axis], 1));  // A block may be longer than the axis.
  std::vector<int64_t> joined = scale.dims();
  joined[axis] *= repeated[axis + 1];
  const ValueId wide =
      f.reshaped(f.add("Expand", {f.reshaped(value, std::move(apart)), f.ints(std::move(repeated))}), std::move(joined));
  return f.add("Slice", {wide, f.ints({0}), f.ints({x[axis]}), f.ints({static_cast<int64_t>(axis)})});
}

void expand_quantize(GraphBuilder& builder) {
  const DType to = builder.call().output(0).dtype;
  const DType division = division_dtype(builder.call());
  const DType wide = division == DType::F64 ? DType::F64 : DType::F32;
  Formula f(builder, wide);
  const auto cast = [&f](ValueId value, DType dtype) {
    return f.type(value).dtype == dtype ? value : f.add("Cast", {value}, {{"to", onnx_number(dtype)}});
  };
  ValueId y = f.wide(f.quotient(cast(f.raw(0), division), spread(f, cast(f.raw(1), division))));
  if (is_integer(to)) y = f.add("Where", {f.add("IsNaN", {y}), f.number(0), f.add("Round", {y})});
  if (f.has(2)) y = f.sum(y, spread(f, f.input(2)));
  if (is_integer(to)) {
    const Limits limits = limits_of(to);
    y = f.add("Clip", {y, f.number(limits.low), f.number(limits.high)});
  }
  builder.output(0, f.add("Cast", {y}, {{"to", onnx_number(to)}, {"saturate", f.call().integer("saturate", 1)}}));
}

Op quantize() {
  Op op;
  op.name = "QuantizeLinear";
  op.summary = "round(x / scale) + zero point, limited to the output's range; scales for the tensor, an axis or blocks.";
  op.inputs = {required("x", with_i32(float_types())), required("y_scale", with_i32(with_f8_scale())),
               optional("y_zero_point", small_types())};
  op.outputs = {required("y", small_types())};
  op.attributes = {{"axis", int64_t{1}},
                   {"block_size", int64_t{0}},
                   {"output_dtype", int64_t{0}},
                   {"precision", int64_t{0}},
                   {"saturate", int64_t{1}}};
  op.infer = infer_quantize;
  op.reference = quantize_reference;
  op.expand = expand_quantize;
  op.cost = cost_per_output(4);
  op.rounding = Rounding::Quantise;
  op.category = Category::Quantization;
  op.cases = {"T[2,3,4,5]~small f32[]{0.05} u8[]{128}",
              "T[257]~small f32[]{0.02} i8[]{3}",
              "T[33]~small f32[]{0.5}",
              "f16[257]~small f16[]{0.02} i8[]{3}",
              "bf16[33]~small bf16[]{0.5}",
              "T[2,3,4]~small f32[3]~positive! i8[3]~small! axis=1,-2",
              "f32[7]{-2.5,-1.5,-0.5,0.5,1.5,2.5,300} f32[]{1} u8[]{0}",
              "f32[2,8]~small f32[2,2]~positive! i8[2,2]~small! axis=1 block_size=4",
              "f32[2,7]~small f32[2,2]~positive! axis=1 block_size=4 output_dtype=i16",
              "f32[2,7]~small f32[2,1]~positive! axis=1 block_size=1099511627776",
              "f32[2,33]~special f32[]{0.5} u8[]{3}",
              "f32[33] f32[]{2} f8e4m3fn[]{0} saturate=0,1", "f32[33] f32[]{2} u8[]{7} saturate=0",
              "f32[33]~small f32[]{0.5} output_dtype=f8e5m2,u16,i16,u4,i4",
              "f32[0,4] f32[]{1} u8[]{0}"};
  return op;
}

std::vector<Type> infer_dequantize(const OpCall& call) {
  check_scale(call);
  if (call.has(2) && call.input(2).dtype != call.input(0).dtype) {
    fail(ErrorKind::InvalidModel, title(call), ": x is ", call.input(0).dtype, " and its zero point ", call.input(2).dtype);
  }
  const DType scale = call.input(1).dtype;
  const DType dtype = dtype_or_none(call, "output_dtype").value_or(scale == DType::F8E8M0 ? DType::F32 : scale);
  if (std::ranges::find(float_types(), dtype) == float_types().end()) {
    fail(ErrorKind::InvalidModel, title(call), ": output_dtype cannot be ", dtype);
  }
  return {TensorType{dtype, call.input(0).shape}};
}

void dequantize_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& input = in[0].tensor();
  const ScaleIndex index(call, input.shape(), in[1].tensor().shape());
  std::vector<double> x = doubles(input);
  const std::vector<double> scale = doubles(in[1].tensor());
  const std::vector<double> zero = doubles_at(in, 2);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t k = index.of(i);
    x[i] = (x[i] - (zero.empty() ? 0 : zero[k])) * scale[k];
  }
  put(call, out, 0, std::span<const double>(x));
}

void expand_dequantize(GraphBuilder& builder) {
  Formula f(builder, builder.call().output(0).dtype == DType::F64 ? DType::F64 : DType::F32);
  ValueId y = f.input(0);
  if (f.has(2)) y = f.difference(y, spread(f, f.input(2)));
  f.output(0, f.product(y, spread(f, f.input(1))));
}

Op dequantize() {
  Op op;
  op.name = "DequantizeLinear";
  op.summary = "(x - zero point)·scale; scales for the tensor, an axis or blocks.";
  op.inputs = {required("x", with_i32(small_types())), required("x_scale", with_f8_scale()),
               optional("x_zero_point", with_i32(small_types()))};
  op.outputs = {required("y", float_types())};
  op.attributes = {{"axis", int64_t{1}}, {"block_size", int64_t{0}}, {"output_dtype", int64_t{0}}};
  op.infer = infer_dequantize;
  op.reference = dequantize_reference;
  op.expand = expand_dequantize;
  op.cost = cost_per_output(2);
  op.rounding = Rounding::Steps;
  op.category = Category::Quantization;
  op.cases = {"u8[2,3,4,5] T[]{0.05} u8[]{128}",
              "i8[257] T[]{0.02} i8[]{3}",
              "i8[2,3,4] T[3]~positive! i8[3]~small! axis=1,-2",
              "i32[2,5] T[]{0.25}",
              "u4[33] f32[]{0.5} u4[]{7}",
              "i4[2,8] f32[2,2]~positive! i4[2,2]~small! axis=1 block_size=4",
              "u8[2,7]! f32[2,2]~positive! - axis=1 block_size=4",
              "u8[2,7] f32[2,1]~positive! - axis=1 block_size=1099511627776",
              "i4[0,3] f32[0,1] i4[0,1] axis=1 block_size=4",
              "f8e4m3fn[33] f32[]{0.5}",
              "i16[2,5] f32[]{0.001} i16[]{-5}",
              "u8[0,4] f32[]{1} u8[]{0}",
              "i8[64,32]! T[64]~positive! i8[64]~small! axis=0"};
  return op;
}

}  // namespace

ByteScale byte_scale_of(std::span<const double> x, DType dtype) {
  double low = 0;
  double high = 0;
  for (const double value : x) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  ByteScale range;
  range.scale = rounded(dtype, (high - low) / 255);
  // An input of zeros alone has no scale; the specification leaves its zero point open.
  const double place = range.scale == 0 ? 0 : rounded(dtype, -low / range.scale);
  range.zero = std::isnan(place) ? 0 : std::clamp(std::nearbyint(place), 0.0, 255.0);  // NaN where the range is infinite.
  return range;
}

namespace {

Op dynamic_quantize() {
  Op op;
  op.name = "DynamicQuantizeLinear";
  op.summary = "Quantizes to unsigned bytes with the scale and zero point that its own range asks for.";
  op.inputs = {required("x", {DType::F32, DType::F64})};
  op.outputs = {required("y", {DType::U8}), required("y_scale", {DType::F32, DType::F64}), required("y_zero_point", {DType::U8})};
  op.infer = [](const OpCall& call) {
    const TensorType& x = call.input(0);
    return std::vector<Type>{TensorType{DType::U8, x.shape}, TensorType{x.dtype, Shape()}, TensorType{DType::U8, Shape()}};
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    std::vector<double> x = doubles(in[0].tensor());
    const DType dtype = call.input(0).dtype;
    const ByteScale range = byte_scale_of(x, dtype);
    for (double& value : x) value = quantized(range.scale == 0 ? 0 : rounded(dtype, value / range.scale), range.zero, {0, 255});
    put(call, out, 0, std::span<const double>(x));
    if (call.wants_output(1)) put(call, out, 1, std::span<const double>(&range.scale, 1));
    if (call.wants_output(2)) put(call, out, 2, std::span<const double>(&range.zero, 1));
  };
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const ValueId x = f.input(0);
    const ValueId zero = f.number(0);
    const ValueId flat = f.add("Concat", {f.reshaped(x, {-1}), f.reshaped(zero, {1})}, {{"axis", int64_t{0}}});
    const ValueId low = f.add("ReduceMin", {flat, f.ints({0})}, {{"keepdims", int64_t{0}}});
    const ValueId high = f.add("ReduceMax", {flat, f.ints({0})}, {{"keepdims", int64_t{0}}});
    const ValueId scale = f.quotient(f.difference(high, low), f.number(255));
    const ValueId divisor = f.add("Where", {f.add("Equal", {scale, zero}), f.number(1), scale});
    const ValueId offset = f.add("Round", {f.quotient(f.difference(zero, low), divisor)});
    const ValueId y = f.sum(f.add("Round", {f.quotient(x, divisor)}), offset);
    f.output(0, f.add("Clip", {y, zero, f.number(255)}));
    f.output(1, scale);
    f.output(2, offset);
  };
  op.cost = cost_per_input(5);
  op.rounding = Rounding::Quantise;
  op.category = Category::Quantization;
  op.cases = {"f32[4]{-inf,0,1,3} outputs=3", "f32[4]{inf,0,1,3} outputs=3", "T[2,3,4]~small outputs=3", "T[257]~positive outputs=3", "f32[6]{0,2,-3,-2.5,1.34,0.5} outputs=3",
              "f32[3]{0,0,0} outputs=3", "f32[3]{-1,-2,-5} outputs=3"};
  return op;
}

}  // namespace

void add_linear_quantize_ops(OpSet& ops) {
  ops.add(quantize());
  ops.add(dequantize());
  ops.add(dynamic_quantize());
}

void add_quantize_ops(OpSet& ops) {
  add_linear_quantize_ops(ops);
  add_quantized_products(ops);
}

}  // namespace unmoor
