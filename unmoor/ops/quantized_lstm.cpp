#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/qlinear.h"
#include "unmoor/ops/recurrent.h"

namespace unmoor {
namespace {

// Inputs: X, W, R, B, sequence_lens, initial_h, initial_c, P, W_scale, W_zero_point, R_scale, R_zero_point.
// Unlike LSTM's, the weights are [directions, input, 4·hidden] and [directions, hidden, 4·hidden].
Recurrence sizes_of(const OpCall& call) {
  Recurrence sizes;
  sizes.kind = CellKind::Lstm;
  sizes.gates = 4;
  const std::string direction = call.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    fail(ErrorKind::InvalidModel, title(call), ": direction is '", direction, "', not forward, reverse or bidirectional");
  }
  sizes.directions = direction == "bidirectional" ? 2 : 1;
  if (call.has_attribute("hidden_size")) sizes.hidden = call.integer("hidden_size", 0);
  if (sizes.hidden != Shape::unknown && (sizes.hidden < 1 || sizes.hidden > (int64_t{1} << 31))) {
    fail(ErrorKind::InvalidModel, title(call), ": hidden_size is ", sizes.hidden);
  }
  const auto meet = [&call](size_t i, size_t axis, int64_t& size, std::string_view what, int64_t times = 1) {
    if (!call.has(i) || !call.input(i).shape.has_rank()) return;
    const int64_t dim = call.input(i).shape[axis];
    if (dim >= 0 && dim % times != 0) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", call.input(i).shape);
    }
    size = same_dim(call, size, dim < 0 ? dim : dim / times, what);
  };
  constexpr std::array<size_t, 8> ranks{3, 3, 3, 2, 1, 3, 3, 2};
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (call.has(i)) require_rank(call, i, ranks[i]);
  }
  meet(0, 0, sizes.steps, "the sequence length");
  meet(0, 1, sizes.batch, "the batch size");
  meet(0, 2, sizes.input, "the input size");
  meet(1, 1, sizes.input, "the input size");
  meet(1, 2, sizes.hidden, "the hidden size", 4);
  meet(2, 1, sizes.hidden, "the hidden size");
  meet(2, 2, sizes.hidden, "the hidden size", 4);
  meet(3, 1, sizes.hidden, "the hidden size", 8);
  meet(4, 0, sizes.batch, "the batch size");
  for (const size_t i : {size_t{5}, size_t{6}}) {
    meet(i, 1, sizes.batch, "the batch size");
    meet(i, 2, sizes.hidden, "the hidden size");
  }
  meet(7, 1, sizes.hidden, "the hidden size", 3);
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{6}, size_t{7}}) {
    meet(i, 0, sizes.directions, "the number of directions");
  }
  return sizes;
}

// A scale or zero point is one number a direction, or one a column of a direction's weights.
void check_parameters(const OpCall& call, const Recurrence& sizes) {
  for (size_t i = 8; i < 12; ++i) {
    const Shape& shape = call.input(i).shape;
    if (!shape.is_known() || sizes.hidden < 0) continue;
    if (shape != Shape{sizes.directions} && shape != Shape{sizes.directions, 4 * sizes.hidden}) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", shape, ", not [", sizes.directions, "] or [",
           sizes.directions, ",", 4 * sizes.hidden, "]");
    }
  }
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (call.input(i).dtype == call.input(7 + 2 * i).dtype) continue;
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, " and its zero point ",
         call.input(7 + 2 * i).dtype);
  }
}

std::vector<Type> infer_quantized_lstm(const OpCall& call) {
  const Recurrence sizes = sizes_of(call);
  check_parameters(call, sizes);
  cell_functions(call, sizes);
  const DType dtype = call.input(0).dtype;
  const TensorType state{dtype, Shape{sizes.directions, sizes.batch, sizes.hidden}};
  return {TensorType{dtype, Shape{sizes.steps, sizes.directions, sizes.batch, sizes.hidden}}, state, state};
}

// Quantizes to bytes by the numbers' own range, and back.
void coarsen(std::span<double> values, DType dtype) {
  const ByteScale range = byte_scale_of(values, dtype);
  for (double& value : values) {
    const double byte = quantized(range.scale == 0 ? 0 : rounded(dtype, value / range.scale), range.zero, {0, 255});
    value = (byte - range.zero) * range.scale;
  }
}

std::vector<double> part_of(const std::vector<double>& all, size_t direction, size_t size) {
  if (all.empty()) return std::vector<double>(size);
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(direction * size);
  return {from, from + static_cast<std::ptrdiff_t>(size)};
}

