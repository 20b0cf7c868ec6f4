#include "unmoor/ops/recurrent.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/product.h"

namespace unmoor {

Recurrence recurrence_of(const OpCall& call, CellKind kind) {
  Recurrence sizes;
  sizes.kind = kind;
  sizes.gates = kind == CellKind::Lstm ? 4 : kind == CellKind::Gru ? 3 : 1;
  sizes.batch_first = call.integer("layout", 0) != 0;
  const std::string direction = call.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    fail(ErrorKind::InvalidModel, title(call), ": direction is '", direction, "', not forward, reverse or bidirectional");
  }
  sizes.directions = direction == "bidirectional" ? 2 : 1;
  if (call.has_attribute("hidden_size")) sizes.hidden = call.integer("hidden_size", 0);
  if (sizes.hidden != Shape::unknown && (sizes.hidden < 1 || sizes.hidden > (int64_t{1} << 31))) {
    fail(ErrorKind::InvalidModel, title(call), ": hidden_size is ", sizes.hidden);
  }
  const auto meet = [&](size_t i, size_t axis, int64_t& size, std::string_view what, int64_t times = 1) {
    if (!call.has(i) || !call.input(i).shape.has_rank()) return;
    const int64_t dim = call.input(i).shape[axis];
    if (dim >= 0 && dim % times != 0)
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", call.input(i).shape);
    size = same_dim(call, size, dim < 0 ? dim : dim / times, what);
  };
  const bool lstm = kind == CellKind::Lstm;
  const std::array<size_t, 8> ranks{3, 3, 3, 2, 1, 3, 3, 2};
  for (size_t i = 0; i < call.input_count() && i < ranks.size(); ++i) {
    if (call.has(i)) require_rank(call, i, ranks[i]);
  }
  meet(0, sizes.batch_first ? 1 : 0, sizes.steps, "the sequence length");
  meet(0, sizes.batch_first ? 0 : 1, sizes.batch, "the batch size");
  meet(0, 2, sizes.input, "the input size");
  meet(1, 2, sizes.input, "the input size");
  meet(1, 1, sizes.hidden, "the hidden size", sizes.gates);
  meet(2, 1, sizes.hidden, "the hidden size", sizes.gates);
  meet(2, 2, sizes.hidden, "the hidden size");
  meet(3, 1, sizes.hidden, "the hidden size", 2 * sizes.gates);
  meet(4, 0, sizes.batch, "the batch size");
  for (size_t i = 5; i <= (lstm ? size_t{6} : size_t{5}); ++i) {
    meet(i, sizes.batch_first ? 0 : 1, sizes.batch, "the batch size");
    meet(i, sizes.batch_first ? 1 : 0, sizes.directions, "the number of directions");
    meet(i, 2, sizes.hidden, "the hidden size");
  }
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}}) meet(i, 0, sizes.directions, "the number of directions");
  if (lstm) {
    meet(7, 0, sizes.directions, "the number of directions");
    meet(7, 1, sizes.hidden, "the hidden size", 3);
  }
  return sizes;
}

namespace {

Shape state_shape(const Recurrence& sizes) {
  return sizes.batch_first ? Shape{sizes.batch, sizes.directions, sizes.hidden}
                           : Shape{sizes.directions, sizes.batch, sizes.hidden};
}

Shape sequence_shape(const Recurrence& sizes) {
  return sizes.batch_first ? Shape{sizes.batch, sizes.steps, sizes.directions, sizes.hidden}
                           : Shape{sizes.steps, sizes.directions, sizes.batch, sizes.hidden};
}

// One direction's part of a weight [directions, …], or zeros.
std::vector<double> part_of(std::span<const Data> in, size_t i, size_t direction, size_t size) {
  const std::vector<double> all = doubles_at(in, i);
  if (all.empty()) return std::vector<double>(size);
  return {all.begin() + static_cast<std::ptrdiff_t>(direction * size),
          all.begin() + static_cast<std::ptrdiff_t>((direction + 1) * size)};
}

CellWeights weights_of(const Recurrence& sizes, std::span<const Data> in, size_t direction) {
  const auto hidden = static_cast<size_t>(sizes.hidden);
  const auto input = static_cast<size_t>(sizes.input);
  const size_t columns = static_cast<size_t>(sizes.gates) * hidden;
  CellWeights weights;
  weights.w = transposed(part_of(in, 1, direction, columns * input).data(), columns, input);
  weights.r = transposed(part_of(in, 2, direction, columns * hidden).data(), columns, hidden);
  const std::vector<double> bias = part_of(in, 3, direction, 2 * columns);
  weights.w_bias.assign(bias.begin(), bias.begin() + static_cast<std::ptrdiff_t>(columns));
  weights.r_bias.assign(bias.begin() + static_cast<std::ptrdiff_t>(columns), bias.end());
  if (sizes.kind == CellKind::Lstm && tensor_at(in, 7) != nullptr) weights.peepholes = part_of(in, 7, direction, 3 * hidden);
  return weights;
}

// All of a layer's outputs, in the call's layout.
class Layer {
 public:
  Layer(const OpCall& call, const Recurrence& sizes, std::span<const Data> in)
      : call_(call), sizes_(sizes), x_(doubles(in[0].tensor())), lengths_(integers_at(in, 4)) {
    state_ = initial(in, 5);
    if (sizes.kind == CellKind::Lstm) cell_ = initial(in, 6);
    sequence_.resize(static_cast<size_t>(sequence_shape(sizes).elements()));
    if (lengths_.empty()) lengths_.assign(static_cast<size_t>(sizes.batch), sizes.steps);
    for (const int64_t length : lengths_) {
      if (length < 0 || length > sizes.steps) {
        fail(ErrorKind::InvalidArgument, title(call), ": a sequence length is ", length, ", not from 0 to ", sizes.steps);
      }
    }
  }

