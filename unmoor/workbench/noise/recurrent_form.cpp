#include "unmoor/ops/formula.h"
#include "unmoor/workbench/noise/functions.h"

namespace unmoor {
namespace {

// One direction of a recurrent layer, X[steps, batch, input], as products and elementwise steps. The equations are ONNX's.
class Unrolled {
 public:
  Unrolled(Formula& f, int64_t gates, int64_t direction, bool reverse)
      : f_(f), gates_(gates), direction_(direction), reverse_(reverse) {
    const Shape& x = f.call().input(0).shape;
    steps_ = x[0];
    batch_ = x[1];
    hidden_ = f.call().input(2).shape[2];
  }

  // Adds the nodes; afterwards the results are there.
  void run() {
    const ValueId bias = f_.has(3) ? part(3) : f_.add("ConstantOfShape", {f_.ints({2 * gates_ * hidden_})}, zero());
    const ValueId input_bias = slice(bias, 0, gates_);
    state_bias_ = slice(bias, gates_, 2 * gates_);
    from_input_ = f_.sum(f_.add("MatMul", {f_.input(0), flipped(part(1))}), input_bias);
    state_weights_ = flipped(part(2));
    state = initial(5);
    if (gates_ == 4) cell = initial(6);
    std::vector<ValueId> rows(static_cast<size_t>(steps_));
    for (int64_t i = 0; i < steps_; ++i) {
      const int64_t step = reverse_ ? steps_ - 1 - i : i;
      const ValueId input = f_.add("Gather", {from_input_, index(step)}, {{"axis", int64_t{0}}});
      if (gates_ == 4)
        step_lstm(input);
      else if (gates_ == 3)
        step_gru(input);
      else
        state = f_.add("Tanh", {f_.sum(input, from_state(state))});
      rows[static_cast<size_t>(step)] = f_.reshaped(state, {1, 1, batch_, hidden_});
    }
    sequence = f_.add("Concat", std::move(rows), {{"axis", int64_t{0}}});
  }

  ValueId sequence{};  // [steps, 1, batch, hidden]
  ValueId state{};     // [batch, hidden]
  ValueId cell{};

 private:
  Attributes zero() const { return {{"value", Tensor::from<double>({1}, {0.0})}}; }
  ValueId index(int64_t i) { return f_.builder().constant(Tensor::scalar<int64_t>(i)); }
  ValueId part(size_t input) { return f_.add("Gather", {f_.input(input), index(direction_)}, {{"axis", int64_t{0}}}); }
  ValueId flipped(ValueId a) { return f_.add("Transpose", {a}, {{"perm", std::vector<int64_t>{1, 0}}}); }
  ValueId slice(ValueId a, int64_t from, int64_t to) {
    return f_.add("Slice", {a, f_.ints({from * hidden_}), f_.ints({to * hidden_}), f_.ints({-1})});
  }
  ValueId initial(size_t input) {
    return f_.has(input) ? part(input) : f_.add("ConstantOfShape", {f_.ints({batch_, hidden_})}, zero());
  }
  ValueId from_state(ValueId h) { return f_.sum(f_.add("MatMul", {h, state_weights_}), state_bias_); }
  ValueId sigmoid(ValueId x) { return f_.add("Sigmoid", {x}); }

  void step_lstm(ValueId input) {
    const ValueId z = f_.sum(input, from_state(state));
    const ValueId in = sigmoid(slice(z, 0, 1));
    const ValueId out = sigmoid(slice(z, 1, 2));
    const ValueId forget = sigmoid(slice(z, 2, 3));
    cell = f_.sum(f_.product(forget, cell), f_.product(in, f_.add("Tanh", {slice(z, 3, 4)})));
    state = f_.product(out, f_.add("Tanh", {cell}));
  }

  void step_gru(ValueId input) {
    const ValueId old = from_state(state);
    const ValueId update = sigmoid(f_.sum(slice(input, 0, 1), slice(old, 0, 1)));
    const ValueId reset = sigmoid(f_.sum(slice(input, 1, 2), slice(old, 1, 2)));
    const bool linear = f_.call().integer("linear_before_reset", 0) != 0;
    const ValueId last = linear ? f_.product(reset, slice(old, 2, 3)) : slice(from_state(f_.product(reset, state)), 2, 3);
    const ValueId candidate = f_.add("Tanh", {f_.sum(slice(input, 2, 3), last)});
    state = f_.sum(f_.product(f_.difference(f_.number(1), update), candidate), f_.product(update, state));
  }

  Formula& f_;
  int64_t gates_;
  int64_t direction_;
  bool reverse_;
  int64_t steps_ = 0, batch_ = 0, hidden_ = 0;
  ValueId from_input_{}, state_weights_{}, state_bias_{};
};

void expand_recurrent(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const int64_t gates = call.node.op == "LSTM" ? 4 : call.node.op == "GRU" ? 3 : 1;
  const std::string direction = call.text("direction", "forward");
  std::vector<ValueId> sequences, states, cells;
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  for (int64_t d = 0; d < directions; ++d) {
    Unrolled layer(f, gates, d, d == 1 || direction == "reverse");
    layer.run();
    const Shape& shape = f.type(layer.state).shape;
    sequences.push_back(layer.sequence);
    states.push_back(f.reshaped(layer.state, {1, shape[0], shape[1]}));
    if (gates == 4) cells.push_back(f.reshaped(layer.cell, {1, shape[0], shape[1]}));
  }
  if (call.wants_output(0)) f.output(0, f.add("Concat", std::move(sequences), {{"axis", int64_t{1}}}));
  if (call.wants_output(1)) f.output(1, f.add("Concat", std::move(states), {{"axis", int64_t{0}}}));
  if (call.wants_output(2)) f.output(2, f.add("Concat", std::move(cells), {{"axis", int64_t{0}}}));
}

}  // namespace

NoiseForm recurrent_form(const OpCall& call) {
  const Shape& x = call.input(0).shape;
  constexpr int64_t most_steps = 4096;  // Beyond, the graph of steps would be large.
  const bool usual = call.texts("activations").empty() && call.real("clip", 0) == 0 && call.integer("layout", 0) == 0 &&
                     call.integer("input_forget", 0) == 0 && !call.has(4) && !call.has(7);
  if (!usual || !x.is_known() || x[0] < 1 || x[0] > most_steps) return {};
  return expand_recurrent;
}

}  // namespace unmoor