// One direction's weights, dequantized.
std::vector<double> matrix_of(std::span<const Data> in, size_t weights, size_t scale, size_t direction) {
  const Shape& shape = in[weights].tensor().shape();
  const auto columns = static_cast<size_t>(shape[2]);
  std::vector<double> matrix = part_of(doubles(in[weights].tensor()), direction, static_cast<size_t>(shape[1]) * columns);
  const auto side = [&](size_t i) {
    const size_t each = in[i].tensor().shape().rank() == 2 ? columns : 1;
    std::vector<double> values = part_of(doubles(in[i].tensor()), direction, each);
    values.resize(columns, values[0]);
    return values;
  };
  const std::vector<double> scales = side(scale);
  const std::vector<double> zeros = side(scale + 1);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = (matrix[i] - zeros[i % columns]) * scales[i % columns];
  return matrix;
}

class QuantizedLayer {
 public:
  QuantizedLayer(const OpCall& call, std::span<const Data> in)
      : call_(call),
        sizes_(sizes_of(call)),
        dtype_(call.input(0).dtype),
        x_(doubles(in[0].tensor())),
        lengths_(integers_at(in, 4)) {
    const size_t states = size(sizes_.directions) * size(sizes_.batch) * size(sizes_.hidden);
    state_ = doubles_at(in, 5);
    cell_ = doubles_at(in, 6);
    state_.resize(states);
    cell_.resize(states);
    sequence_.resize(states * size(sizes_.steps));
    if (lengths_.empty()) lengths_.assign(size(sizes_.batch), sizes_.steps);
    for (const int64_t length : lengths_) {
      if (length >= 0 && length <= sizes_.steps) continue;
      fail(ErrorKind::InvalidArgument, title(call), ": a sequence length is ", length, ", not from 0 to ", sizes_.steps);
    }
    if (lengths_.empty()) return;
    // The input is quantized as a whole, as far as the longest sequence goes.
    longest_ = size(*std::ranges::max_element(lengths_));
    coarsen(std::span<double>(x_).first(longest_ * size(sizes_.batch) * size(sizes_.input)), dtype_);
  }

  void run(size_t direction, const CellWeights& weights, const CellFunctions& functions, bool reverse) {
    const size_t hidden = size(sizes_.hidden);
    const size_t batch = lengths_.size();
    for (size_t i = 0; i < longest_; ++i) {
      const std::vector<double> coarse = coarse_states(direction, i);
      for (size_t item = 0; item < batch; ++item) {
        const size_t length = size(lengths_[item]);
        if (i >= length) continue;
        const size_t step = reverse ? length - 1 - i : i;
        const size_t at = (direction * batch + item) * hidden;
        const auto state = std::span<double>(state_).subspan(at, hidden);
        std::ranges::copy(std::span<const double>(coarse).subspan(item * hidden, hidden), state.begin());
        step_cell(call_, sizes_, weights, functions, x_.data() + (step * batch + item) * size(sizes_.input), state,
                  std::span<double>(cell_).subspan(at, hidden));
        const size_t to = ((step * size(sizes_.directions) + direction) * batch + item) * hidden;
        std::copy(state.begin(), state.end(), sequence_.begin() + static_cast<std::ptrdiff_t>(to));
      }
    }
  }

  const Recurrence& sizes() const { return sizes_; }
  const std::vector<double>& sequence() const { return sequence_; }
  const std::vector<double>& state() const { return state_; }
  const std::vector<double>& cell() const { return cell_; }

 private:
  static size_t size(int64_t value) { return static_cast<size_t>(value); }

  // What step i multiplies by R: the states of all items, quantized together. Those of finished sequences count as zeros.
  std::vector<double> coarse_states(size_t direction, size_t i) const {
    const size_t hidden = size(sizes_.hidden);
    std::vector<double> states = part_of(state_, direction, lengths_.size() * hidden);
    for (size_t item = 0; item < lengths_.size(); ++item) {
      if (i >= size(lengths_[item])) std::fill_n(states.begin() + static_cast<std::ptrdiff_t>(item * hidden), hidden, 0.0);
    }
    coarsen(states, dtype_);
    return states;
  }

  const OpCall& call_;
  Recurrence sizes_;
  DType dtype_;
  std::vector<double> x_;
  std::vector<int64_t> lengths_;
  std::vector<double> state_, cell_, sequence_;
  size_t longest_ = 0;
};