  void run(size_t direction, const CellWeights& weights, const CellFunctions& functions, bool reverse) {
    const auto hidden = static_cast<size_t>(sizes_.hidden);
    for (size_t item = 0; item < lengths_.size(); ++item) {
      const size_t at = state_at(direction, item);
      const auto state = std::span<double>(state_).subspan(at, hidden);
      const auto cell = cell_.empty() ? std::span<double>() : std::span<double>(cell_).subspan(at, hidden);
      const auto length = static_cast<size_t>(lengths_[item]);
      for (size_t i = 0; i < length; ++i) {
        const size_t step = reverse ? length - 1 - i : i;
        step_cell(call_, sizes_, weights, functions, x_.data() + input_at(step, item), state, cell);
        std::copy(state.begin(), state.end(),
                  sequence_.begin() + static_cast<std::ptrdiff_t>(sequence_at(step, direction, item)));
      }
    }
  }

  const std::vector<double>& sequence() const { return sequence_; }
  const std::vector<double>& state() const { return state_; }
  const std::vector<double>& cell() const { return cell_; }

 private:
  std::vector<double> initial(std::span<const Data> in, size_t i) const {
    std::vector<double> values = doubles_at(in, i);
    values.resize(static_cast<size_t>(state_shape(sizes_).elements()));
    return values;
  }
  size_t state_at(size_t direction, size_t item) const {
    const auto rows = static_cast<size_t>(sizes_.batch_first ? sizes_.directions : sizes_.batch);
    return (sizes_.batch_first ? item * rows + direction : direction * rows + item) * static_cast<size_t>(sizes_.hidden);
  }
  size_t input_at(size_t step, size_t item) const {
    const auto rows = static_cast<size_t>(sizes_.batch_first ? sizes_.steps : sizes_.batch);
    return (sizes_.batch_first ? item * rows + step : step * rows + item) * static_cast<size_t>(sizes_.input);
  }
  size_t sequence_at(size_t step, size_t direction, size_t item) const {
    const auto directions = static_cast<size_t>(sizes_.directions);
    const size_t row = sizes_.batch_first ? (item * static_cast<size_t>(sizes_.steps) + step) * directions + direction
                                          : (step * directions + direction) * static_cast<size_t>(sizes_.batch) + item;
    return row * static_cast<size_t>(sizes_.hidden);
  }

  const OpCall& call_;
  const Recurrence& sizes_;
  std::vector<double> x_;
  std::vector<int64_t> lengths_;
  std::vector<double> state_, cell_, sequence_;
};

void recurrent_reference(CellKind kind, const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Recurrence sizes = recurrence_of(call, kind);
  const std::vector<CellFunctions> functions = cell_functions(call, sizes);
  Layer layer(call, sizes, in);
  for (size_t direction = 0; direction < functions.size(); ++direction) {
    const bool reverse = direction == 1 || call.text("direction", "forward") == "reverse";
    layer.run(direction, weights_of(sizes, in, direction), functions[direction], reverse);
  }
  if (call.wants_output(0)) put(call, out, 0, std::span<const double>(layer.sequence()));
  if (call.wants_output(1)) put(call, out, 1, std::span<const double>(layer.state()));
  if (call.wants_output(2)) put(call, out, 2, std::span<const double>(layer.cell()));
}

std::vector<Type> infer_recurrent(CellKind kind, const OpCall& call) {
  const Recurrence sizes = recurrence_of(call, kind);
  cell_functions(call, sizes);
  const DType dtype = call.input(0).dtype;
  for (size_t i = 1; i < call.input_count(); ++i) {
    constexpr size_t lengths = 4;
    if (i == lengths || !call.has(i) || call.input(i).dtype == dtype) continue;
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", dtype, " as input 0");
  }
  std::vector<Type> types{TensorType{dtype, sequence_shape(sizes)}, TensorType{dtype, state_shape(sizes)}};
  if (kind == CellKind::Lstm) types.emplace_back(TensorType{dtype, state_shape(sizes)});
  return types;
}

Cost recurrent_cost(CellKind kind, const OpCall& call) {
  const Recurrence sizes = recurrence_of(call, kind);
  for (const int64_t size : {sizes.steps, sizes.batch, sizes.input, sizes.hidden}) {
    if (size < 0) return {0, bytes_moved(call)};
  }
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const double rows = number(sizes.directions) * number(sizes.steps) * number(sizes.batch);
  return {2 * rows * number(sizes.gates) * number(sizes.hidden) * (number(sizes.input) + number(sizes.hidden)),
          bytes_moved(call)};
}

Op recurrent(std::string name, std::string summary, CellKind kind) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("X", float_types()),
               required("W", float_types()),
               required("R", float_types()),
               optional("B", float_types()),
               optional("sequence_lens", {DType::I32}),
               optional("initial_h", float_types())};
  op.outputs = {optional("Y", float_types()), optional("Y_h", float_types())};
  op.attributes = {{"activations", std::vector<std::string>()}, {"activation_alpha", std::vector<float>()},
                   {"activation_beta", std::vector<float>()},   {"clip", 0.0F},
                   {"direction", std::string("forward")},       {"layout", int64_t{0}}};
  op.infer = [kind](const OpCall& call) { return infer_recurrent(kind, call); };
  op.reference = [kind](const OpCall& call, std::span<const Data> in, Outputs& out) { recurrent_reference(kind, call, in, out); };
  op.cost = [kind](const OpCall& call) { return recurrent_cost(kind, call); };
  op.rounding = Rounding::Function;
  op.category = Category::Recurrent;
  return op;
}

