#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/attention.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/run_graph.h"

// The preview operator FlexAttention: attention with graphs that change the scores and the weights.
namespace unmoor {

namespace {

enum Input : size_t { Q, K, V };
constexpr size_t own_inputs = 3;  // What the graphs capture follows.

HeadSizes read_flex(const OpCall& call) {
  const auto shape = [&call](size_t i) {
    require_rank(call, i, 4);
    return call.input(i).shape.has_rank() ? call.input(i).shape : unknown_shape(4);
  };
  const Shape q = shape(Q);
  const Shape k = shape(K);
  const Shape v = shape(V);
  HeadSizes s;
  s.batch = same_dim(call, q[0], same_dim(call, k[0], v[0], "the batch"), "the batch");
  s.heads = q[1];
  s.shared = same_dim(call, k[1], v[1], "the number of key heads");
  s.length = q[2];
  s.total = same_dim(call, k[2], v[2], "the number of keys");
  s.depth = same_dim(call, q[3], k[3], "the size of a key");
  s.width = v[3];
  require_groups(call, s);
  return s;
}

// What the softmax and the graphs compute in: float32 or wider unless said otherwise.
DType softmax_dtype(const OpCall& call) {
  const DType own = call.input(Q).dtype;
  if (!call.has_attribute("softmax_precision")) return own == DType::F64 ? DType::F64 : DType::F32;
  const auto dtype = dtype_numbered(call.integer("softmax_precision", 1));
  const auto& known = float_types();
  if (dtype && std::ranges::find(known, *dtype) != known.end()) return *dtype;
  fail(ErrorKind::InvalidModel, title(call), ": softmax_precision is ", call.integer("softmax_precision", 1),
       ", not 1, 10, 11 or 16");
}

size_t captures(const OpCall& call) {
  const int64_t count = call.integer("captures", 0);
  if (count < 0 || static_cast<size_t>(count) + own_inputs != std::max(call.input_count(), own_inputs)) {
    fail(ErrorKind::InvalidModel, title(call), ": it has ", call.input_count(), " inputs, not 3 and ", count, " captured ones");
  }
  return static_cast<size_t>(count);
}

void check_graph(const OpCall& call, std::string_view key) {
  if (!call.has_attribute(key)) return;
  const SubGraph graph = call.graph(key);
  if (graph->inputs().size() != 1 + captures(call) || graph->outputs().size() != 1) {
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " has ",
         graph->inputs().size() - std::min(captures(call), graph->inputs().size()), " inputs and ", graph->outputs().size(),
         " outputs, not one of each");
  }
}

std::vector<Type> infer_flex(const OpCall& call) {
  for (const size_t i : {size_t{K}, size_t{V}}) {
    if (call.input(i).dtype != call.input(Q).dtype) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", call.input(Q).dtype);
    }
  }
  softmax_dtype(call);
  captures(call);
  check_graph(call, "score_mod");
  check_graph(call, "prob_mod");
  const HeadSizes s = read_flex(call);
  const Shape& q = call.input(Q).shape;
  Shape y;
  append_dim(y, s.batch, q, 0);
  append_dim(y, s.heads, q, 1);
  append_dim(y, s.length, q, 2);
  append_dim(y, s.width, call.input(V).shape, 3);
  return {TensorType{call.input(Q).dtype, y}};
}

// What the graph of that name makes of a value, which must keep its type.
ValueId modified(GraphBuilder& builder, std::string_view key, ValueId value) {
  const OpCall& call = builder.call();
  if (!call.has_attribute(key)) return value;
  std::vector<ValueId> inputs{value};
  for (size_t i = 0; i < captures(call); ++i) inputs.push_back(builder.input(own_inputs + i));
  const ValueId result = builder.add_body(*call.graph(key), inputs)[0];
  const auto* from = std::get_if<TensorType>(&builder.type(value));
  const auto* to = result == no_value ? nullptr : std::get_if<TensorType>(&builder.type(result));
  const bool fits =
      from != nullptr && to != nullptr && from->dtype == to->dtype && (!to->shape.is_known() || to->shape == from->shape);
  if (!fits) {
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " gives ", to == nullptr ? "nothing" : to_text(*to), ", not ",
         builder.type(value));
  }
  return result;
}

void expand_flex(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  Formula f(builder);
  const HeadSizes s = read_flex(call);
  const auto cast = [&](ValueId value) {
    const DType dtype = softmax_dtype(call);
    return f.type(value).dtype == dtype ? value : f.add("Cast", {value}, {{"to", onnx_number(dtype)}});
  };
  const int64_t group = s.heads / s.shared;
  const AttentionRule rule{.sizes = s, .scale = call.has_attribute("scale") ? call.real("scale", 1) : usual_scale(s.depth)};
  ValueId scores = cast(add_scores(f, rule, f.input(Q), f.input(K)));
  scores = modified(builder, "score_mod", scores);
  ValueId weights = modified(builder, "prob_mod", f.add("Softmax", {scores}));
  if (group != 1) weights = sized(f, weights, {s.batch, s.shared, times(group, s.length), s.total});
  const ValueId y = f.add("MatMul", {weights, cast(builder.input(V))});
  f.output(0, group == 1 ? y : sized(f, y, {s.batch, s.heads, s.length, s.width}));
}

}  // namespace

void add_flex_attention(OpSet& ops) {
  Op op;
  op.name = "ai.onnx.preview:FlexAttention";
  op.summary = "softmax(scale·Q·Kᵀ)·V by heads, with graphs that change the scores and the weights.";
  op.inputs = {required("Q", float_types()), required("K", float_types()), required("V", float_types()),
               variadic("captured", {})};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"captures", int64_t{0}}};
  op.infer = infer_flex;
  op.reference = run_expansion;
  op.expand = expand_flex;
  op.cost = [](const OpCall& call) { return Cost{attention_flop(read_flex(call)), bytes_moved(call)}; };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  op.cases = {
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,10]~small",
      "T[2,6,4,8]~small T[2,2,6,8]~small T[2,2,6,8]~small",
      "T[1,4,3,8]~small T[1,1,5,8]~small T[1,1,5,8]~small scale=0.5",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small score_mod=graph[Tanh]",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small prob_mod=graph[Sqrt,Neg]",
      "T[2,6,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small score_mod=graph[Abs] prob_mod=graph[Exp]",
      "T[2,6,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small score_mod=graph[] prob_mod=graph[]",
      "T[1,2,3,4]~small T[1,2,5,4]~small T[1,2,5,4]~small softmax_precision=1,11 score_mod=graph[Tanh]",
      "f16[1,2,3,4]~small f16[1,2,5,4]~small f16[1,2,5,4]~small softmax_precision=10,16",
      "T[0,2,3,4] T[0,2,5,4] T[0,2,5,4]",
      "T[1,2,0,4] T[1,2,5,4] T[1,2,5,4] score_mod=graph[Tanh]",
      "T[1,2,3,4] T[1,2,0,4] T[1,2,0,4]",
  };
  ops.add(std::move(op));
}

}  // namespace unmoor
