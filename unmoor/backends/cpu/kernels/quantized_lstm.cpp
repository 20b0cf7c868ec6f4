#include <algorithm>
#include <array>
#include <cstring>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/integers.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/quantized_product.h"

namespace unmoor::cpu {

namespace {

// What a direction multiplies with: packed bytes, and a scale and zero point for each of the 4 * hidden columns.
struct Side {
  Packed weights;
  std::vector<float> scales;
  std::vector<int32_t> zeros;  // Empty if all are 0.
  const int32_t* zero_row() const { return zeros.empty() ? nullptr : zeros.data(); }
};

struct Direction {
  Side input, state;
  std::vector<float> bias;  // Of both.
  bool reverse = false;
};

// Gates of all steps come from the input in one product; each step adds what the state gives.
struct QuantizedLstm {
  size_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  std::vector<Direction> directions;
  size_t width() const { return 4 * hidden; }
  size_t state() const { return batch * hidden; }
};

constexpr size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Where a run has what it works on; each direction has its own of all but the quantized input.
struct Places {
  int16_t* x;
  float* gates;    // Of all steps.
  int16_t* state;  // Quantized.
  float* h;
  float* c;
};

struct Room {
  size_t x, gates, state, h;  // Bytes. c takes as much as h.
  explicit Room(const QuantizedLstm& l)
      : x(aligned(l.steps * l.batch * row_stride(l.inputs) * sizeof(int16_t))),
        gates(aligned(l.steps * l.batch * l.width() * sizeof(float))),
        state(aligned(l.batch * row_stride(l.hidden) * sizeof(int16_t))),
        h(aligned(l.state() * sizeof(float))) {}
  size_t of_direction() const { return gates + state + 2 * h; }
  Places at(std::byte* start, size_t direction) const {
    std::byte* const own = start + x + direction * of_direction();
    return {reinterpret_cast<int16_t*>(start), reinterpret_cast<float*>(own), reinterpret_cast<int16_t*>(own + gates),
            reinterpret_cast<float*>(own + gates + state), reinterpret_cast<float*>(own + gates + state + h)};
  }
};

// to[rows, 4 * hidden] = x W, dequantized, plus `base`: one row for all, or a row each, `base_step` floats apart.
struct Gates {
  const int16_t* x;
  size_t rows, k;
  float scale;  // Of x.
  const float* base;
  size_t base_step;
  float* to;
};

void add_gates(const Machine& machine, const QuantizedLstm& l, const Side& side, const Gates& gates) {
  const size_t stride = row_stride(gates.k);
  const ByteProduct product{gates.rows, (gates.k + 1) / 2, gates.x, stride, bytes_of(side.weights)};
  multiply_bytes(machine, product, l.width(), [&](const ByteBlock& block) {
    for (size_t i = 0; i < block.rows; ++i) {
      const size_t row = block.row + i;
      const int32_t* const zeros = side.zero_row();
      const ByteScaling scaling{side.scales.data() + block.column, gates.scale, zeros == nullptr ? nullptr : zeros + block.column,
                                zeros == nullptr ? 0 : row_sum(gates.x + row * stride, gates.k),
                                gates.base + row * gates.base_step + block.column};
      byte_loops().scaled(block.sums + i * block.stride, block.columns, scaling, gates.to + row * l.width() + block.column);
    }
  });
}

void step(const Machine& machine, const QuantizedLstm& l, const Direction& direction, float* gates, const Places& at) {
  const ByteRange range = byte_range(machine, at.h, l.state());  // Of all items together.
  quantize_rows(machine, at.h, l.batch, l.hidden, range, at.state);
  add_gates(machine, l, direction.state, {at.state, l.batch, l.hidden, range.scale, gates, l.width(), gates});
  machine.pool().ranges(l.batch, 4096 / (l.hidden + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t b = begin; b < end; ++b) {
      byte_loops().lstm(gates + b * l.width(), l.hidden, at.c + b * l.hidden, at.h + b * l.hidden);
    }
  });
}

void run_direction(const Machine& machine, const QuantizedLstm& l, size_t d, const KernelArgs& args, const Places& at) {
  const size_t state = l.state();
  const auto start = [&](const float* from, float* to) {
    if (from == nullptr) {
      std::fill(to, to + state, 0.0F);
    } else {
      std::memcpy(to, from + d * state, state * sizeof(float));
    }
  };
  start(input_as(args, 5), at.h);
  start(input_as(args, 6), at.c);
  float* const y = output_as(args, 0);
  for (size_t i = 0; i < l.steps; ++i) {
    const size_t now = l.directions[d].reverse ? l.steps - 1 - i : i;
    step(machine, l, l.directions[d], at.gates + now * l.batch * l.width(), at);
    if (y != nullptr) std::memcpy(y + (now * l.directions.size() + d) * state, at.h, state * sizeof(float));
  }
  if (float* const last = output_as(args, 1)) std::memcpy(last + d * state, at.h, state * sizeof(float));
  if (float* const last = output_as(args, 2)) std::memcpy(last + d * state, at.c, state * sizeof(float));
}

void run_lstm(const Machine& machine, const QuantizedLstm& l, const KernelArgs& args) {
  const Room room(l);
  std::byte* const start = args.workspace.host();
  const float* const x = input_as(args, 0);
  const ByteRange range = byte_range(machine, x, l.steps * l.batch * l.inputs);  // Of all steps together.
  quantize_rows(machine, x, l.steps * l.batch, l.inputs, range, room.at(start, 0).x);
  for (size_t d = 0; d < l.directions.size(); ++d) {
    const Places at = room.at(start, d);
    add_gates(machine, l, l.directions[d].input,
              {at.x, l.steps * l.batch, l.inputs, range.scale, l.directions[d].bias.data(), 0, at.gates});
  }
  const auto run = [&](size_t d) { run_direction(machine, l, d, args, room.at(start, d)); };
  // Directions need nothing from each other, so threads that take one each never wait for the other's steps. Weights that do not
  // stay in a core's cache are better shared out among more than two.
  const bool apart = machine.threads() == 2 || l.hidden * l.width() <= machine.l2_bytes();
  if (apart) {
    machine.pool().each(l.directions.size(), run);
  } else {
    for (size_t d = 0; d < l.directions.size(); ++d) run(d);
  }
}

// Attributes that give the cell another shape than the usual.
Support usual_cell(const OpCall& call) {
  if (Support forget = integer_is(call, "input_forget", 0, 0); !forget) return forget;
  if (call.real("clip", 0) > 0) return no(Reason::Attribute, "clip");
  const std::vector<std::string> names = call.texts("activations");
  const std::array<std::string_view, 3> usual = {"Sigmoid", "Tanh", "Tanh"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != usual[i % 3]) return no(Reason::Attribute, "activation ", names[i]);
  }
  return yes();
}

