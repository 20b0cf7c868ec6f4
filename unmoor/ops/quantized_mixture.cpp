#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/mixture.h"
#include "unmoor/ops/packed.h"

namespace unmoor {
namespace {

// Inputs: input, router_probs; weights, scales and bias of each matrix; zero points of each; router_weights; global scales.
const MixturePlaces places{{2, 5, 8}, {4, 7, 10}};
constexpr std::array<size_t, 3> scale_places{3, 6, 9};
constexpr std::array<size_t, 3> zero_places{11, 12, 13};
constexpr size_t router_weights = 14;
constexpr std::array<size_t, 2> global_scales{15, 16};

struct Packing {
  bool whole = true;  // Whole numbers of a few bits; otherwise 8-bit floats.
  std::array<int64_t, 3> bits{4, 4, 4};
  int64_t block = 0;  // 0: one scale for a row, or for an expert of floats.
};

Packing packing_of(const OpCall& call) {
  Packing packing;
  const std::string type = call.text("quant_type", "int");
  if (type != "int" && type != "fp8") {
    fail(ErrorKind::Unsupported, title(call), ": quant_type '", type, "' is not supported, only int and fp8 are");
  }
  packing.whole = type == "int";
  packing.block = std::max<int64_t>(call.integer("block_size", 0), 0);
  if (packing.block > 0 && packing.whole) require_block(call, packing.block);
  if (packing.whole && call.integer("weights_prepacked", -1) == 1) {
    fail(ErrorKind::Unsupported, title(call), ": weights_prepacked is 1, weights in the layout of one make of device");
  }
  const int64_t all = call.integer("expert_weight_bits", 4);
  packing.bits = {call.integer("fc1_expert_weight_bits", all), call.integer("fc2_expert_weight_bits", all),
                  call.integer("fc3_expert_weight_bits", all)};
  for (const int64_t bits : packing.bits) {
    if (packing.whole && bits != 3) require_packed_bits(call, bits);
  }
  for (const size_t i : places.weights) {
    if (!call.has(i) || (call.input(i).dtype == DType::U8) == packing.whole) continue;
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", but quant_type is ", type);
  }
  return packing;
}

Mixture qmoe_of(const OpCall& call, const Packing& packing) {
  std::array<double, 3> numbers{1, 1, 1};
  for (size_t i = 0; packing.whole && i < 3; ++i) numbers[i] = 8 / static_cast<double>(packing.bits[i]);
  return mixture_of(call, places, numbers);
}

void require_shape(const OpCall& call, size_t i, const Shape& wanted) {
  if (!call.has(i) || !call.input(i).shape.is_known() || !wanted.is_known() || call.input(i).shape == wanted) return;
  fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", call.input(i).shape, ", not ", wanted);
}

int64_t ceil_or_unknown(int64_t a, int64_t b) { return a < 0 ? Shape::unknown : ceil_div(a, b); }

void check_whole(const OpCall& call, const Packing& packing, size_t layer, int64_t experts, int64_t rows, int64_t columns) {
  const int64_t bits = packing.bits[layer];
  if (!call.has(scale_places[layer]))
    fail(ErrorKind::InvalidModel, title(call), ": the scales of matrix ", layer + 1, " are absent");
  if (packing.block == 0) {
    require_shape(call, scale_places[layer], Shape{experts, rows});
    require_shape(call, zero_places[layer], Shape{experts, ceil_or_unknown(rows < 0 ? rows : Shape{rows, bits}.elements(), 8)});
    return;
  }
  if (columns >= 0 && columns % packing.block != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": rows of ", columns, " weights are no multiple of block_size ", packing.block);
  }
  const int64_t blocks = ceil_or_unknown(columns, packing.block);
  require_shape(call, scale_places[layer], Shape{experts, rows, blocks});
  require_shape(call, zero_places[layer],
                Shape{experts, rows, ceil_or_unknown(blocks < 0 ? blocks : Shape{blocks, bits}.elements(), 8)});
}

