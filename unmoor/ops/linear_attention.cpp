#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/attention.h"

namespace unmoor {

namespace {

enum Input : size_t { Query, Key, Value, PastState, Decay, Beta };

// A call of LinearAttention, read. Unknown sizes are -1.
struct LinearCall {
  int64_t batch = Shape::unknown;
  int64_t length = Shape::unknown;
  int64_t heads = 0;   // Of queries.
  int64_t shared = 0;  // Of keys, values and the state.
  int64_t depth = Shape::unknown;
  int64_t width = Shape::unknown;
  double scale = 1;
  bool gated = false;      // The state fades by e^decay.
  bool corrected = false;  // What is written is beta·(value - what the key reads).
};

void read_rule(const OpCall& call, LinearCall& read) {
  const std::string rule = call.text("update_rule", "gated_delta");
  read.gated = rule == "gated" || rule == "gated_delta";
  read.corrected = rule == "delta" || rule == "gated_delta";
  if (!read.gated && !read.corrected && rule != "linear") {
    fail(ErrorKind::InvalidModel, title(call), ": update_rule is '", rule, "', not linear, gated, delta or gated_delta");
  }
  if (call.has(Decay) != read.gated || call.has(Beta) != read.corrected) {
    fail(ErrorKind::InvalidModel, title(call), ": update_rule ", rule, read.gated ? " needs" : " forbids", " decay and",
         read.corrected ? " needs" : " forbids", " beta");
  }
}

// Checks input i as [batch, length, last], `last` being one of two. Returns the last dimension found.
int64_t read_rows(const OpCall& call, LinearCall& read, size_t i) {
  require_rank(call, i, 3);
  const Shape& shape = call.input(i).shape;
  if (!shape.has_rank()) return Shape::unknown;
  read.batch = same_dim(call, read.batch, shape[0], "the batch");
  read.length = same_dim(call, read.length, shape[1], "the length");
  return shape[2];
}

int64_t read_heads(const OpCall& call, LinearCall& read, size_t i, int64_t heads) {
  const int64_t last = read_rows(call, read, i);
  if (last >= 0 && last % heads != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " of shape ", call.input(i).shape, " does not divide into ", heads,
         " heads");
  }
  return last < 0 ? Shape::unknown : last / heads;
}

void read_gate(const OpCall& call, LinearCall& read, size_t i, int64_t first, int64_t second) {
  if (!call.has(i)) return;
  const int64_t last = read_rows(call, read, i);
  if (last >= 0 && first >= 0 && second >= 0 && last != first && last != second) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", call.input(i).shape, "; its last dimension must be ",
         first, " or ", second);
  }
}

LinearCall read_linear(const OpCall& call) {
  LinearCall read;
  read_rule(call, read);
  read.heads = call.integer("q_num_heads", 0);
  read.shared = call.integer("kv_num_heads", 0);
  if (read.heads < 1 || read.shared < 1 || read.heads % read.shared != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": q_num_heads ", read.heads, " is no multiple of kv_num_heads ", read.shared);
  }
  read.depth = read_heads(call, read, Query, read.heads);
  read.depth = same_dim(call, read.depth, read_heads(call, read, Key, read.shared), "the size of a key");
  read.width = read_heads(call, read, Value, read.shared);
  if (call.has(PastState)) {
    require_rank(call, PastState, 4);
    const Shape& state = call.input(PastState).shape;
    if (state.has_rank()) {
      read.batch = same_dim(call, read.batch, state[0], "the batch");
      same_dim(call, read.shared, state[1], "the number of key heads");
      read.depth = same_dim(call, read.depth, state[2], "the size of a key");
      read.width = same_dim(call, read.width, state[3], "the size of a value");
    }
  }
  read_gate(call, read, Decay, read.shared, read.depth < 0 ? Shape::unknown : Shape{read.shared, read.depth}.elements());
  read_gate(call, read, Beta, read.shared, 1);
  read.scale = call.real("scale", 0);
  if (read.scale == 0) read.scale = usual_scale(read.depth);
  return read;
}

std::vector<Type> infer_linear(const OpCall& call) {
  for (const size_t i : {size_t{Key}, size_t{Value}, size_t{Decay}, size_t{Beta}}) {
    if (call.has(i) && call.input(i).dtype != call.input(Query).dtype) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", call.input(Query).dtype);
    }
  }
  const LinearCall read = read_linear(call);
  const Shape& query = call.input(Query).shape;
  Shape output;
  append_dim(output, read.batch, query, 0);
  append_dim(output, read.length, query, 1);
  output.push_back(read.width < 0 ? Shape::unknown : Shape{read.heads, read.width}.elements());
  Shape state;
  append_dim(state, read.batch, query, 0);
  for (const int64_t dim : {read.shared, read.depth, read.width}) state.push_back(dim);
  const DType dtype = call.input(Query).dtype;
  return {TensorType{dtype, output}, TensorType{call.has(PastState) ? call.input(PastState).dtype : dtype, state}};
}

