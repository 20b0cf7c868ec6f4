#include "unmoor/ops/rotary.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/attention.h"

namespace unmoor {

void rotate(std::span<double> head, const double* cos, const double* sin, Rotation rotation) {
  const auto half = static_cast<size_t>(rotation.half);
  for (size_t c = 0; c < half; ++c) {
    double& a = head[rotation.interleaved ? 2 * c : c];
    double& b = head[rotation.interleaved ? 2 * c + 1 : c + half];
    const double turned = cos[c] * a - sin[c] * b;
    b = sin[c] * a + cos[c] * b;
    a = turned;
  }
}

namespace {

ValueId reshaped(GraphBuilder& builder, ValueId x, std::vector<int64_t> shape) {
  return builder.add("Reshape", {x, builder.ints(std::move(shape))}, {{"allowzero", int64_t{1}}});
}

const Shape& shape_of(const GraphBuilder& builder, ValueId value) { return std::get<TensorType>(builder.type(value)).shape; }

}  // namespace

ValueId add_rotation(GraphBuilder& builder, ValueId x, ValueId cos, ValueId sin, int64_t width, Rotation rotation) {
  const int64_t half = rotation.half;
  const int64_t rest = width - 2 * half;
  ValueId turning = x;
  ValueId still = no_value;
  const Attributes last{{"axis", int64_t{-1}}};
  if (rest > 0) {
    const auto parts = builder.add_many("Split", {x, builder.ints({2 * half, rest})}, last, 2);
    turning = parts[0];
    still = parts[1];
  }
  // Interleaved pairs become an axis of their own.
  const std::vector<int64_t> flat = shape_of(builder, turning).dims();
  if (rotation.interleaved) {
    std::vector<int64_t> pairs = flat;
    pairs.back() = half;
    pairs.push_back(2);
    turning = reshaped(builder, turning, std::move(pairs));
    for (ValueId* const table : {&cos, &sin}) *table = builder.add("Unsqueeze", {*table, builder.ints({-1})});
  }
  const int64_t length = rotation.interleaved ? 1 : half;
  const auto pair = builder.add_many("Split", {turning, builder.ints({length, length})}, last, 2);
  const auto product = [&builder](ValueId a, ValueId b) { return builder.add("Mul", {a, b}); };
  const ValueId a = builder.add("Sub", {product(cos, pair[0]), product(sin, pair[1])});
  const ValueId b = builder.add("Add", {product(sin, pair[0]), product(cos, pair[1])});
  if (rotation.interleaved) {
    const ValueId turned = reshaped(builder, builder.add("Concat", {a, b}, last), flat);
    return still == no_value ? turned : builder.add("Concat", {turned, still}, last);
  }
  return builder.add("Concat", still == no_value ? std::vector<ValueId>{a, b} : std::vector<ValueId>{a, b, still}, last);
}

namespace {

enum Input : size_t { X, Cos, Sin, Positions };

// A call of ONNX's RotaryEmbedding, read.
struct RotaryCall {
  int64_t batch = Shape::unknown;
  int64_t heads = Shape::unknown;
  int64_t length = Shape::unknown;
  int64_t width = Shape::unknown;
  bool packed = false;     // [batch, length, heads·width], else [batch, heads, length, width].
  Rotation rotation = {};  // half: -1 if unknown.
};

void read_sizes(const OpCall& call, RotaryCall& read) {
  const Shape& x = call.input(X).shape;
  if (!x.has_rank()) return;
  if (x.rank() == 4) {
    read.batch = x[0];
    read.heads = x[1];
    read.length = x[2];
    read.width = x[3];
    return;
  }
  if (x.rank() != 3) fail(ErrorKind::InvalidModel, title(call), ": X has shape ", x, ", not 3 or 4 dimensions");
  read.packed = true;
  read.heads = call.integer("num_heads", 0);
  if (read.heads < 1) fail(ErrorKind::InvalidModel, title(call), ": X of 3 dimensions needs num_heads, which is ", read.heads);
  if (x[2] >= 0 && x[2] % read.heads != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": X of shape ", x, " does not divide into ", read.heads, " heads");
  }
  read.batch = x[0];
  read.length = x[1];
  read.width = x[2] < 0 ? Shape::unknown : x[2] / read.heads;
}

// cos_cache or sin_cache: [positions, half], or [batch, length, half] where positions are not given. More columns are left out,
// as the operator's function does.
void check_table(const OpCall& call, const RotaryCall& read, size_t i) {
  const Shape& table = call.input(i).shape;
  require_rank(call, i, call.has(Positions) ? 2 : 3);
  if (!table.has_rank()) return;
  const int64_t columns = table[table.rank() - 1];
  bool fits = columns < 0 || read.rotation.half < 0 || columns >= read.rotation.half;
  if (!call.has(Positions)) {
    fits = fits && (table[0] < 0 || read.batch < 0 || table[0] == 1 || table[0] == read.batch);
    fits = fits && (table[1] < 0 || read.length < 0 || table[1] == 1 || table[1] == read.length);
  }
  if (fits) return;
  fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", table, " where a batch of ", read.batch, ", ",
       read.length, " positions and ", read.rotation.half, " angles are wanted");
}