void check_float(const OpCall& call, const Packing& packing, size_t layer, int64_t experts, int64_t rows, int64_t columns) {
  if (call.has(zero_places[layer])) fail(ErrorKind::InvalidModel, title(call), ": weights of 8-bit floats have no zero points");
  if (packing.block > 0) {
    if (!call.has(scale_places[layer]))
      fail(ErrorKind::InvalidModel, title(call), ": the scales of matrix ", layer + 1, " are absent");
    require_shape(call, scale_places[layer],
                  Shape{experts, ceil_or_unknown(rows, packing.block), ceil_or_unknown(columns, packing.block)});
    return;
  }
  if (layer == 2) fail(ErrorKind::InvalidModel, title(call), ": a third matrix of 8-bit floats needs a block_size");
  if (!call.has(global_scales[layer]))
    fail(ErrorKind::InvalidModel, title(call), ": the global scale of matrix ", layer + 1, " is absent");
  require_shape(call, global_scales[layer], Shape{experts});
}

std::vector<Type> infer_qmoe(const OpCall& call) {
  const Packing packing = packing_of(call);
  const Mixture mixture = qmoe_of(call, packing);
  const DType dtype = call.input(0).dtype;
  for (const size_t i : {size_t{1}, size_t{4}, size_t{7}, size_t{10}, router_weights}) {
    if (!call.has(i) || call.input(i).dtype == dtype) continue;
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", dtype);
  }
  for (size_t i = 17; i < call.input_count(); ++i) {
    if (call.has(i)) fail(ErrorKind::Unsupported, title(call), ": scales of quantised activations are not supported");
  }
  require_shape(call, router_weights, Shape{mixture.rows, mixture.experts});
  for (size_t layer = 0; layer < (mixture.third ? size_t{3} : size_t{2}); ++layer) {
    const int64_t rows = layer == 0 ? mixture.first_rows() : layer == 1 ? mixture.hidden : mixture.inner;
    const int64_t columns = layer == 1 ? mixture.inner : mixture.hidden;
    const auto check = packing.whole ? check_whole : check_float;
    check(call, packing, layer, mixture.experts, rows, columns);
  }
  return like_first(call);
}

// One expert's matrix, dequantized: [rows, columns].
std::vector<double> whole_matrix(const Packing& packing, std::span<const Data> in, size_t layer, size_t expert, size_t columns) {
  const Tensor& tensor = in[places.weights[layer]].tensor();
  const auto bits = static_cast<size_t>(packing.bits[layer]);
  const auto rows = static_cast<size_t>(tensor.shape()[1]);
  const auto row_bytes = static_cast<size_t>(tensor.shape()[2]);
  const auto bytes = tensor.span<uint8_t>().subspan(expert * rows * row_bytes, rows * row_bytes);
  const std::vector<double> scales = expert_part(in[scale_places[layer]].tensor(), expert);
  const size_t blocks = scales.size() / rows;
  const size_t block = static_cast<size_t>(ceil_div(static_cast<int64_t>(columns), static_cast<int64_t>(blocks)));
  std::span<const uint8_t> zeros;
  if (const Tensor* zero = tensor_at(in, zero_places[layer])) {
    const size_t each = zero->elements() / static_cast<size_t>(zero->shape()[0]);
    zeros = zero->span<uint8_t>().subspan(expert * each, each);
  }
  const size_t zero_row = packing.block == 0 ? 0 : zeros.size() / rows;
  std::vector<double> matrix(rows * columns);
  for (size_t i = 0; i < matrix.size(); ++i) {
    const size_t row = i / columns;
    const size_t at = i % columns / block;
    double zero = static_cast<double>(1U << (bits - 1));
    if (!zeros.empty()) {
      zero = packing.block == 0 ? packed_at(zeros, bits, row) : packed_at(zeros.subspan(row * zero_row, zero_row), bits, at);
    }
    matrix[i] = (packed_at(bytes.subspan(row * row_bytes, row_bytes), bits, i % columns) - zero) * scales[row * blocks + at];
  }
  return matrix;
}