// One key head of one batch: its state, [depth, width], as it goes through the steps.
class LinearState {
 public:
  LinearState(const LinearCall& read, std::span<double> state)
      : read_(read),
        depth_(static_cast<size_t>(read.depth)),
        width_(static_cast<size_t>(read.width)),
        state_(state),
        written_(width_) {}

  // `decay` has one number for all or one for each element of the key.
  void fade(std::span<const double> decay) {
    for (size_t c = 0; c < depth_; ++c) {
      const double factor = std::exp(decay[decay.size() == 1 ? 0 : c]);
      for (double& value : row(c)) value *= factor;
    }
  }

  void write(const double* key, const double* value, double beta) {
    for (size_t m = 0; m < width_; ++m) {
      double read = 0;
      for (size_t c = 0; read_.corrected && c < depth_; ++c) read += state_[c * width_ + m] * key[c];
      written_[m] = read_.corrected ? beta * (value[m] - read) : value[m];
    }
    for (size_t c = 0; c < depth_; ++c) {
      for (size_t m = 0; m < width_; ++m) row(c)[m] += key[c] * written_[m];
    }
  }

  void read(const double* query, double* output) const {
    for (size_t m = 0; m < width_; ++m) {
      double sum = 0;
      for (size_t c = 0; c < depth_; ++c) sum += query[c] * state_[c * width_ + m];
      output[m] = read_.scale * sum;
    }
  }

 private:
  std::span<double> row(size_t c) { return state_.subspan(c * width_, width_); }

  const LinearCall& read_;
  size_t depth_, width_;
  std::span<double> state_;
  std::vector<double> written_;
};

void linear_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const LinearCall read = read_linear(call);
  const auto size = [](int64_t dim) { return static_cast<size_t>(dim); };
  const size_t length = size(read.length), heads = size(read.heads), shared = size(read.shared);
  const size_t depth = size(read.depth), width = size(read.width), group = heads / shared;
  const std::vector<double> query = doubles(in[Query].tensor());
  const std::vector<double> key = doubles(in[Key].tensor());
  const std::vector<double> value = doubles(in[Value].tensor());
  const std::vector<double> decay = doubles_at(in, Decay);
  const std::vector<double> beta = doubles_at(in, Beta);
  const size_t decays = call.has(Decay) ? size(call.input(Decay).shape[2]) / shared : 0;
  const bool one_beta = call.has(Beta) && call.input(Beta).shape[2] == 1;
  std::vector<double> states = doubles_at(in, PastState);
  const size_t held = size(Shape{read.batch, read.shared, read.depth, read.width}.elements());
  const size_t made = size(Shape{read.batch, read.length, read.heads, read.width}.elements());
  check_doubles({held, made});
  states.resize(held);
  std::vector<double> output(made);
  const bool is_empty = output.empty() && states.empty();
  for (size_t b = 0; b < size(read.batch) && !is_empty; ++b) {
    for (size_t h = 0; h < shared; ++h) {
      LinearState state(read, std::span(states).subspan((b * shared + h) * depth * width, depth * width));
      for (size_t t = 0; t < length; ++t) {
        const size_t step = b * length + t;
        const size_t at = step * shared + h;
        if (read.gated) state.fade(std::span(decay).subspan(at * decays, decays));
        state.write(key.data() + at * depth, value.data() + at * width, read.corrected ? beta[one_beta ? step : at] : 0);
        for (size_t g = 0; g < group; ++g) {
          const size_t reader = step * heads + h * group + g;
          state.read(query.data() + reader * depth, output.data() + reader * width);
        }
      }
    }
  }
  put(call, out, 0, std::span<const double>(output));
  if (call.wants_output(1)) put(call, out, 1, std::span<const double>(states));
}

constexpr int64_t most_steps = 32;  // That an expansion writes out one by one.

// The steps written out: a decoder makes one at a time.
void expand_linear(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const LinearCall read = read_linear(call);
  if (read.length > most_steps) {
    fail(ErrorKind::Unsupported, title(call), ": ", read.length, " steps are more than the ", most_steps,
         " that can be written out");
  }
  const int64_t group = read.heads / read.shared;
  // Step t of an input as [batch, heads, rows, columns].
  const auto at = [&](size_t i, int64_t t, int64_t heads, int64_t rows, int64_t columns) {
    const ValueId row = f.add("Slice", {f.input(i), f.ints({t}), f.ints({t + 1}), f.ints({1})});
    return sized(f, row, {read.batch, heads, rows, columns});
  };
  const TensorType whole{f.dtype(), Shape{read.batch, read.shared, read.depth, read.width}};
  ValueId state = f.has(PastState) ? f.input(PastState) : builder.constant(Tensor(whole));
  std::vector<ValueId> outputs;
  for (int64_t t = 0; t < read.length; ++t) {
    if (read.gated) {
      const int64_t decays = call.input(Decay).shape[2] / read.shared;
      state = f.product(state, f.add("Exp", {at(Decay, t, read.shared, decays, 1)}));
    }
    ValueId written = at(Value, t, read.shared, 1, read.width);
    if (read.corrected) {
      const ValueId found = f.add("MatMul", {at(Key, t, read.shared, 1, read.depth), state});
      written = f.product(at(Beta, t, call.input(Beta).shape[2], 1, 1), f.difference(written, found));
    }
    state = f.sum(state, f.product(at(Key, t, read.shared, read.depth, 1), written));
    const ValueId found = f.add("MatMul", {at(Query, t, read.shared, group, read.depth), state});
    outputs.push_back(sized(f, f.product(found, f.number(read.scale)), {read.batch, 1, times(read.heads, read.width)}));
  }
  f.output(0, outputs.empty() ? builder.constant(Tensor(call.output(0))) : f.add("Concat", outputs, {{"axis", int64_t{1}}}));
  if (call.wants_output(1)) f.output(1, state);
}