RotaryCall read_rotary(const OpCall& call) {
  RotaryCall read;
  read_sizes(call, read);
  read.rotation.interleaved = call.integer("interleaved", 0) != 0;
  const int64_t given = call.integer("rotary_embedding_dim", 0);
  const int64_t turning = given == 0 ? read.width : given;
  if (given < 0 || turning % 2 == 1 || (read.width >= 0 && turning > read.width)) {
    fail(ErrorKind::InvalidModel, title(call), ": ", turning, " elements of a head of ", read.width,
         " cannot be rotated in pairs");
  }
  read.rotation.half = turning < 0 ? Shape::unknown : turning / 2;
  check_table(call, read, Cos);
  check_table(call, read, Sin);
  if (!call.has(Positions)) return read;
  require_rank(call, Positions, 2);
  const Shape& positions = call.input(Positions).shape;
  if (!positions.has_rank()) return read;
  if (positions[0] != 1) same_dim(call, positions[0], read.batch, "the batch of position_ids");
  if (positions[1] != 1) same_dim(call, positions[1], read.length, "the length of position_ids");
  return read;
}

std::vector<Type> infer_rotary(const OpCall& call) {
  for (const size_t i : {size_t{Cos}, size_t{Sin}}) {
    if (call.input(i).dtype != call.input(X).dtype) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", call.input(X).dtype);
    }
  }
  read_rotary(call);
  return like_first(call);
}

// For each batch and position, where its row of cos or sin begins.
std::vector<size_t> table_rows(const OpCall& call, std::span<const Data> in, const RotaryCall& read, const Shape& table) {
  const auto columns = static_cast<size_t>(table[table.rank() - 1]);
  const Tensor* const positions = tensor_at(in, Positions);
  const std::vector<int64_t> ids = integers_at(in, Positions);
  const Shape& shape = positions == nullptr ? table : positions->shape();
  std::vector<size_t> rows;
  for (int64_t b = 0; b < read.batch; ++b) {
    for (int64_t i = 0; i < read.length; ++i) {
      const int64_t at = (shape[0] == 1 ? 0 : b) * shape[1] + (shape[1] == 1 ? 0 : i);
      int64_t row = positions == nullptr ? at : ids[static_cast<size_t>(at)];
      if (positions != nullptr && (row < -table[0] || row >= table[0])) {
        fail(ErrorKind::InvalidArgument, title(call), ": position ", row, " is outside of the ", table[0], " in the table");
      }
      if (row < 0) row += table[0];
      rows.push_back(static_cast<size_t>(row) * columns);
    }
  }
  return rows;
}

void rotary_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const RotaryCall read = read_rotary(call);
  std::vector<double> x = doubles(in[X].tensor());
  if (x.empty()) return put(call, out, 0, std::span<const double>(x));
  const std::vector<double> cos = doubles(in[Cos].tensor());
  const std::vector<double> sin = doubles(in[Sin].tensor());
  const std::vector<size_t> cos_rows = table_rows(call, in, read, in[Cos].tensor().shape());
  const std::vector<size_t> sin_rows = table_rows(call, in, read, in[Sin].tensor().shape());
  const auto width = static_cast<size_t>(read.width);
  const auto heads = static_cast<size_t>(read.heads);
  const auto length = static_cast<size_t>(read.length);
  for (size_t at = 0; width > 0 && at < x.size() / width; ++at) {
    const size_t position = read.packed ? at / heads : at / length / heads * length + at % length;
    rotate(std::span(x).subspan(at * width, width), cos.data() + cos_rows[position], sin.data() + sin_rows[position],
           read.rotation);
  }
  put(call, out, 0, std::span<const double>(x));
}