std::vector<double> float_matrix(const Packing& packing, std::span<const Data> in, size_t layer, size_t expert) {
  const Tensor& tensor = in[places.weights[layer]].tensor();
  const auto columns = static_cast<size_t>(tensor.shape()[2]);
  std::vector<double> matrix = expert_part(tensor, expert);
  if (packing.block == 0) {
    const double scale = doubles(in[global_scales[layer]].tensor())[expert];
    for (double& value : matrix) value *= scale;
    return matrix;
  }
  const Tensor& scale = in[scale_places[layer]].tensor();
  const std::vector<double> scales = expert_part(scale, expert);
  const auto block = static_cast<size_t>(packing.block);
  const auto blocks = static_cast<size_t>(scale.shape()[2]);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] *= scales[i / columns / block * blocks + i % columns / block];
  return matrix;
}

// The weights of the chosen experts: the softmax over them alone, as ONNX Runtime's CPU kernel has it whatever
// normalize_routing_weights says, or what router_weights has for them.
std::vector<Route> routes_of(const OpCall& call, std::span<const double> logits, std::span<const double> given, size_t count) {
  if (given.empty() && call.integer("use_sparse_mixer", 0) != 0) return sparse_routes(logits);
  std::vector<Route> routes;
  const std::vector<size_t> chosen = largest(logits, count);
  double sum = 0;
  for (const size_t expert : chosen) {
    routes.push_back({expert, given.empty() ? std::exp(logits[expert] - logits[chosen[0]]) : given[expert]});
    sum += routes.back().weight;
  }
  if (!given.empty() && call.integer("normalize_routing_weights", 0) == 0) return routes;
  for (Route& route : routes) route.weight = sum == 0 ? 0 : route.weight / sum;
  return routes;
}

void run_qmoe(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Packing packing = packing_of(call);
  const Mixture mixture = qmoe_of(call, packing);
  const std::vector<double> logits = doubles(in[1].tensor());
  const std::vector<double> given = doubles_at(in, router_weights);
  const auto experts = static_cast<size_t>(mixture.experts);
  std::vector<std::vector<Route>> routes(static_cast<size_t>(mixture.rows));
  for (size_t row = 0; row < routes.size(); ++row) {
    const auto own = [&](const std::vector<double>& all) {
      return all.empty() ? std::span<const double>() : std::span<const double>(all).subspan(row * experts, experts);
    };
    routes[row] = routes_of(call, own(logits), own(given), static_cast<size_t>(mixture.chosen));
  }
  const auto weights = [&](size_t layer, size_t expert) {
    const auto columns = static_cast<size_t>(layer == 1 ? mixture.inner : mixture.hidden);
    return packing.whole ? whole_matrix(packing, in, layer, expert, columns) : float_matrix(packing, in, layer, expert);
  };
  put(call, out, 0, std::span<const double>(mix(call, mixture, places, in, routes, weights)));
}

