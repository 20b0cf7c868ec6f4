#include <algorithm>
#include <cmath>

#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

constexpr size_t most_joined = 256;  // Nodes that one convolution may stand for: each costs a copy of its weights.

// y = scale * x + shift, one number a channel.
struct Affine {
  std::vector<double> scale;  // Empty if it is 1.
  std::vector<double> shift;  // Empty if it is 0.
};

size_t channels_of(const Node& conv, const Shape& weights) {
  const auto groups = static_cast<size_t>(std::max<int64_t>(integer_of(conv, "group", 1), 1));
  return conv.op == "Conv" ? static_cast<size_t>(weights[0]) : static_cast<size_t>(weights[1]) * groups;
}

// The numbers of a constant that has one a channel, or one in all, beside a value of rank `rank`.
std::vector<double> per_channel(const Rewriter& r, ValueId id, size_t channels, size_t rank) {
  const Tensor* tensor = r.constant(id);
  if (tensor == nullptr || !is_float(tensor->dtype()) || tensor->shape().rank() > rank) return {};
  if (tensor->elements() == 1) return std::vector<double>(channels, doubles(*tensor)[0]);
  const Shape& shape = tensor->shape();
  if (tensor->elements() != channels || shape.rank() + 1 < rank) return {};
  if (shape[shape.rank() - (rank - 1)] != static_cast<int64_t>(channels)) return {};
  return doubles(*tensor);
}

bool is_finite(const std::vector<double>& numbers) {
  return std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); });
}

bool match_normalization(const Rewriter& r, const Node& node, size_t channels, Affine& affine) {
  if (integer_of(node, "training_mode", 0) != 0 || output_count(node) != 1 || output_of(node) == no_value) return false;
  std::vector<std::vector<double>> numbers;
  for (size_t i = 1; i <= 4; ++i) {
    const Tensor* tensor = r.constant(input_of(node, i));
    if (tensor == nullptr || !is_float(tensor->dtype()) || tensor->elements() != channels) return false;
    numbers.push_back(doubles(*tensor));
  }
  const double epsilon = real_of(node, "epsilon", static_cast<double>(1e-5F));
  affine.scale.resize(channels);
  affine.shift.resize(channels);
  for (size_t c = 0; c < channels; ++c) {
    affine.scale[c] = numbers[0][c] / std::sqrt(numbers[3][c] + epsilon);
    affine.shift[c] = numbers[1][c] - numbers[2][c] * affine.scale[c];
  }
  return is_finite(affine.scale);
}

// What the user of a convolution's output does to it, if it is such a thing.
std::optional<Affine> match_affine(const Rewriter& r, const Node& node, ValueId value, size_t channels, size_t rank) {
  Affine affine;
  if (node.op == "BatchNormalization") {
    if (input_of(node, 0) != value || !match_normalization(r, node, channels, affine)) return std::nullopt;
    return affine;
  }
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return std::nullopt;
  const bool first = node.inputs[0] == value;
  auto numbers = per_channel(r, node.inputs[first ? 1 : 0], channels, rank);
  if (numbers.empty()) return std::nullopt;
  if (node.op == "Mul") {
    affine.scale = std::move(numbers);
  } else if (node.op == "Add") {
    affine.shift = std::move(numbers);
  } else if (node.op == "Sub" && first) {
    for (double& number : numbers) number = -number;
    affine.shift = std::move(numbers);
  } else if (node.op == "Div" && first && std::ranges::find(numbers, 0.0) == numbers.end()) {
    for (double& number : numbers) number = 1 / number;
    affine.scale = std::move(numbers);
  } else {
    return std::nullopt;
  }
  return is_finite(affine.scale) ? std::optional(affine) : std::nullopt;
}

enum class Side { Input, Output };

// The kernels of a convolution's weights: one for each pair of an input and an output channel of a group.
struct Kernels {
  size_t count = 0;
  size_t size = 0;     // Elements of each.
  size_t columns = 0;  // Kernels in a row, the first axis.
  size_t rows_a_group = 1;
  bool transposed = false;

  // The channel that kernel `i` reads or gives.
  size_t channel(size_t i, Side side) const {
    const size_t row = i / columns;
    const bool by_row = transposed == (side == Side::Input);
    return by_row ? row : row / rows_a_group * columns + i % columns;
  }
};

Kernels kernels_of(const Node& conv, const Shape& shape) {
  const auto groups = static_cast<size_t>(std::max<int64_t>(integer_of(conv, "group", 1), 1));
  const auto rows = static_cast<size_t>(shape[0]);
  const auto columns = static_cast<size_t>(shape[1]);
  return {rows * columns, static_cast<size_t>(shape.elements(2, shape.rank())), columns, std::max<size_t>(rows / groups, 1),
          conv.op != "Conv"};
}

// How far rounding took numbers off, as sums of squares.
struct Drift {
  double error = 0;
  double exact = 0;
  void add(double wanted, double held) {
    error += (wanted - held) * (wanted - held);
    exact += wanted * wanted;
  }
  // True while it is what rounding to normal numbers of the dtype does; not if they overflowed, or fell among the subnormal ones.
  bool is_fine(DType dtype) const {
    const double half_unit = dtype == DType::F64 ? 0x1p-53 : 0x1p-24;
    return std::isfinite(error) && error <= 4 * half_unit * half_unit * exact;
  }
};

