#include "unmoor/ops/fused_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"

namespace unmoor {

namespace {

using namespace fused_attention;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::array<std::string_view, 3> layout_keys{"q_layout", "k_layout", "v_layout"};

// The places of batch, head, row and column among the four axes of a layout.
using Axes = std::array<size_t, 4>;

Axes axes_of(const OpCall& call, std::string_view key) {
  const std::string layout = call.text(key, "BHSD");
  if (layout == "BHSD") return {0, 1, 2, 3};
  if (layout == "BSHD") return {0, 2, 1, 3};
  if (layout == "BHDS" && key == "k_layout") return {0, 1, 3, 2};
  fail(ErrorKind::InvalidModel, title(call), ": ", key, " is '", layout, "', not BHSD or BSHD",
       key == "k_layout" ? " or BHDS" : "");
}

// Four dimensions in the order batch, head, row, column; ones in front of fewer. Nothing if the rank is unknown.
std::optional<Shape> canonical(const OpCall& call, size_t i) {
  const Shape& shape = call.input(i).shape;
  if (!shape.has_rank()) return std::nullopt;
  const Axes axes = axes_of(call, layout_keys[i]);
  const bool swaps_heads = axes[1] != 1;
  if (shape.rank() < 2 || shape.rank() > 4 || (swaps_heads && shape.rank() != 4)) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", shape, ", not ", swaps_heads ? "4" : "2 to 4",
         " dimensions");
  }
  Shape four;
  for (size_t axis = shape.rank(); axis < 4; ++axis) four.push_back(1);
  for (size_t axis = 0; axis < shape.rank(); ++axis) four.push_back(shape, axis);
  Shape result;
  for (const size_t axis : axes) result.push_back(four, axis);
  return result;
}

// Sizes as far as shapes tell.
HeadSizes sizes_of(const OpCall& call) {
  HeadSizes s;
  const auto q = canonical(call, Q);
  const auto k = canonical(call, K);
  const auto v = canonical(call, V);
  const auto meet = [&](int64_t& size, const std::optional<Shape>& shape, size_t axis, std::string_view what) {
    if (shape) size = same_dim(call, size, (*shape)[axis], what);
  };
  for (const auto* shape : {&q, &k, &v}) meet(s.batch, *shape, 0, "the batch");
  meet(s.heads, q, 1, "the query heads");
  for (const auto* shape : {&k, &v}) meet(s.shared, *shape, 1, "the key heads");
  meet(s.length, q, 2, "the queries");
  for (const auto* shape : {&k, &v}) meet(s.total, *shape, 2, "the keys");
  for (const auto* shape : {&q, &k}) meet(s.depth, *shape, 3, "the depth");
  meet(s.width, v, 3, "the width");
  require_groups(call, s);
  return s;
}

NoWeights no_weights_of(const OpCall& call) {
  const std::string text = call.text("no_weights", "nan");
  if (text == "nan") return NoWeights::NaN;
  if (text == "zero_if_shut") return NoWeights::ZeroIfShut;
  if (text == "zero_if_nan") return NoWeights::ZeroIfNaN;
  fail(ErrorKind::InvalidModel, title(call), ": no_weights is '", text, "', not nan, zero_if_shut or zero_if_nan");
}

std::vector<Type> infer(const OpCall& call) {
  if (call.input(K).dtype != call.input(Q).dtype || call.input(V).dtype != call.input(Q).dtype) {
    fail(ErrorKind::InvalidModel, title(call), ": Q, K and V are ", call.input(Q).dtype, ", ", call.input(K).dtype, " and ",
         call.input(V).dtype);
  }
  no_weights_of(call);
  const HeadSizes s = sizes_of(call);
  const Axes axes = axes_of(call, "y_layout");
  const Shape& q = call.input(Q).shape;
  const DType dtype = call.input(Q).dtype;
  if (!q.has_rank()) return {TensorType{dtype, Shape::of_unknown_rank()}};
  if (axes[1] != 1 && q.rank() != 4)
    fail(ErrorKind::InvalidModel, title(call), ": y_layout BSHD needs 4 dimensions, not those of ", q);
  for (const size_t i : {Bias, Shown}) {
    if (call.has(i)) require_broadcast_to(call, i, Shape{s.batch, s.heads, s.length, s.total});
  }
  // Both layouts swap the same two axes, so each is its own inverse: `axes` also tells the role of each axis.
  const Axes from = axes_of(call, "q_layout");
  const std::array<int64_t, 3> known{s.batch, s.heads, s.length};
  const size_t missing = 4 - q.rank();
  Shape y;
  for (size_t axis = missing; axis < 3; ++axis) append_dim(y, known[axes[axis]], q, from[axes[axis]] - missing);
  y.push_back(s.width);
  return {TensorType{dtype, y}};
}

