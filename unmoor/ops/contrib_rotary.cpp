#include "unmoor/base/error.h"
#include "unmoor/ops/contrib_attention.h"
#include "unmoor/ops/run_graph.h"

// com.microsoft's RotaryEmbedding: ONNX's, with places that may be an offset, and tables behind them.
namespace unmoor {

namespace {

enum Input : size_t { X, Positions, Cos, Sin };

struct ContribRotary {
  int64_t heads = Shape::unknown;
  int64_t length = Shape::unknown;
  bool packed = false;
  int64_t turning = 0;  // rotary_embedding_dim; 0: the whole head.
};

ContribRotary read_contrib_rotary(const OpCall& call) {
  ContribRotary read;
  read.turning = call.integer("rotary_embedding_dim", 0);
  read.heads = call.integer("num_heads", 0);
  if (read.turning < 0 || read.heads < 0 || (read.turning > 0 && read.heads == 0)) {
    fail(ErrorKind::InvalidModel, title(call), ": num_heads is ", read.heads, " and rotary_embedding_dim ", read.turning);
  }
  require_rank(call, Cos, 2);
  require_rank(call, Sin, 2);
  const Shape& cos = call.input(Cos).shape;
  const Shape& x = call.input(X).shape;
  if (!x.has_rank()) return read;
  if (x.rank() != 3 && x.rank() != 4)
    fail(ErrorKind::InvalidModel, title(call), ": the input has shape ", x, ", not 3 or 4 dimensions");
  read.packed = x.rank() == 3;
  read.length = read.packed ? x[1] : x[2];
  int64_t width = read.packed ? Shape::unknown : x[3];
  if (!read.packed) read.heads = x[1];
  if (read.packed && read.heads == 0) {
    // Heads are twice as wide as the tables.
    if (cos.has_rank() && cos[1] > 0) width = Shape{2, cos[1]}.elements();
    read.heads = width < 0 || x[2] < 0 ? Shape::unknown : per_head(call, x[2], width);
  } else if (read.packed) {
    width = per_head(call, x[2], read.heads);
  }
  const int64_t turning = read.turning == 0 ? width : read.turning;
  if (cos.has_rank() && turning >= 0 && cos[1] >= 0 && (turning % 2 != 0 || cos[1] != turning / 2)) {
    fail(ErrorKind::InvalidModel, title(call), ": cos_cache of shape ", cos, " does not have half of ", turning, " columns");
  }
  return read;
}

bool is_offset(const OpCall& call) { return call.input(Positions).shape.rank() < 2; }

std::vector<Type> infer_contrib_rotary(const OpCall& call) {
  require_one_float_dtype(call);
  const ContribRotary read = read_contrib_rotary(call);
  const Shape& positions = call.input(Positions).shape;
  if (positions.has_rank() && positions.rank() == 2 && positions[1] != 1)
    same_dim(call, read.length, positions[1], "the length of position_ids");
  const bool fits =
      !positions.has_rank() || positions.rank() == 2 || (positions.rank() == 1 && (positions[0] < 0 || positions[0] == 1));
  if (!fits) fail(ErrorKind::InvalidModel, title(call), ": position_ids have shape ", positions, ", not [1] or [batch, length]");
  return like_first(call);
}

void expand_contrib_rotary(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const ContribRotary read = read_contrib_rotary(call);
  ValueId positions = f.raw(Positions);
  if (is_offset(call))
    positions = f.sum(sized(f, positions, {1, 1}), sized(f, places(builder, 0, read.length, false), {1, read.length}));
  Attributes attributes{{"interleaved", call.integer("interleaved", 0)}, {"rotary_embedding_dim", read.turning}};
  if (read.packed) attributes["num_heads"] = read.heads;
  builder.output(0, builder.add("RotaryEmbedding", {f.raw(X), f.raw(Cos), f.raw(Sin), positions}, std::move(attributes)));
}

}  // namespace

void add_contrib_rotary(OpSet& ops) {
  Op op;
  op.name = "com.microsoft:RotaryEmbedding";
  op.summary = "Pairs of each head's elements rotated by the angles of their position.";
  op.inputs = {required("input", float_types()), required("position_ids", {DType::I64}), required("cos_cache", float_types()),
               required("sin_cache", float_types())};
  op.outputs = {required("output", float_types())};
  // ONNX Runtime reads scale, but does not use it.
  op.attributes = {{"interleaved", int64_t{0}},
                   {"rotary_embedding_dim", int64_t{0}},
                   {"num_heads", int64_t{0}},
                   {"is_packed_batching", int64_t{0}},
                   {"scale", 1.0F}};
  op.infer = infer_contrib_rotary;
  op.reference = run_expansion;
  op.expand = expand_contrib_rotary;
  op.cost = cost_per_output(3);
  op.rounding = Rounding::Sum;
  op.category = Category::Attention;
  op.cases = {
      "T[2,3,16]~small i64[2,3]~index:10 T[10,4]~small T[10,4]~small interleaved=0,1",
      "T[2,3,16]~small i64[1]{4} T[10,4]~small T[10,4]~small interleaved=0,1",
      "T[2,2,3,8]~small i64[2,3]~index:10 T[10,4]~small T[10,4]~small interleaved=0,1",
      "T[2,2,3,8]~small i64[1]{0} T[10,4]~small T[10,4]~small",
      "T[2,3,16]~small i64[2,3]~index:10 T[10,2]~small T[10,2]~small num_heads=2 rotary_embedding_dim=4 interleaved=0,1",
      "T[2,2,3,8]~small i64[2,3]~index:10 T[10,2]~small T[10,2]~small num_heads=2 rotary_embedding_dim=4",
      "T[2,3,16]~small i64[2,3]~index:10 T[10,4]~small T[10,4]~small num_heads=2",
      "T[1,12,16]~small i64[1,12]~index:10 T[10,4]~small T[10,4]~small is_packed_batching=1",
      "T[1,1,8]~small i64[1]{9} T[10,4]~small T[10,4]~small scale=0.5",
      "T[0,3,16] i64[0,3] T[10,4] T[10,4]",
  };
  ops.add(std::move(op));
}

}  // namespace unmoor