// Weights multiplied by one number an input or output channel.
template <class T>
Drift scale_weights(const Kernels& kernels, std::span<const T> from, std::span<T> to, const std::vector<double>& scale, Side side) {
  Drift drift;
  for (size_t i = 0; i < kernels.count; ++i) {
    const double factor = scale[kernels.channel(i, side)];
    for (size_t k = i * kernels.size; k < (i + 1) * kernels.size; ++k) {
      const double wanted = static_cast<double>(from[k]) * factor;
      to[k] = static_cast<T>(wanted);
      drift.add(wanted, static_cast<double>(to[k]));
    }
  }
  return drift;
}

// Empty if the dtype cannot hold them: of 16 bits exactly, else as well as rounding lets it.
std::optional<Tensor> scaled_weights(const Node& conv, const Tensor& weights, const std::vector<double>& scale, Side side) {
  Tensor result(weights.type());
  const Kernels kernels = kernels_of(conv, weights.shape());
  if (weights.dtype() == DType::F32) {
    const Drift drift = scale_weights<float>(kernels, weights.span<float>(), result.writable_span<float>(), scale, side);
    return drift.is_fine(DType::F32) ? std::optional(result) : std::nullopt;
  }
  const auto numbers = doubles(weights);
  std::vector<double> scaled(numbers.size());
  scale_weights<double>(kernels, numbers, scaled, scale, side);
  store(result, scaled);
  Drift drift;
  const auto held = doubles(result);
  for (size_t i = 0; i < scaled.size(); ++i) drift.add(scaled[i], held[i]);
  // Of 16 bits each rounding counts as much as that of a result.
  const bool is_fine = weights.dtype() == DType::F64 ? drift.is_fine(DType::F64) : drift.error == 0;
  return is_fine ? std::optional(result) : std::nullopt;
}

// Empty if it was finite and no longer is.
std::optional<Tensor> moved_bias(const Rewriter& r, const Node& conv, size_t channels, const Affine& affine) {
  const DType dtype = r.constant(conv.inputs[1])->dtype();
  std::vector<double> bias(channels, 0.0);
  if (input_of(conv, 2) != no_value) bias = doubles(*r.constant(conv.inputs[2]));
  const bool was_finite = is_finite(bias) && is_finite(affine.shift);
  for (size_t c = 0; c < channels; ++c) {
    if (!affine.scale.empty()) bias[c] *= affine.scale[c];
    if (!affine.shift.empty()) bias[c] += affine.shift[c];
  }
  Tensor result = make_tensor(dtype, Shape{static_cast<int64_t>(channels)}, bias);
  return was_finite && !is_finite(doubles(result)) ? std::nullopt : std::optional(result);
}

// Gives `folded` the weights scaled; false if that cannot be.
bool scale_into(Rewriter& r, const Node& conv, Node& folded, const std::vector<double>& scale, Side side) {
  if (scale.empty()) return true;
  const Tensor weights = *r.constant(conv.inputs[1]);
  const size_t bytes = weights.bytes().size();
  if (!r.spend(bytes, static_cast<double>(bytes))) return false;
  auto scaled = scaled_weights(conv, weights, scale, side);
  if (scaled) {
    folded.inputs[1] = r.add_constant(r.value(conv.inputs[1]).name, std::move(*scaled));
  } else {
    r.budget().bytes += bytes;
  }
  return scaled.has_value();
}

bool move_bias_into(Rewriter& r, const Node& conv, Node& folded, size_t channels, const Affine& affine) {
  auto bias = moved_bias(r, conv, channels, affine);
  if (!bias) return false;
  folded.inputs.resize(3, no_value);
  folded.inputs[2] = r.add_constant("", std::move(*bias));
  return true;
}

// Weights that nobody uses any more need no memory.
void release_weights(Rewriter& r, const Node& conv) {
  r.release(input_of(conv, 1));
  r.release(input_of(conv, 2));
}

// Weights and bias are constants of fitting shapes.
bool is_foldable(const Rewriter& r, const Node& conv) {
  if (conv.op != "Conv" && conv.op != "ConvTranspose") return false;
  const Tensor* weights = r.constant(input_of(conv, 1));
  if (weights == nullptr || !is_float(weights->dtype()) || weights->shape().rank() < 3 || weights->elements() == 0) return false;
  const int64_t groups = integer_of(conv, "group", 1);
  if (groups < 1 || weights->shape()[0] % groups != 0) return false;
  if (input_of(conv, 2) == no_value) return true;
  const Tensor* bias = r.constant(conv.inputs[2]);
  return bias != nullptr && is_float(bias->dtype()) && bias->elements() == channels_of(conv, weights->shape());
}

