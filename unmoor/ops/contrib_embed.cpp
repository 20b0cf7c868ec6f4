#include "unmoor/base/error.h"
#include "unmoor/ops/contrib_attention.h"
#include "unmoor/ops/normalize.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/run_graph.h"

// com.microsoft's operators around the attention of encoders and of diffusion models.
namespace unmoor {

namespace {

namespace embed {
enum Input : size_t { Words, Segments, WordTable, PositionTable, SegmentTable, Gamma, Beta, Mask, Positions };
}

Shape ranked(const OpCall& call, size_t i, size_t rank) {
  require_rank(call, i, rank);
  return call.input(i).shape.has_rank() ? call.input(i).shape : unknown_shape(rank);
}

std::vector<Type> infer_embed(const OpCall& call) {
  using namespace embed;
  if (call.has(Segments) != call.has(SegmentTable)) {
    fail(ErrorKind::InvalidModel, title(call), ": segment_ids and segment_embedding go together, but only one is given");
  }
  const Shape ids = ranked(call, Words, 2);
  int64_t batch = ids[0];
  int64_t length = ids[1];
  for (const size_t i : {size_t{Segments}, size_t{Mask}, size_t{Positions}}) {
    if (!call.has(i)) continue;
    const Shape shape = ranked(call, i, 2);
    if (i != Positions || shape[0] != 1) batch = same_dim(call, batch, shape[0], "the batch");
    length = same_dim(call, length, shape[1], "the length");
  }
  int64_t size = Shape::unknown;
  for (const size_t i : {size_t{WordTable}, size_t{PositionTable}, size_t{SegmentTable}}) {
    if (call.has(i)) size = same_dim(call, size, ranked(call, i, 2)[1], "the size of an embedding");
  }
  for (const size_t i : {size_t{Gamma}, size_t{Beta}})
    size = same_dim(call, size, ranked(call, i, 1)[0], "the size of an embedding");
  const int64_t rows = ranked(call, PositionTable, 2)[0];
  if (!call.has(Positions) && rows >= 0 && length > rows) {
    fail(ErrorKind::InvalidModel, title(call), ": ", length, " words are more than the ", rows, " positions there are");
  }
  const DType dtype = call.input(WordTable).dtype;
  Shape output;
  append_dim(output, batch, call.input(Words).shape, 0);
  append_dim(output, length, call.input(Words).shape, 1);
  output.push_back(size);
  Shape counts;
  append_dim(counts, batch, call.input(Words).shape, 0);
  return {TensorType{dtype, output}, TensorType{DType::I32, counts}, TensorType{dtype, output}};
}

void expand_embed(GraphBuilder& builder) {
  using namespace embed;
  const OpCall& call = builder.call();
  const DType dtype = call.input(WordTable).dtype;
  Formula f(builder, dtype == DType::F64 ? DType::F64 : DType::F32);
  const auto rows = [&](size_t table, size_t ids) {
    return f.wide(f.add("Gather", {f.raw(table), f.raw(ids)}, {{"axis", int64_t{0}}}));
  };
  const int64_t length = call.input(Words).shape[1];
  ValueId sum = rows(WordTable, Words);
  sum = f.sum(sum, f.has(Positions) ? rows(PositionTable, Positions) : f.wide(sliced(f, f.raw(PositionTable), 0, 0, length)));
  if (f.has(Segments)) sum = f.sum(sum, rows(SegmentTable, Segments));
  f.output(0, f.add("LayerNormalization", {sum, f.input(Gamma), f.input(Beta)},
                    {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(call.real("epsilon", static_cast<double>(1e-12F)))}}));
  if (call.wants_output(2)) f.output(2, sum);
  if (!call.wants_output(1)) return;
  // ONNX Runtime counts the ones, wherever they are; without a mask, it gives zeros.
  const Shape counts{call.input(Words).shape[0]};
  if (!f.has(Mask)) return builder.output(1, builder.constant(Tensor({DType::I32, counts})));
  const ValueId ones = f.add("Equal", {f.raw(Mask), builder.constant(Tensor::scalar<int32_t>(1))});
  const ValueId numbers = f.add("Cast", {ones}, {{"to", onnx_number(DType::I32)}});
  builder.output(1, f.add("ReduceSum", {numbers, f.ints({1})}, {{"keepdims", int64_t{0}}}));
}

Op embed_layer_norm() {
  const auto& t = float_types();
  const std::vector<DType> i32{DType::I32};
  Op op = normalization("com.microsoft:EmbedLayerNormalization",
                        "LayerNormalization of the sum of word, position and segment embeddings.",
                        {required("input_ids", i32), optional("segment_ids", i32), required("word_embedding", t),
                         required("position_embedding", t), optional("segment_embedding", t), required("gamma", t),
                         required("beta", t), optional("mask", i32), optional("position_ids", i32)},
                        10);
  op.outputs = {required("output", t), optional("mask_index", i32), optional("embedding_sum", t)};
  op.attributes = {{"epsilon", 1e-12F}, {"mask_index_type", int64_t{0}}};
  op.infer = infer_embed;
  op.reference = run_expansion;
  op.expand = expand_embed;
  op.cases = {
      "i32[2,3]~index:11 i32[2,3]~index:2 f32[11,6]~small! f32[7,6]~small! f32[2,6]~small! f32[6]~small! f32[6]~small! "
      "i32[2,3]{1,1,0,1,0,1} "
      "epsilon=1e-5 outputs=3",
      "i32[2,3]~index:11 i32[2,3]~index:2 f16[11,6]~small! f16[7,6]~small! f16[2,6]~small! f16[6]~small! f16[6]~small! outputs=3",
      "i32[2,3]~index:11 i32[2,3]~index:2 f64[11,6]~small! f64[7,6]~small! f64[2,6]~small! f64[6]~small! f64[6]~small! outputs=2",
      "i32[2,3]~index:11 - f32[11,6]~small! f32[7,6]~small! - f32[6]~small! f32[6]~small! outputs=2",
      "i32[2,3]~index:11 i32[2,3]~index:2 f32[11,6]~small! f32[7,6]~small! f32[2,6]~small! f32[6]~small! f32[6]~small! - "
      "i32[2,3]~index:7 outputs=2",
      "i32[2,3]~index:11 i32[2,3]~index:2 f32[11,6]~small! f32[7,6]~small! f32[2,6]~small! f32[6]~small! f32[6]~small! - "
      "i32[1,3]~index:7 outputs=2",
      "i32[2,3]~index:11 - f32[11,6]~small! f32[3,6]~small! - f32[6]~small! f32[6]~small! i32[2,3]{2,-1,0,5,0,1} outputs=2",
      "i32[1,1]{10} i32[1,1]{1} f32[11,1]~small! f32[1,1]~small! f32[2,1]~small! f32[1]~small! f32[1]~small! outputs=3",
      "i32[0,3] i32[0,3] f32[11,6]~small! f32[7,6]~small! f32[2,6]~small! f32[6]~small! f32[6]~small! i32[0,3] outputs=3",
      "i32[3,17]~index:99 i32[3,17]~index:2 f32[99,64]~small! f32[32,64]~small! f32[2,64]~small! f32[64]~small! f32[64]~small! "
      "i32[3,17]~unit outputs=2 mask_index_type=1",
  };
  return op;
}

// left·Gelu(right) of the two halves of x + bias.
Op bias_split_gelu() {
  Op op;
  op.name = "com.microsoft:BiasSplitGelu";
  op.summary = "The first half of x + bias times the Gelu of the second.";
  op.inputs = {required("X", float_types()), required("bias", float_types())};
  op.outputs = {required("Y", float_types())};
  op.infer = [](const OpCall& call) {
    require_one_float_dtype(call);
    const Shape x = ranked(call, 0, 3);
    const int64_t whole = same_dim(call, x[2], ranked(call, 1, 1)[0], "the size of the bias");
    if (whole >= 0 && whole % 2 != 0) fail(ErrorKind::InvalidModel, title(call), ": ", whole, " elements have no halves");
    Shape y;
    append_dim(y, x[0], x, 0);
    append_dim(y, x[1], x, 1);
    y.push_back(whole < 0 ? Shape::unknown : whole / 2);
    return std::vector<Type>{TensorType{call.input(0).dtype, y}};
  };
  op.reference = run_expansion;
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const int64_t half = f.call().input(0).shape[2] / 2;
    const ValueId sum = f.sum(f.input(0), f.input(1));
    f.output(0, f.product(sliced(f, sum, 2, 0, half), f.add("Gelu", {sliced(f, sum, 2, half, 2 * half)})));
  };
  op.cost = cost_per_output(23);
  op.rounding = Rounding::Function;
  op.category = Category::Activation;
  op.cases = {"T[2,3,8]~small T[8]~small!",
              "T[1,5,64]~small T[64]~small!",
              "T[1,1,2]~small T[2]~small",
              "T[0,3,8] T[8]~small!",
              "T[2,0,8] T[8]~small!",
              "T[1,2,0] T[0]",
              "T[3,1,34]~small T[34]~small",
              "T[2,3,8] T[8]!",
              "T[1,7,10]~positive T[10]~small!",
              "T[4,2,6]~unit T[6]~unit!"};
  return op;
}