HeadSteps steps_of(const HeadSizes& s, const Axes& axes, int64_t heads, int64_t rows, int64_t columns) {
  std::array<int64_t, 4> dims{};
  const std::array<int64_t, 4> roles{s.batch, heads, rows, columns};
  for (size_t role = 0; role < 4; ++role) dims[axes[role]] = roles[role];
  std::array<size_t, 4> by_axis{};
  size_t step = 1;
  for (size_t axis = 4; axis-- > 0;) {
    by_axis[axis] = step;
    step *= static_cast<size_t>(std::max<int64_t>(dims[axis], 1));
  }
  HeadSteps steps{};
  for (size_t role = 0; role < 4; ++role) steps[role] = by_axis[axes[role]];
  return steps;
}

HeadSteps broadcast_steps(const Shape& shape) {
  const std::vector<int64_t> dense = shape.strides();
  HeadSteps steps{};
  for (size_t axis = 0; axis < dense.size(); ++axis) {
    steps[axis + 4 - dense.size()] = shape[axis] == 1 ? 0 : static_cast<size_t>(dense[axis]);
  }
  return steps;
}

size_t at(const HeadSteps& steps, size_t b, size_t h, size_t i, size_t j) {
  return b * steps[0] + h * steps[1] + i * steps[2] + j * steps[3];
}

// The weights of one query in place of its scores. False: there are none, and the query gives zeros.
bool weigh(const FusedAttentionCall& read, std::vector<double>& row, bool is_shut) {
  if (read.no_weights == NoWeights::ZeroIfShut && is_shut) return false;
  double top = -infinity;
  for (const double score : row) top = std::max(top, score);
  double sum = 0;
  for (double& score : row) sum += score = std::exp(score - top);
  for (double& score : row) score /= sum;
  return read.no_weights != NoWeights::ZeroIfNaN || !std::isnan(sum);
}

void reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const FusedAttentionCall read = read_fused_attention(call);
  const HeadSizes& s = read.sizes;
  Tensor& result = out.allocate(0, call.output(0));
  if (result.elements() == 0) return;
  const auto q = doubles(in[Q].tensor()), k = doubles(in[K].tensor()), v = doubles(in[V].tensor());
  const auto bias = doubles_at(in, Bias), shown = doubles_at(in, Shown);
  std::vector<double> y(result.elements());
  const auto count = [](int64_t dim) { return static_cast<size_t>(dim); };
  std::vector<double> row(count(s.total));
  for (size_t b = 0; b < count(s.batch); ++b) {
    for (size_t h = 0; h < count(s.heads); ++h) {
      const size_t shared = h / count(s.heads / s.shared);
      for (size_t i = 0; i < count(s.length); ++i) {
        bool is_shut = read.bias.has_value();
        for (size_t j = 0; j < row.size(); ++j) {
          double sum = 0;
          for (size_t d = 0; d < count(s.depth); ++d) sum += q[at(read.q, b, h, i, d)] * k[at(read.k, b, shared, j, d)];
          const double more = read.bias ? bias[at(*read.bias, b, h, i, j)] : 0;
          is_shut = is_shut && more == -infinity;
          const bool is_shown = !read.shown || shown[at(*read.shown, b, h, i, j)] != 0;
          row[j] = is_shown ? sum * read.scale + more : read.hidden_score;
        }
        const bool weighs = weigh(read, row, is_shut);
        for (size_t c = 0; weighs && c < count(s.width); ++c) {
          double& to = y[at(read.y, b, h, i, c)];
          for (size_t j = 0; j < row.size(); ++j) to += row[j] * v[at(read.v, b, shared, j, c)];
        }
      }
    }
  }
  write_as<double>(result, y);
}