// Folds the user of the convolution's output into it, in the user's place. Returns that node, or no_node.
NodeId fold_user(Rewriter& r, NodeId id) {
  const Node conv = r.node(id);
  const NodeId user = only_follower(r, output_of(conv));
  if (user == no_node || !is_foldable(r, conv) || conv.origin.also.size() > most_joined) return no_node;
  const Shape& shape = r.constant(conv.inputs[1])->shape();
  const size_t channels = channels_of(conv, shape);
  const auto affine = match_affine(r, r.node(user), output_of(conv), channels, shape.rank());
  if (!affine) return no_node;
  Node folded = conv;
  if (!move_bias_into(r, conv, folded, channels, *affine) || !scale_into(r, conv, folded, affine->scale, Side::Output)) return no_node;
  folded.name = r.node(user).name;
  folded.outputs = {output_of(r.node(user))};
  folded.origin = joined_origin(r, user, {id});
  r.remove(id);
  r.replace(user, std::move(folded));
  release_weights(r, conv);
  return user;
}

bool has_no_padding(const Node& conv) {
  const auto pads = integers_of(conv, "pads");
  const std::string automatic = text_of(conv, "auto_pad", "NOTSET");
  return automatic == "VALID" || (automatic == "NOTSET" && std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; }));
}

// What a shift of the input channels adds to each output channel.
std::vector<double> shifted_outputs(const Node& conv, const Tensor& weights, const std::vector<double>& shift, size_t channels) {
  const Kernels kernels = kernels_of(conv, weights.shape());
  const auto numbers = doubles(weights);
  std::vector<double> sums(channels);
  for (size_t i = 0; i < kernels.count; ++i) {
    double sum = 0;
    for (size_t k = i * kernels.size; k < (i + 1) * kernels.size; ++k) sum += numbers[k];
    sums[kernels.channel(i, Side::Output)] += sum * shift[kernels.channel(i, Side::Input)];
  }
  return sums;
}

// True if the node may give more channels than `data` has: by a constant with one number a channel, broadcast.
bool may_widen(const Rewriter& r, const Node& node, ValueId data, size_t channels) {
  if (node.op == "BatchNormalization" || r.tensor_type(data)->shape[1] == static_cast<int64_t>(channels)) return false;
  return std::ranges::any_of(node.inputs, [&r](ValueId id) { return r.constant(id) != nullptr && r.constant(id)->elements() != 1; });
}

// What the node that makes the convolution's input does to `data`, if the convolution can do it instead. A shift only where no padding
// surrounds the input, and where the sums that it adds to the bias cost no digits that count: not in 16-bit floats.
std::optional<Affine> foldable_maker(const Rewriter& r, const Node& conv, const Node& made, ValueId data, size_t channels) {
  const Tensor& weights = *r.constant(conv.inputs[1]);
  const TensorType* type = r.tensor_type(data);
  const size_t rank = weights.shape().rank();
  if (type == nullptr || r.constant(data) != nullptr || !type->shape.has_rank() || type->shape.rank() != rank) return std::nullopt;
  if (may_widen(r, made, data, channels)) return std::nullopt;
  const auto affine = match_affine(r, made, data, channels, rank);
  const bool can_shift = conv.op == "Conv" && has_no_padding(conv) && bits_of(weights.dtype()) > 16;
  return affine && (affine->shift.empty() || can_shift) ? affine : std::nullopt;
}

// Folds what makes the convolution's input into its weights.
bool fold_maker(Rewriter& r, NodeId id) {
  const Node conv = r.node(id);
  if (!is_foldable(r, conv) || r.only_user(conv.inputs[0]) != id || conv.origin.also.size() > most_joined) return false;
  const NodeId made = r.maker(conv.inputs[0]);
  if (made == no_node) return false;
  const Shape shape = r.constant(conv.inputs[1])->shape();
  const size_t outputs = channels_of(conv, shape);
  const auto groups = static_cast<size_t>(integer_of(conv, "group", 1));
  const size_t inputs = static_cast<size_t>(shape[conv.op == "Conv" ? 1 : 0]) * (conv.op == "Conv" ? groups : 1);
  const std::vector<ValueId> candidates = r.node(made).inputs;
  for (const ValueId data : candidates) {
    const auto affine = foldable_maker(r, conv, r.node(made), data, inputs);
    if (!affine) continue;
    Node folded = conv;
    if (!affine->shift.empty()) {
      const Affine added{{}, shifted_outputs(conv, *r.constant(conv.inputs[1]), affine->shift, outputs)};
      if (!move_bias_into(r, conv, folded, outputs, added)) continue;
    }
    if (!scale_into(r, conv, folded, affine->scale, Side::Input)) continue;
    folded.inputs[0] = data;
    folded.origin = joined_origin(r, id, {made});
    r.replace(id, std::move(folded));
    r.remove(made);
    release_weights(r, conv);
    return true;
  }
  return false;
}

}  // namespace

bool fuse_scale(Rewriter& r) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) {
    for (NodeId folded = fold_user(r, id); folded != no_node; folded = fold_user(r, folded)) changed = true;
  }
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) {
    while (fold_maker(r, id)) changed = true;
  }
  return changed;
}

}  // namespace unmoor
