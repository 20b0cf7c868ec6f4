#include <algorithm>
#include <cstring>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/product.h"

namespace unmoor::cpu {

namespace {

// An LSTM, GRU or plain RNN. All gates of all steps come from the input in one product; each step adds what the state gives.
struct Recurrent {
  size_t steps, batch, hidden, directions;
  size_t gates;          // 4 of an LSTM (input, output, forget, cell), 3 of a GRU (update, reset, hidden), 1 of an RNN.
  bool backward;         // The only direction is the reverse one.
  bool reset_after;      // GRU's linear_before_reset.
  std::vector<PreparedProducts> input;      // By direction: X W' + Wb.
  std::vector<PreparedProducts> recurrence; // h R' of all gates; of a GRU that resets first, of the first two.
  std::vector<PreparedProducts> candidate;  // (r ∘ h) R' of the last gate.
  Packed input_bias;       // [directions, gates * hidden].
  Packed recurrent_bias;   // The same, for gates whose bias is added with the state's part.
  bool whole_state() const { return gates != 3 || reset_after; }  // One product of the state serves all gates.
  size_t width() const { return gates * hidden; }
  size_t gate_floats() const { return (steps * batch * width() + 15) / 16 * 16; }
  size_t state_floats() const { return (batch * width() + 15) / 16 * 16; }
};

struct Places {
  float* gates;     // Of all steps.
  float* sums;      // What the state gives to the gates of one step.
  float* h;         // The state.
  float* c;         // An LSTM's cell; a GRU's scratch.
  float* products;  // Workspace of the products.
};

const float* input_at(const KernelArgs& args, size_t i) {
  return i < args.inputs.size() ? reinterpret_cast<const float*>(args.inputs[i].host()) : nullptr;
}
float* output_at(const KernelArgs& args, size_t i) {
  return i < args.outputs.size() ? reinterpret_cast<float*>(args.outputs[i].host()) : nullptr;
}

// One row of an LSTM step: gates become the new cell and state.
void lstm_row(UnaryLoop sigmoid, UnaryLoop tanh, float* g, size_t n, float* h, float* c) {
  sigmoid(g, g, 3 * n, 0, 0);
  tanh(g + 3 * n, g + 3 * n, n, 0, 0);
  for (size_t i = 0; i < n; ++i) c[i] = g[2 * n + i] * c[i] + g[i] * g[3 * n + i];
  tanh(c, g, n, 0, 0);
  for (size_t i = 0; i < n; ++i) h[i] = g[n + i] * g[i];
}

void lstm_step(const Recurrent& r, size_t direction, float* gates, const Places& at) {
  r.recurrence[direction].run({at.h, nullptr, nullptr, gates, at.sums, at.products});
  const UnaryLoop sigmoid = unary_loop(Function::Sigmoid);
  const UnaryLoop tanh = unary_loop(Function::Tanh);
  for (size_t b = 0; b < r.batch; ++b) {
    lstm_row(sigmoid, tanh, at.sums + b * r.width(), r.hidden, at.h + b * r.hidden, at.c + b * r.hidden);
  }
}

void rnn_step(const Recurrent& r, size_t direction, float* gates, const Places& at) {
  r.recurrence[direction].run({at.h, nullptr, nullptr, gates, at.sums, at.products});
  unary_loop(Function::Tanh)(at.sums, at.h, r.batch * r.hidden, 0, 0);
}

// h = (1 - z) ∘ candidate + z ∘ h.
void blend(const float* z, const float* candidate, float* h, size_t n) {
  for (size_t i = 0; i < n; ++i) h[i] = candidate[i] + z[i] * (h[i] - candidate[i]);
}

void gru_step(const Recurrent& r, size_t direction, float* gates, const Places& at) {
  const UnaryLoop sigmoid = unary_loop(Function::Sigmoid);
  const UnaryLoop tanh = unary_loop(Function::Tanh);
  const size_t n = r.hidden;
  const size_t columns = r.reset_after ? 3 * n : 2 * n;  // Of sums.
  const float* const bias = floats_of(r.recurrent_bias) + direction * r.width();
  r.recurrence[direction].run({at.h, nullptr, bias, nullptr, at.sums, at.products});
  for (size_t b = 0; b < r.batch; ++b) {
    float* const g = gates + b * 3 * n;
    const float* const s = at.sums + b * columns;
    for (size_t i = 0; i < 2 * n; ++i) g[i] += s[i];
    sigmoid(g, g, 2 * n, 0, 0);
    const float* const state = r.reset_after ? s + 2 * n : at.h + b * n;
    for (size_t i = 0; i < n; ++i) at.c[b * n + i] = g[n + i] * state[i];
  }
  if (!r.reset_after) r.candidate[direction].run({at.c, nullptr, bias + 2 * n, nullptr, at.sums, at.products});
  for (size_t b = 0; b < r.batch; ++b) {
    float* const g = gates + b * 3 * n;
    const float* const more = (r.reset_after ? at.c : at.sums) + b * n;
    for (size_t i = 0; i < n; ++i) g[2 * n + i] += more[i];
    tanh(g + 2 * n, g + 2 * n, n, 0, 0);
    blend(g, g + 2 * n, at.h + b * n, n);
  }
}

// What the input gives to the gates of all steps.
void run_input(const Recurrent& r, size_t direction, const KernelArgs& args, const Places& at) {
  r.input[direction].run({input_at(args, 0), nullptr, floats_of(r.input_bias) + direction * r.width(), nullptr, at.gates, at.products});
}

void run_steps(const Recurrent& r, size_t direction, const KernelArgs& args, const Places& at) {
  const size_t state = r.batch * r.hidden;
  const bool lstm = r.gates == 4;
  const auto start = [&](const float* from, float* to) {
    if (from == nullptr) {
      std::fill(to, to + state, 0.0F);
    } else {
      std::memcpy(to, from + direction * state, state * sizeof(float));
    }
  };
  start(input_at(args, 5), at.h);
  if (lstm) start(input_at(args, 6), at.c);
  const bool reverse = direction == 1 || r.backward;
  float* const y = output_at(args, 0);
  for (size_t i = 0; i < r.steps; ++i) {
    const size_t step = reverse ? r.steps - 1 - i : i;
    float* const gates = at.gates + step * r.batch * r.width();
    (lstm ? lstm_step : r.gates == 3 ? gru_step : rnn_step)(r, direction, gates, at);
    if (y != nullptr) std::memcpy(y + (step * r.directions + direction) * state, at.h, state * sizeof(float));
  }
  if (float* const last = output_at(args, 1)) std::memcpy(last + direction * state, at.h, state * sizeof(float));
  if (float* const last = output_at(args, 2)) std::memcpy(last + direction * state, at.c, state * sizeof(float));
}

Support supports_recurrent(const OpCall& call) {
  const size_t functions = call.node.op == "LSTM" ? 3 : call.node.op == "GRU" ? 2 : 1;
  if (call.has(4)) return no(Reason::Attribute, "input sequence_lens");
  if (Support types = all_of(inputs_are(call, {DType::F32}), is_constant(call, 1), is_constant(call, 2), integer_is(call, "layout", 0, 0),
                             integer_is(call, "input_forget", 0, 0));
      !types) {
    return types;
  }
  if (call.has(3) && call.constant(3) == nullptr) return no(Reason::Dynamic, "the bias is not constant");
  if (call.has(7)) return no(Reason::Attribute, "peepholes");
  if (call.has_attribute("clip")) return no(Reason::Attribute, "clip");
  const std::vector<std::string> names = call.texts("activations");
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != (i % functions == 0 && functions > 1 ? "Sigmoid" : "Tanh")) return no(Reason::Attribute, "activation ", names[i]);
  }
  return call.input(0).shape.elements() == 0 ? no(Reason::Size, "an empty input") : yes();
}