ValueId in_order(GraphBuilder& builder, ValueId value, const Axes& axes) {
  if (axes[1] == 1) return value;
  return builder.add("Transpose", {value}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

ValueId scores_of(Formula& f, const HeadSizes& s, int64_t group, ValueId q) {
  GraphBuilder& builder = f.builder();
  const OpCall& call = f.call();
  if (group != 1) q = sized(f, q, {s.batch, s.shared, times(group, s.length), s.depth});
  const bool is_flat = axes_of(call, "k_layout") == Axes{0, 1, 3, 2};
  const ValueId k = in_order(builder, f.raw(K), is_flat ? Axes{0, 1, 2, 3} : axes_of(call, "k_layout"));
  const ValueId scores = f.add("unmoor:FusedMatMul", {q, k},
                               {{"transB", int64_t{is_flat ? 0 : 1}}, {"alpha", static_cast<float>(call.real("scale", 1))}});
  return group == 1 ? scores : sized(f, scores, {s.batch, s.heads, s.length, s.total});
}

// Queries without weights give zeros where the call says so.
ValueId settled(Formula& f, ValueId scores, ValueId weights, NoWeights no_weights) {
  const DType dtype = f.type(weights).dtype;
  const auto zero_where = [&](ValueId condition) { return f.add("Where", {condition, f.builder().scalar(0, dtype), weights}); };
  if (no_weights == NoWeights::ZeroIfNaN) return zero_where(f.add("IsNaN", {weights}));
  if (no_weights == NoWeights::NaN || !f.has(Bias) || f.type(scores).shape[f.type(scores).shape.rank() - 1] == 0) return weights;
  const ValueId top = f.reduce("ReduceMax", f.raw(Bias), {-1});
  return zero_where(f.add("Equal", {top, f.builder().scalar(-infinity, f.type(f.raw(Bias)).dtype)}));
}

void expand(GraphBuilder& builder) {
  Formula f(builder, builder.call().input(Q).dtype);
  const OpCall& call = builder.call();
  const HeadSizes s = sizes_of(call);
  if (s.heads < 0 || s.shared < 0) fail(ErrorKind::Unsupported, title(call), ": the number of heads is not known");
  const int64_t group = s.heads / s.shared;
  ValueId score = scores_of(f, s, group, in_order(builder, f.raw(Q), axes_of(call, "q_layout")));
  if (f.has(Bias)) score = f.sum(score, f.raw(Bias));
  if (f.has(Shown)) score = f.add("Where", {f.raw(Shown), score, f.number(call.real("hidden_score", -infinity))});
  ValueId weights = settled(f, score, f.add("Softmax", {score}), no_weights_of(call));
  if (group != 1) weights = sized(f, weights, {s.batch, s.shared, times(group, s.length), s.total});
  ValueId y = f.add("MatMul", {weights, in_order(builder, f.raw(V), axes_of(call, "v_layout"))});
  if (group != 1) y = sized(f, y, {s.batch, s.heads, s.length, s.width});
  builder.output(0, in_order(builder, y, axes_of(call, "y_layout")));
}

const std::vector<std::string>& fused_attention_cases() {
  static const std::vector<std::string> cases{
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,10]~small scale=0.5",
      "T[2,4,3,8]~small T[2,6,3,8]~small T[2,6,3,10]~small q_layout=BSHD k_layout=BSHD v_layout=BSHD y_layout=BHSD,BSHD",
      "T[2,3,4,8]~small T[2,3,8,6]~small T[2,3,6,10]~small k_layout=BHDS y_layout=BSHD",
      "T[3,4,8]~small T[3,6,8]~small T[3,6,5]~small", "T[4,8]~small T[6,8]~small T[6,5]~small",
      // Several query heads to a key head.
      "T[2,6,5,8]~small T[2,2,7,8]~small T[2,2,7,10]~small",
      "T[1,1,8,16]~small T[1,9,2,16]~small T[1,9,2,16]~small T[1,1,1,9]~small q_layout=BSHD k_layout=BSHD v_layout=BSHD "
      "y_layout=BSHD",
      // Biases of every shape, and what they shut out.
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small T[2,3,4,6]~small",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small T[2,1,1,6]~mask no_weights=nan,zero_if_shut,zero_if_nan",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small T[4,1]~small",
      "f32[1,2,2,4]~small f32[1,2,3,4]~small f32[1,2,3,4]~small f32[2,3]{-inf,-inf,-inf,0,-inf,1} "
      "no_weights=nan,zero_if_shut,zero_if_nan",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small - bool[4,6]~mask hidden_score=-1000.0",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small T[1,3,4,6]~small bool[2,1,1,6]~mask",
      "f32[1,2,2,4]~small f32[1,2,3,4]~small f32[1,2,3,4]~small - bool[2,3]{0,0,0,1,0,1} no_weights=nan,zero_if_nan",
      // One query; many keys; sizes of real models.
      "T[1,4,1,16]~small T[1,4,33,16]~small T[1,4,33,16]~small T[1,1,1,33]~small",
      "T[2,4,3,16]~small T[2,4,33,16]~small T[2,4,33,24]~small",
      "f32[1,2,65,64]~small f32[1,2,1500,64]~small f32[1,2,1500,64]~small scale=0.125",
      "f32[1,1,300,32]~small f32[1,1,1100,32]~small f32[1,1,1100,48]~small f32[300,1100]~small",
      "f32[8,3,49,32]~small f32[8,3,49,32]~small f32[8,3,49,32]~small f32[8,1,49,49]~mask",
      "f32[1,77,8,64]~small f32[1,77,8,64]~small f32[1,77,8,64]~small f32[1,1,77,77]~small q_layout=BSHD k_layout=BSHD "
      "v_layout=BSHD y_layout=BSHD",
      // Nothing to see, nobody to look.
      "T[1,2,3,4]~small T[1,2,0,4] T[1,2,0,4]", "T[0,2,3,4] T[0,2,5,4] T[0,2,5,4]", "T[1,2,0,4] T[1,2,5,4] T[1,2,5,4]",
      "T[1,2,3,0] T[1,2,5,0] T[1,2,5,4]~small", "T[1,2,3,4]~small T[1,2,5,4]~small T[1,2,5,0]"};
  return cases;
}

}  // namespace