std::vector<std::string> qmoe_cases() {
  const std::string start = "T[5,32]~small T[5,4]~small ";
  return {
      cat(start,
          "u8[4,16,16]! T[4,16]~unit! T[4,16]~small! u8[4,32,8]! T[4,32]~unit! T[4,32]~small! k=1,2 activation_type=silu,relu"),
      cat(start, "u8[4,16,16]! T[4,16]~unit! - u8[4,32,8]! T[4,32]~unit! - - - - u8[4,8]! u8[4,16]! k=2 activation_type=silu"),
      cat(start, "u8[4,16,16]! T[4,16,2]~unit! - u8[4,32,8]! T[4,32,1]~unit! - - - - u8[4,16,1]! u8[4,32,1]! k=2 block_size=16"),
      cat(start,
          "u8[4,32,32]! T[4,32]~unit! - u8[4,32,16]! T[4,32]~unit! k=2 expert_weight_bits=8 activation_type=swiglu "
          "swiglu_fusion=1,2 activation_alpha=1.702 activation_beta=1 swiglu_limit=7"),
      cat(start, "u8[4,16,8]! T[4,16]~unit! - u8[4,32,4]! T[4,32]~unit! k=2 expert_weight_bits=2 normalize_routing_weights=0,1"),
      cat(start,
          "u8[4,16,16]! T[4,16]~unit! - u8[4,32,8]! T[4,32]~unit! - u8[4,16,16]! T[4,16]~unit! - k=2 "
          "activation_type=silu,swiglu"),
      cat(start,
          "u8[4,16,16]! T[4,16]~unit! - u8[4,32,8]! T[4,32]~unit! - - - - - - - T[5,4]~unit k=2 normalize_routing_weights=0,1"),
      "T[2,3,32]~small T[6,4]~small u8[4,16,16]! T[4,16]~unit! - u8[4,32,8]! T[4,32]~unit! k=2 fc1_expert_weight_bits=4",
      cat(start,
          "u8[4,64,12]! T[4,64,1]~unit! - u8[4,32,32]! T[4,32,1]~unit! k=2 block_size=32 fc1_expert_weight_bits=3 "
          "fc2_expert_weight_bits=8 fc3_expert_weight_bits=3 activation_type=swiglu swiglu_fusion=1 weights_prepacked=0"),
      cat(start,
          "f8e4m3fn[4,16,32]!~small T[4,2,4]~unit! - f8e4m3fn[4,32,16]!~small T[4,4,2]~unit! k=2 quant_type=fp8 block_size=8"),
      cat(start,
          "f8e4m3fn[4,16,32]!~small - - f8e4m3fn[4,32,16]!~small - - - - - - - - - f32[4]~unit! f32[4]~unit! k=1 quant_type=fp8"),
      "T[0,32] T[0,4] u8[4,16,16]! T[4,16]! - u8[4,32,8]! T[4,32]! k=2"};
}

}  // namespace

void add_quantized_mixture_op(OpSet& ops) {
  Op op;
  op.name = "com.microsoft:QMoE";
  op.summary =
      "Each row through the experts that its router logits choose; their weights are whole numbers of a few bits or 8-bit "
      "floats.";
  const std::vector<DType> weight_types{DType::U8, DType::F8E4M3FN};
  std::vector<DType> scale_types = float_types();
  scale_types.push_back(DType::F8E8M0);
  scale_types.push_back(DType::F8E4M3FN);
  op.inputs = {required("input", float_types()), required("router_probs", float_types())};
  for (const char* matrix : {"fc1", "fc2", "fc3"}) {
    const Arity arity = matrix == std::string("fc3") ? Arity::Optional : Arity::Required;
    op.inputs.push_back({cat(matrix, "_experts_weights"), weight_types, arity});
    op.inputs.push_back(optional(cat(matrix, "_scales"), scale_types));
    op.inputs.push_back(optional(cat(matrix, "_experts_bias"), float_types()));
  }
  for (const char* matrix : {"fc1", "fc2", "fc3"}) op.inputs.push_back(optional(cat(matrix, "_zero_points"), weight_types));
  op.inputs.push_back(optional("router_weights", float_types()));
  for (const char* more : {"fc1_global_scale", "fc2_global_scale", "fc1_act_scale", "fc2_act_scale"}) {
    op.inputs.push_back(optional(more, {DType::F32}));
  }
  for (const char* more : {"fc1_act_block_scale", "fc2_act_block_scale"}) op.inputs.push_back(optional(more, scale_types));
  op.outputs = {required("output", float_types())};
  op.attributes = mixture_attributes();
  op.attributes["accuracy_level"] = int64_t{0};
  op.attributes["block_size"] = int64_t{0};
  op.attributes["expert_weight_bits"] = int64_t{4};
  op.attributes["quant_type"] = std::string("int");
  op.attributes["weights_prepacked"] = int64_t{-1};
  op.infer = infer_qmoe;
  op.reference = run_qmoe;
  op.cost = [](const OpCall& call) { return mixture_cost(call, qmoe_of(call, packing_of(call))); };
  op.rounding = Rounding::Function;
  op.category = Category::Quantization;
  op.cases = qmoe_cases();
  ops.add(std::move(op));
}

}  // namespace unmoor