// com.microsoft's GroupNorm, perhaps of a sum.
struct GroupNormCall {
  bool last = true;
  int64_t groups = 1;
  int64_t channels = Shape::unknown;
};

GroupNormCall read_group_norm(const OpCall& call) {
  GroupNormCall read;
  const Shape x = ranked(call, 0, 4);
  read.last = call.integer("channels_last", 1) != 0;
  read.groups = call.integer("groups", 0);
  read.channels = read.last ? x[3] : x[1];
  for (const size_t i : {size_t{1}, size_t{2}}) {
    read.channels = same_dim(call, read.channels, ranked(call, i, 1)[0], "the number of channels");
  }
  if (read.groups < 1 || (read.channels >= 0 && read.channels % read.groups != 0)) {
    fail(ErrorKind::InvalidModel, title(call), ": groups is ", read.groups, ", not a divisor of ", read.channels, " channels");
  }
  const int64_t activation = call.integer("activation", 0);
  if (activation != 0 && activation != 1)
    fail(ErrorKind::InvalidModel, title(call), ": activation is ", activation, ", not 0 or 1");
  if (call.input_count() <= 3) return read;
  const Shape& skip = call.input(3).shape;
  if (skip.has_rank() && skip.rank() == 2) {
    same_dim(call, x[0], skip[0], "the batch");
    same_dim(call, read.channels, skip[1], "the number of channels");
  } else {
    require_rank(call, 3, 4);
    require_broadcast_to(call, 3, x);
  }
  if (call.has(4)) same_dim(call, read.channels, ranked(call, 4, 1)[0], "the number of channels");
  return read;
}