FusedAttentionCall read_fused_attention(const OpCall& call) {
  FusedAttentionCall read;
  read.sizes = sizes_of(call);
  const HeadSizes& s = read.sizes;
  read.scale = call.real("scale", 1);
  read.hidden_score = call.real("hidden_score", -infinity);
  read.no_weights = no_weights_of(call);
  read.q = steps_of(s, axes_of(call, "q_layout"), s.heads, s.length, s.depth);
  read.k = steps_of(s, axes_of(call, "k_layout"), s.shared, s.total, s.depth);
  read.v = steps_of(s, axes_of(call, "v_layout"), s.shared, s.total, s.width);
  read.y = steps_of(s, axes_of(call, "y_layout"), s.heads, s.length, s.width);
  if (call.has(Bias)) read.bias = broadcast_steps(call.input(Bias).shape);
  if (call.has(Shown)) read.shown = broadcast_steps(call.input(Shown).shape);
  return read;
}

void add_fused_attention(OpSet& ops) {
  Op op;
  op.name = "unmoor:FusedAttention";
  op.summary = "softmax(scale·Q·Kᵀ + bias, hidden_score where a key is not shown)·V by heads. BSHD: heads lie behind the rows.";
  op.inputs = {required("Q", float_types()), required("K", float_types()), required("V", float_types()),
               optional("bias", float_types()), optional("shown", {DType::Bool})};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"scale", 1.0F},
                   {"q_layout", std::string("BHSD")},
                   {"k_layout", std::string("BHSD")},
                   {"v_layout", std::string("BHSD")},
                   {"y_layout", std::string("BHSD")},
                   {"hidden_score", -std::numeric_limits<float>::infinity()},
                   {"no_weights", std::string("nan")}};
  op.infer = infer;
  op.reference = reference;
  op.expand = expand;
  op.cost = [](const OpCall& call) { return Cost{attention_flop(sizes_of(call)), bytes_moved(call)}; };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  op.cases = fused_attention_cases();
  ops.add(std::move(op));
}

}  // namespace unmoor
