#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/activate.h"
#include "unmoor/ops/attention.h"
#include "unmoor/ops/moving.h"

namespace unmoor {

namespace {

enum Input : size_t { X, Weight, Bias, Past };

// A call of CausalConvWithState, read. Unknown sizes are -1.
struct CausalCall {
  int64_t batch = Shape::unknown;
  int64_t channels = Shape::unknown;
  int64_t length = Shape::unknown;
  int64_t before = Shape::unknown;  // Elements before the first that its output needs: the kernel's size less 1.
  bool swish = false;
};

CausalCall read_causal(const OpCall& call) {
  CausalCall read;
  const std::string activation = call.text("activation", "none");
  read.swish = activation == "silu" || activation == "swish";
  if (!read.swish && activation != "none") {
    fail(ErrorKind::InvalidModel, title(call), ": activation is '", activation, "', not none, silu or swish");
  }
  const auto shape = [&call](size_t i, size_t rank) {
    require_rank(call, i, rank);
    return call.input(i).shape.has_rank() ? call.input(i).shape : unknown_shape(rank);
  };
  const Shape x = shape(X, 3);
  const Shape weight = shape(Weight, 3);
  read.batch = x[0];
  read.channels = same_dim(call, x[1], weight[0], "the number of channels");
  read.length = x[2];
  same_dim(call, 1, weight[1], "the channels that a channel sees");
  if (weight[2] == 0) fail(ErrorKind::InvalidModel, title(call), ": its kernel of shape ", weight, " is empty");
  if (weight[2] > 0) read.before = weight[2] - 1;
  if (call.has(Bias)) read.channels = same_dim(call, read.channels, shape(Bias, 1)[0], "the number of channels");
  if (!call.has(Past)) return read;
  const Shape past = shape(Past, 3);
  read.batch = same_dim(call, read.batch, past[0], "the batch");
  read.channels = same_dim(call, read.channels, past[1], "the number of channels");
  read.before = same_dim(call, read.before, past[2], "the length of the state");
  return read;
}

std::vector<Type> infer_causal(const OpCall& call) {
  require_same_dtype(call);
  const CausalCall read = read_causal(call);
  const Shape& x = call.input(X).shape;
  Shape output;
  Shape state;
  append_dim(output, read.batch, x, 0);
  append_dim(output, read.channels, x, 1);
  append_dim(output, read.length, x, 2);
  append_dim(state, read.batch, x, 0);
  append_dim(state, read.channels, x, 1);
  state.push_back(read.before);
  return {TensorType{call.input(X).dtype, output}, TensorType{call.input(X).dtype, state}};
}

// The last elements of the state and the input, bit for bit.
void write_state(const OpCall& call, std::span<const Data> in, Outputs& out, const CausalCall& read) {
  Tensor& state = out.allocate(1, call.output(1));
  const ElementCopy from_input(in[X].tensor(), state);
  for_each_index(state.shape(), [&](int64_t at, const std::vector<int64_t>& index) {
    const int64_t row = index[0] * read.channels + index[1];
    const int64_t place = read.length + index[2] - read.before;  // In the input.
    if (place >= 0) from_input(row * read.length + place, at);
  });
  if (tensor_at(in, Past) == nullptr) return;
  const ElementCopy from_past(in[Past].tensor(), state);
  for_each_index(state.shape(), [&](int64_t at, const std::vector<int64_t>& index) {
    const int64_t row = index[0] * read.channels + index[1];
    const int64_t place = read.length + index[2];  // In the past state.
    if (place < read.before) from_past(row * read.before + place, at);
  });
}

void causal_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const CausalCall read = read_causal(call);
  const auto size = [](int64_t dim) { return static_cast<size_t>(dim); };
  const std::vector<double> x = doubles(in[X].tensor());
  const std::vector<double> weight = doubles(in[Weight].tensor());
  const std::vector<double> bias = doubles_at(in, Bias);
  const std::vector<double> past = doubles_at(in, Past);
  const size_t length = size(read.length);
  const size_t before = size(read.before);
  std::vector<double> y(x.size());
  for (size_t row = 0; !y.empty() && row < size(read.batch) * size(read.channels); ++row) {
    const size_t channel = row % size(read.channels);
    std::vector<double> line(before);
    if (!past.empty()) std::copy_n(past.begin() + static_cast<std::ptrdiff_t>(row * before), before, line.begin());
    line.insert(line.end(), x.begin() + static_cast<std::ptrdiff_t>(row * length),
                x.begin() + static_cast<std::ptrdiff_t>((row + 1) * length));
    for (size_t t = 0; t < length; ++t) {
      double sum = bias.empty() ? 0 : bias[channel];
      for (size_t j = 0; j <= before; ++j) sum += weight[channel * (before + 1) + j] * line[t + j];
      y[row * length + t] = read.swish ? swish(sum, 1) : sum;
    }
  }
  put(call, out, 0, std::span<const double>(y));
  if (call.wants_output(1)) write_state(call, in, out, read);
}

void expand_causal(GraphBuilder& builder) {
  Formula f(builder);
  const CausalCall read = read_causal(f.call());
  const ValueId past = f.has(Past)
                           ? f.raw(Past)
                           : builder.constant(Tensor({f.call().input(X).dtype, Shape{read.batch, read.channels, read.before}}));
  const ValueId line = read.before == 0 ? f.raw(X) : f.add("Concat", {past, f.raw(X)}, {{"axis", int64_t{2}}});
  if (read.length == 0) {
    builder.output(0, f.raw(X));
  } else {
    std::vector<ValueId> inputs{f.wide(line), f.input(Weight)};
    if (f.has(Bias)) inputs.push_back(f.input(Bias));
    const ValueId y = f.add("Conv", std::move(inputs), {{"group", read.channels}});
    f.output(0, read.swish ? f.add("Swish", {y}) : y);
  }
  if (!f.call().wants_output(1)) return;
  f.output(1, f.add("Slice", {line, f.ints({read.length}), f.ints({read.length + read.before}), f.ints({2})}));
}

}  // namespace