// The table's rows of all positions, with an axis of 1 for the heads.
ValueId expand_table(GraphBuilder& builder, Formula& f, const RotaryCall& read, size_t i) {
  ValueId table = f.input(i);
  const Shape& shape = f.call().input(i).shape;
  if (shape[shape.rank() - 1] > read.rotation.half) {
    table = f.add("Slice", {table, f.ints({0}), f.ints({read.rotation.half}), f.ints({-1})});
  }
  if (f.has(Positions)) table = f.add("Gather", {table, f.raw(Positions)}, {{"axis", int64_t{0}}});
  return builder.add("Unsqueeze", {table, f.ints({read.packed ? 2 : 1})});
}

void expand_rotary(GraphBuilder& builder) {
  Formula f(builder);
  const RotaryCall read = read_rotary(f.call());
  const Shape& shape = f.call().input(X).shape;
  ValueId x = f.input(X);
  if (read.packed) x = reshaped(builder, x, {read.batch, read.length, read.heads, read.width});
  const ValueId cos = expand_table(builder, f, read, Cos);
  const ValueId sin = expand_table(builder, f, read, Sin);
  ValueId y = add_rotation(builder, x, cos, sin, read.width, read.rotation);
  if (read.packed) y = reshaped(builder, y, shape.dims());
  f.output(0, y);
}

Op rotary() {
  Op op;
  op.name = "RotaryEmbedding";
  op.summary = "Pairs of each head's elements rotated by the angles of their position.";
  op.inputs = {required("X", float_types()), required("cos_cache", float_types()), required("sin_cache", float_types()),
               optional("position_ids", {DType::I64})};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"interleaved", int64_t{0}}, {"rotary_embedding_dim", int64_t{0}}, {"num_heads", int64_t{0}}};
  op.infer = infer_rotary;
  op.reference = rotary_reference;
  op.expand = expand_rotary;
  op.cost = cost_per_output(3);
  op.rounding = Rounding::Sum;
  op.category = Category::Attention;
  op.cases = {
      "T[2,3,4,8]~small T[10,4]~small T[10,4]~small i64[2,4]~index:10 interleaved=0,1",
      "T[2,4,24]~small T[10,4]~small T[10,4]~small i64[2,4]~index:10 num_heads=3 interleaved=0,1",
      "T[2,3,4,8]~small T[2,4,4]~small T[2,4,4]~small interleaved=0,1",
      "T[2,4,24]~small T[2,4,4]~small T[2,4,4]~small num_heads=3 interleaved=0,1",
      "T[2,3,4,8]~small T[10,2]~small T[10,2]~small i64[2,4]~index:10 rotary_embedding_dim=4 interleaved=0,1",
      "T[2,4,24]~small T[2,4,3]~small T[2,4,3]~small rotary_embedding_dim=6 num_heads=3 interleaved=0,1",
      "T[2,4,24]~small T[10,4]~small T[10,4]~small i64[2,4]~index:10 rotary_embedding_dim=8 num_heads=3",
      "T[1,1,1,2]~small T[1,1]~small T[1,1]~small i64[1,1]{0} interleaved=0,1",
      // One row for all, a table with more columns than it takes, places from the end.
      "T[2,3,4,8]~small T[1,4,4]~small T[1,1,4]~small",
      "T[2,3,4,8]~small T[10,4]~small T[10,4]~small i64[1,4]{-1,-10,0,9}",
      "T[2,3,4,8]~small T[10,4]~small T[10,5]~small i64[2,4]~index:10 rotary_embedding_dim=4",
      "T[0,3,4,8] T[10,4] T[10,4] i64[0,4]",
      "T[2,3,0,8] T[2,0,4] T[2,0,4]",
      "T[1,17,64]~small T[50,32]~small T[50,32]~small i64[1,17]~index:50 num_heads=1",
  };
  return op;
}

}  // namespace

void add_rotary_ops(OpSet& ops) { ops.add(rotary()); }

}  // namespace unmoor