void run_quantized_lstm(const OpCall& call, std::span<const Data> in, Outputs& out) {
  QuantizedLayer layer(call, in);
  const Recurrence& sizes = layer.sizes();
  const auto hidden = static_cast<size_t>(sizes.hidden);
  const std::vector<CellFunctions> functions = cell_functions(call, sizes);
  for (size_t direction = 0; direction < functions.size(); ++direction) {
    CellWeights weights;
    weights.w = matrix_of(in, 1, 8, direction);
    weights.r = matrix_of(in, 2, 10, direction);
    const std::vector<double> bias = part_of(doubles_at(in, 3), direction, 8 * hidden);
    weights.w_bias = part_of(bias, 0, 4 * hidden);
    weights.r_bias = part_of(bias, 1, 4 * hidden);
    if (tensor_at(in, 7) != nullptr) weights.peepholes = part_of(doubles_at(in, 7), direction, 3 * hidden);
    layer.run(direction, weights, functions[direction], direction == 1 || call.text("direction", "forward") == "reverse");
  }
  if (call.wants_output(0)) put(call, out, 0, std::span<const double>(layer.sequence()));
  if (call.wants_output(1)) put(call, out, 1, std::span<const double>(layer.state()));
  if (call.wants_output(2)) put(call, out, 2, std::span<const double>(layer.cell()));
}

Cost quantized_lstm_cost(const OpCall& call) {
  const Recurrence sizes = sizes_of(call);
  const Shape rows{sizes.directions, sizes.steps, sizes.batch, 4 * sizes.hidden};
  if (!rows.is_known() || sizes.input < 0) return {0, bytes_moved(call)};
  return {2 * elements_or_zero(rows) * static_cast<double>(sizes.input + sizes.hidden), bytes_moved(call)};
}

}  // namespace

void add_quantized_lstm_op(OpSet& ops) {
  const std::vector<DType> real{DType::F32, DType::F64};
  const std::vector<DType> bytes{DType::U8, DType::I8};
  Op op;
  op.name = "com.microsoft:DynamicQuantizeLSTM";
  op.summary =
      "A layer of LSTM cells with weights of bytes; input and state are quantized by their own range before each product.";
  op.inputs = {required("X", real),
               required("W", bytes),
               required("R", bytes),
               optional("B", real),
               optional("sequence_lens", {DType::I32}),
               optional("initial_h", real),
               optional("initial_c", real),
               optional("P", real),
               required("W_scale", real),
               required("W_zero_point", bytes),
               required("R_scale", real),
               required("R_zero_point", bytes)};
  op.outputs = {optional("Y", real), optional("Y_h", real), optional("Y_c", real)};
  op.attributes = {{"activations", std::vector<std::string>()}, {"activation_alpha", std::vector<float>()},
                   {"activation_beta", std::vector<float>()},   {"clip", 0.0F},
                   {"direction", std::string("forward")},       {"input_forget", int64_t{0}}};
  op.infer = infer_quantized_lstm;
  op.reference = run_quantized_lstm;
  op.cost = quantized_lstm_cost;
  op.rounding = Rounding::Function;
  op.category = Category::Recurrent;
  const std::string one = " i8[1]{0} f32[1]{0.01} i8[1]{0} hidden_size=3 outputs=3";
  const std::string two = "f32[2]{0.01,0.02} u8[2]{128,120} f32[2]{0.01,0.015} u8[2]{128,130} hidden_size=3 outputs=3";
  op.cases = {
      cat("f32[5,2,4]~small i8[1,4,12]! i8[1,3,12]! f32[1,24]~small! - - - - f32[1]{0.02}", one, " direction=forward,reverse"),
      cat("f32[5,2,4]~small u8[2,4,12]! u8[2,3,12]! f32[2,24]~small! - - - - ", two, " direction=bidirectional"),
      cat("f32[5,2,4]~small i8[1,4,12]! i8[1,3,12]! - i32[2]{5,3} f32[1,2,3]~unit f32[1,2,3]~small - f32[1]{0.02}", one,
          " direction=forward,reverse"),
      cat("f32[5,2,4]~small u8[2,4,12]! u8[2,3,12]! f32[2,24]~small! i32[2]{2,0} - - - ", two, " direction=bidirectional"),
      cat("f32[3,1,4]~small i8[1,4,12]! i8[1,3,12]! - - - - f32[1,9]~small! f32[1]{0.02}", one, " input_forget=0,1"),
      cat("f32[3,2,4]~small i8[1,4,12]! i8[1,3,12]! - - - - - f32[1]{0.02}", one, " clip=0.5"),
      "f32[3,2,4]~small i8[1,4,12]! i8[1,3,12]! - - - - - f32[1,12]~unit! i8[1,12]! f32[1,12]~unit! i8[1,12]! hidden_size=3 "
      "outputs=2",
      cat("f32[0,2,4] i8[1,4,12]! i8[1,3,12]! - - - - - f32[1]{0.02}", one),
      cat("f32[3,2,4]~small i8[1,4,12]! i8[1,3,12]! - - - - - f32[1]{0.02}", one, " activations=[HardSigmoid,Relu,Softsign]")};
  ops.add(std::move(op));
}

}  // namespace unmoor