// Cases of a cell with this many gates: hidden size 3, input size 4, batch 2.
std::vector<std::string> recurrent_cases(int64_t gates, const std::string& outputs) {
  const auto weights = [gates](int directions) {
    return cat("T[", directions, ",", gates * 3, ",4]~small! T[", directions, ",", gates * 3, ",3]~small! T[", directions, ",",
               gates * 6, "]~small!");
  };
  const std::string one = weights(1);
  const std::string two = weights(2);
  const std::string end = cat(" hidden_size=3", outputs);
  return {cat("T[5,2,4]~small ", one, end, " direction=forward,reverse"),
          cat("T[5,2,4]~small ", two, end, " direction=bidirectional"),
          cat("T[5,2,4]~small ", one, " i32[2]{5,3} T[1,2,3]~small", end, " direction=forward,reverse"),
          cat("T[5,2,4]~small ", two, " i32[2]{2,0} T[2,2,3]~small", end, " direction=bidirectional"),
          cat("T[2,5,4]~small ", two, " - T[2,2,3]~small", end, " direction=bidirectional layout=1"),
          cat("T[5,2,4]~small ", one, end, " clip=0.5"),
          cat("T[1,1,4]~small T[1,", gates * 3, ",4]! T[1,", gates * 3, ",3]!", end),
          cat("T[0,2,4] ", one, end)};
}

}  // namespace

void add_recurrent_ops(OpSet& ops) {
  Op rnn = recurrent("RNN", "A layer of plain recurrent cells: h = f(X·W + h·R + B).", CellKind::Rnn);
  rnn.cases = recurrent_cases(1, " outputs=2");
  rnn.cases.emplace_back(
      "T[3,2,4]~small T[1,3,4]~small! T[1,3,3]~small! hidden_size=3 activations=[Relu],[Softsign],[Elu] outputs=2");
  rnn.cases.emplace_back(
      "T[3,2,4]~small T[1,3,4]~small! T[1,3,3]~small! hidden_size=3 activations=[Affine] activation_alpha=[0.5] "
      "activation_beta=[0.1]");
  ops.add(std::move(rnn));
  Op gru = recurrent("GRU", "A layer of gated recurrent units.", CellKind::Gru);
  gru.attributes["linear_before_reset"] = int64_t{0};
  gru.cases = recurrent_cases(3, " outputs=2");
  gru.cases.emplace_back(
      "T[5,2,4]~small T[1,9,4]~small! T[1,9,3]~small! T[1,18]~small! hidden_size=3 linear_before_reset=1 outputs=2");
  ops.add(std::move(gru));
  Op lstm = recurrent("LSTM", "A layer of long short-term memory cells, with peepholes if given.", CellKind::Lstm);
  lstm.inputs.push_back(optional("initial_c", float_types()));
  lstm.inputs.push_back(optional("P", float_types()));
  lstm.outputs.push_back(optional("Y_c", float_types()));
  lstm.attributes["input_forget"] = int64_t{0};
  lstm.cases = recurrent_cases(4, " outputs=3");
  lstm.cases.emplace_back(
      "T[5,2,4]~small T[1,12,4]~small! T[1,12,3]~small! T[1,24]~small! - T[1,2,3]~small T[1,2,3]~small T[1,9]~small! "
      "hidden_size=3 input_forget=0,1 outputs=3");
  ops.add(std::move(lstm));
}

}  // namespace unmoor