Support supports_lstm(const OpCall& call) {
  if (call.has(4)) return no(Reason::Attribute, "input sequence_lens");
  if (call.has(7)) return no(Reason::Attribute, "peepholes");
  for (const size_t i : {size_t{0}, size_t{3}, size_t{5}, size_t{6}, size_t{8}, size_t{10}}) {
    if (Support type = input_is(call, i, {DType::F32}); !type) return type;
  }
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{8}, size_t{9}, size_t{10}, size_t{11}}) {
    if (call.has(i) && call.constant(i) == nullptr) return no(Reason::Dynamic, "input ", i, " is not constant");
  }
  if (Support cell = usual_cell(call); !cell) return cell;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}}) {
    if (call.input(i).shape.elements() == 0) return no(Reason::Size, "input ", i, " is empty");
  }
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const int64_t k = call.input(i).shape[1];
    if (k > static_cast<int64_t>(most_exact_depth)) return no(Reason::Size, "sums of ", k, " products may not fit int32");
  }
  return yes();
}

// `weights` is the input; its scale and zero point follow at `scale`.
Side prepare_side(const OpCall& call, const Machine& machine, size_t weights, size_t scale, size_t direction) {
  const TensorType& type = call.input(weights);
  const auto k = static_cast<size_t>(type.shape[1]);
  const auto n = static_cast<size_t>(type.shape[2]);
  const bool is_signed = type.dtype == DType::I8;
  const size_t each = call.input(scale).shape.rank() == 2 ? n : 1;
  const size_t each_zero = call.input(scale + 1).shape.rank() == 2 ? n : 1;
  Side side;
  side.weights = pack_bytes(machine, *call.constant(weights), direction * k * n, {.is_signed = is_signed, .k = k, .n = n});
  side.scales.resize(n);
  spread_scales(call.constant(scale)->span<float>().data() + direction * each, each, n, side.scales.data());
  side.zeros.resize(n);
  const std::byte* const zeros = call.constant(scale + 1)->bytes().data() + direction * each_zero;
  if (!spread_zeros(zeros, is_signed, each_zero, n, side.zeros.data())) side.zeros.clear();
  return side;
}

QuantizedLstm lstm_of(const OpCall& call, const Machine& machine) {
  const Shape& x = call.input(0).shape;
  const Shape& weights = call.input(2).shape;
  QuantizedLstm l;
  l.steps = static_cast<size_t>(x[0]);
  l.batch = static_cast<size_t>(x[1]);
  l.inputs = static_cast<size_t>(x[2]);
  l.hidden = static_cast<size_t>(weights[1]);
  const Tensor* const bias = call.constant(3);
  for (size_t d = 0; d < static_cast<size_t>(weights[0]); ++d) {
    Direction direction;
    direction.input = prepare_side(call, machine, 1, 8, d);
    direction.state = prepare_side(call, machine, 2, 10, d);
    direction.bias.resize(l.width());
    for (size_t j = 0; bias != nullptr && j < l.width(); ++j) {
      const auto both = bias->span<float>().subspan(d * 2 * l.width());
      direction.bias[j] = both[j] + both[j + l.width()];
    }
    direction.reverse = d == 1 || call.text("direction", "forward") == "reverse";
    l.directions.push_back(std::move(direction));
  }
  return l;
}

Prepared prepare_lstm(const OpCall& call, Device& device) {
  const Machine& machine = machine_of(device);
  const Shape& x = call.input(0).shape;
  const Shape& weights = call.input(2).shape;
  // Fails here if the gates would be more bytes than can be counted.
  (void)TensorType{DType::F64, Shape{weights[0], x[0], x[1], weights[2] + x[2] + 64}}.bytes();
  const auto lstm = std::make_shared<const QuantizedLstm>(lstm_of(call, machine));  // Shared by the copies of the function below.
  const Room room(*lstm);
  std::vector<bool> unused(call.input_count(), false);
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{8}, size_t{9}, size_t{10}, size_t{11}}) unused.at(i) = true;
  return {.run = [&machine, lstm](Stream&, const KernelArgs& args) { run_lstm(machine, *lstm, args); },
          .workspace_bytes = room.x + lstm->directions.size() * room.of_direction(),
          .unused_inputs = unused};
}

}  // namespace

void add_quantized_lstm_kernels(KernelTable& table) {
  table.add("com.microsoft:DynamicQuantizeLSTM", {.name = "cpu.lstm.bytes", .supports = supports_lstm, .prepare = prepare_lstm});
}

}  // namespace unmoor::cpu