void expand_contrib_group_norm(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const GroupNormCall read = read_group_norm(call);
  const Shape& shape = call.input(0).shape;
  const auto by_channel = [&](ValueId x, int64_t batch) {
    return sized(f, x,
                 read.last ? std::vector<int64_t>{batch, 1, 1, read.channels} : std::vector<int64_t>{batch, read.channels, 1, 1});
  };
  ValueId x = f.input(0);
  if (f.has(3)) x = f.sum(x, call.input(3).shape.rank() == 2 ? by_channel(f.input(3), shape[0]) : f.input(3));
  if (f.has(4)) x = f.sum(x, by_channel(f.input(4), 1));
  if (call.wants_output(1)) f.output(1, x);
  const int64_t inner = read.channels / read.groups;
  const int64_t plane = read.last ? shape.elements(1, 3) : shape.elements(2, 4);
  const ValueId grouped =
      read.last ? sized(f, x, {shape[0], plane, read.groups, inner}) : sized(f, x, {shape[0], read.groups, inner, plane});
  const Centred part = centred(f, grouped, read.last ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{2, 3}, epsilon_of(call));
  const ValueId normal = sized(f, f.product(part.difference, part.inverse), shape.dims());
  const ValueId y = f.sum(f.product(normal, by_channel(f.input(1), 1)), by_channel(f.input(2), 1));
  f.output(0, call.integer("activation", 0) == 1 ? f.add("Swish", {y}) : y);
}

Op contrib_group_norm(bool skips) {
  const auto& t = float_types();
  std::vector<Port> inputs{required("X", t), required("gamma", t), required("beta", t)};
  if (skips) {
    inputs.push_back(required("skip", t));
    inputs.push_back(optional("bias", t));
  }
  Op op = normalization(
      skips ? "com.microsoft:SkipGroupNorm" : "com.microsoft:GroupNorm",
      skips ? "GroupNorm of X + skip + bias." : "Groups of channels normalized, scaled and shifted, then an activation if asked.",
      std::move(inputs), 10);
  if (skips) op.outputs.push_back(optional("S", t));
  op.attributes = {{"groups", int64_t{0}}, {"activation", int64_t{0}}, {"channels_last", int64_t{1}}, {"epsilon", usual_epsilon}};
  op.infer = [](const OpCall& call) {
    read_group_norm(call);
    return std::vector<Type>{call.input(0), call.input(0)};
  };
  op.reference = run_expansion;
  op.expand = expand_contrib_group_norm;
  op.rounding = Rounding::Function;
  const std::string more = skips ? " T[2,3,5,8]~small" : "";
  op.cases = {cat("T[2,3,5,8]~small T[8]~small! T[8]~small!", more, " groups=2,1,8 activation=0,1"),
              cat("T[2,3,5,8]~small f32[8]~small! f32[8]~small!", more, " groups=4 epsilon=0.01"),
              cat("T[2,8,3,5]~small T[8]~small! T[8]~small!", skips ? " T[2,8,3,5]~small" : "",
                  " groups=2 activation=0,1 channels_last=0"),
              cat("T[1,1,1,6]~small T[6]~small! T[6]~small!", skips ? " T[1,1,1,6]~small" : "", " groups=3"),
              cat("T[0,3,5,8] T[8]~small! T[8]~small!", skips ? " T[0,3,5,8]" : "", " groups=2"),
              cat("T[1,4,4,64]~small T[64]~small! T[64]~small!", skips ? " T[1,4,4,64]~small" : "", " groups=32 activation=1")};
  if (!skips) return op;
  op.cases.insert(op.cases.end(),
                  {"T[2,3,5,8]~small T[8]~small! T[8]~small! T[2,3,5,8]~small T[8]~small! groups=2 outputs=2",
                   "T[2,3,5,8]~small T[8]~small! T[8]~small! T[2,1,1,8]~small groups=2 activation=1 outputs=2",
                   "T[2,3,5,8]~small T[8]~small! T[8]~small! T[2,8]~small T[8]~small! groups=4 outputs=2",
                   "T[2,8,3,5]~small T[8]~small! T[8]~small! T[2,8]~small T[8]~small! groups=4 channels_last=0 outputs=2"});
  return op;
}

}  // namespace

void add_contrib_embed_ops(OpSet& ops) {
  ops.add(embed_layer_norm());
  ops.add(bias_split_gelu());
  ops.add(contrib_group_norm(false));
  ops.add(contrib_group_norm(true));
}

}  // namespace unmoor