// Splits B [directions, 2 * gates * hidden] into what is added to the input's part and what to the state's.
void pack_biases(Recurrent& r, const Tensor* bias) {
  r.input_bias = pack_buffer(r.directions * r.width());
  r.recurrent_bias = pack_buffer(r.directions * r.width());
  for (size_t i = 0; i < r.directions * r.width(); ++i) {
    const size_t at = i / r.width() * 2 * r.width() + i % r.width();
    floats_of(r.input_bias)[i] = bias == nullptr ? 0.0F : bias->span<float>()[at];
    floats_of(r.recurrent_bias)[i] = bias == nullptr ? 0.0F : bias->span<float>()[at + r.width()];
    if (r.gates != 3) floats_of(r.input_bias)[i] += floats_of(r.recurrent_bias)[i];
  }
}

// Products by the transposed [n,k] matrix that begins at float `first` of the weights.
PreparedProducts by_weights(const Machine& machine, size_t m, size_t n, size_t k, const Tensor& weights, size_t first, Bias bias) {
  Products products;
  products.m = m;
  products.n = n;
  products.k = k;
  products.transposed_b = true;
  return {machine, products, &weights, bias, first};
}

Prepared prepare_recurrent(const OpCall& call, Device& device) {
  const Machine& machine = machine_of(device);
  const Shape& x = call.input(0).shape;
  const Shape& weights = call.input(2).shape;  // [directions, gates * hidden, hidden]
  Recurrent r{};
  r.steps = static_cast<size_t>(x[0]);
  r.batch = static_cast<size_t>(x[1]);
  r.directions = static_cast<size_t>(weights[0]);
  r.hidden = static_cast<size_t>(weights[2]);
  r.gates = call.node.op == "LSTM" ? 4 : call.node.op == "GRU" ? 3 : 1;
  r.backward = call.text("direction", "forward") == "reverse";
  r.reset_after = call.integer("linear_before_reset", 0) != 0;
  const auto inputs = static_cast<size_t>(x[2]);
  const Tensor& w = *call.constant(1);
  const Tensor& s = *call.constant(2);
  const size_t state_columns = r.whole_state() ? r.width() : 2 * r.hidden;
  size_t products = 0;
  for (size_t d = 0; d < r.directions; ++d) {
    const size_t own = d * r.width() * r.hidden;
    r.input.push_back(by_weights(machine, r.steps * r.batch, r.width(), inputs, w, d * r.width() * inputs, Bias::Column));
    r.recurrence.push_back(by_weights(machine, r.batch, state_columns, r.hidden, s, own, r.gates != 3 ? Bias::None : Bias::Column));
    products = std::max({products, r.input[d].workspace_bytes(), r.recurrence[d].workspace_bytes()});
    if (r.whole_state()) continue;
    r.candidate.push_back(by_weights(machine, r.batch, r.hidden, r.hidden, s, own + 2 * r.hidden * r.hidden, Bias::Column));
    products = std::max(products, r.candidate[d].workspace_bytes());
  }
  pack_biases(r, call.constant(3));
  const size_t own_floats = r.gate_floats() + 3 * r.state_floats() + (products + 63) / 64 * 64 / sizeof(float);
  // Steps wait for each other, directions do not. Side by side each has one thread: too few where there are more and a step's product
  // is large enough for them.
  constexpr size_t worth_sharing = size_t{1} << 18;
  const bool side_by_side = machine.threads() <= 2 || r.batch * r.width() * r.hidden < worth_sharing;
  const size_t workspace = (side_by_side ? r.directions : 1) * own_floats * sizeof(float);
  std::vector<bool> unused(call.input_count(), false);
  for (size_t i = 1; i < std::min<size_t>(unused.size(), 4); ++i) unused[i] = true;
  // Shared by the copies of the function below.
  const auto shared = std::make_shared<const Recurrent>(std::move(r));
  return {.run =
              [shared, own_floats, side_by_side, &machine](Stream&, const KernelArgs& args) {
                const auto places = [&](size_t d) {
                  float* const gates = reinterpret_cast<float*>(args.workspace.host()) + (side_by_side ? d * own_floats : 0);
                  float* const states = gates + shared->gate_floats();
                  const size_t step = shared->state_floats();
                  return Places{gates, states, states + step, states + 2 * step, states + 3 * step};
                };
                for (size_t d = 0; d < shared->directions; ++d) {
                  run_input(*shared, d, args, places(d));
                  if (!side_by_side) run_steps(*shared, d, args, places(d));
                }
                if (side_by_side) machine.pool().each(shared->directions, [&](size_t d) { run_steps(*shared, d, args, places(d)); });
              },
          .workspace_bytes = workspace,
          .unused_inputs = unused};
}

}  // namespace

void add_recurrent_kernels(KernelTable& table) {
  table.add("LSTM", {.name = "cpu.lstm.steps", .supports = supports_recurrent, .prepare = prepare_recurrent});
  table.add("RNN", {.name = "cpu.rnn.steps", .supports = supports_recurrent, .prepare = prepare_recurrent});
  table.add("GRU", {.name = "cpu.gru.steps", .supports = supports_recurrent, .prepare = prepare_recurrent});
}

}  // namespace unmoor::cpu