void add_causal_conv(OpSet& ops) {
  Op op;
  op.name = "CausalConvWithState";
  op.summary = "A convolution along time, channel by channel, that sees only what came before, with a state to go on from.";
  op.inputs = {required("input", float_types()), required("weight", float_types()), optional("bias", float_types()),
               optional("past_state", float_types())};
  op.outputs = {required("output", float_types()), optional("present_state", float_types())};
  op.attributes = {{"activation", std::string("none")}};
  op.infer = infer_causal;
  op.reference = causal_reference;
  op.expand = expand_causal;
  op.cost = [](const OpCall& call) {
    const auto taps = static_cast<double>(std::max<int64_t>(read_causal(call).before, 0) + 1);
    return Cost{2 * taps * elements_or_zero(call.input(X).shape), bytes_moved(call)};
  };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  op.cases = {
      "T[2,3,7]~small T[3,1,4]~small outputs=2",
      "T[2,3,7]~small T[3,1,4]~small T[3]~small activation=none,silu,swish outputs=2",
      "T[2,3,7]~small T[3,1,4]~small T[3]~small T[2,3,3]~small activation=silu outputs=2",
      "T[2,3,7]~small T[3,1,4]~small - T[2,3,3]~small",
      // Shorter than the state; one step; a kernel of one.
      "T[2,3,2]~small T[3,1,5]~small - T[2,3,4]~small outputs=2",
      "T[2,3,2]~small T[3,1,5]~small outputs=2",
      "T[1,16,1]~small T[16,1,4]~small! T[16]~small! T[1,16,3]~small activation=swish outputs=2",
      "T[2,3,5]~small T[3,1,1]~small - T[2,3,0] outputs=2",
      "T[2,3,5]~small T[3,1,1]~small T[3]~small outputs=2",
      "T[2,3,0] T[3,1,4]~small - T[2,3,3] outputs=2",
      "T[0,3,4] T[3,1,4]~small outputs=2",
      "T[1,1,33]~small T[1,1,3]~small",
  };
  ops.add(std::move(op));
}

}  // namespace unmoor