Op linear_attention() {
  Op op;
  op.name = "LinearAttention";
  op.summary = "Attention by a state of keys times values that each step fades, corrects, writes and reads.";
  op.inputs = {required("query", float_types()),      required("key", float_types()),   required("value", float_types()),
               optional("past_state", float_types()), optional("decay", float_types()), optional("beta", float_types())};
  op.outputs = {required("output", float_types()), optional("present_state", float_types())};
  op.attributes = {{"update_rule", std::string("gated_delta")}, {"scale", 0.0F}, {"chunk_size", int64_t{64}}};
  op.infer = infer_linear;
  op.reference = linear_reference;
  op.expand = expand_linear;
  op.cost = [](const OpCall& call) {
    const LinearCall read = read_linear(call);
    double steps = 1;
    for (const int64_t dim : {read.batch, read.length, read.depth, read.width})
      steps *= static_cast<double>(std::max<int64_t>(dim, 0));
    return Cost{steps * (6 * static_cast<double>(read.shared) + 2 * static_cast<double>(read.heads)), bytes_moved(call)};
  };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  op.cases = {
      "T[2,3,8]~small T[2,3,8]~small T[2,3,6]~small update_rule=linear q_num_heads=2 kv_num_heads=2 outputs=2",
      "T[2,3,8]~small T[2,3,8]~small T[2,3,6]~small - T[2,3,2]~small update_rule=gated q_num_heads=2 kv_num_heads=2 outputs=2",
      "T[2,3,8]~unit T[2,3,8]~unit T[2,3,6]~small - - T[2,3,2]~unit update_rule=delta q_num_heads=2 kv_num_heads=2 outputs=2",
      "T[2,3,8]~unit T[2,3,8]~unit T[2,3,6]~small - T[2,3,2]~small T[2,3,2]~unit q_num_heads=2 kv_num_heads=2 outputs=2",
      // A decay for each element of the key; one beta for all heads; several query heads to a key head.
      "T[2,3,8]~unit T[2,3,8]~unit T[2,3,6]~small - T[2,3,8]~small T[2,3,1]~unit q_num_heads=2 kv_num_heads=2",
      "T[1,2,24]~unit T[1,2,8]~unit T[1,2,6]~small - T[1,2,2]~small T[1,2,2]~unit q_num_heads=6 kv_num_heads=2 outputs=2",
      "T[1,2,12]~small T[1,2,4]~small T[1,2,5]~small update_rule=linear q_num_heads=3 kv_num_heads=1 scale=0.0,0.5",
      // A state from before, in a dtype of its own too; one step; none.
      "T[2,1,8]~unit T[2,1,8]~unit T[2,1,6]~small T[2,2,4,3]~small T[2,1,2]~small T[2,1,2]~unit q_num_heads=2 kv_num_heads=2 "
      "outputs=2",
      "T[1,4,4]~small T[1,4,4]~small T[1,4,4]~small f32[1,1,4,4]~small update_rule=linear q_num_heads=1 kv_num_heads=1 outputs=2",
      "T[1,3,4]~small T[1,3,4]~small T[1,3,4]~small f16[1,1,4,4]~small T[1,3,1]~small update_rule=gated q_num_heads=1 "
      "kv_num_heads=1 "
      "outputs=2",
      "T[1,0,4] T[1,0,4] T[1,0,2] T[1,1,4,2] update_rule=linear q_num_heads=1 kv_num_heads=1 outputs=2",
      "T[0,2,4] T[0,2,4] T[0,2,4] update_rule=linear q_num_heads=2 kv_num_heads=2 outputs=2",
      "T[1,17,16]~unit T[1,17,16]~unit T[1,17,16]~small - T[1,17,1]~mask T[1,17,1]~unit q_num_heads=1 kv_num_heads=1 scale=0.125 "
      "chunk_size=8",
  };
  return op;
}

}  // namespace

void add_linear_attention_ops(OpSet& ops) {
  ops.add(linear_attention());
  add_causal_conv(ops);
}

}  // namespace unmoor
