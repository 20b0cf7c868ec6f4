#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/resample.h"
#include "unmoor/ops/space.h"

namespace unmoor {
namespace {

// How GridSample reads an axis.
struct AxisRule {
  std::string mode;     // nearest, linear, cubic.
  std::string padding;  // zeros, border, reflection.
  bool align = false;
  int64_t length = 0;
};

// Folds x back between the borders, as light between two mirrors.
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double distance = std::fabs(x - (x < low ? low : high));
  if (x >= low && x <= high) return x;
  const double turns = std::floor(distance / range);
  const double rest = distance - turns * range;
  const bool even = std::fmod(turns, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

double low_border(const AxisRule& rule) { return rule.align ? 0 : -0.5; }
double high_border(const AxisRule& rule) { return static_cast<double>(rule.length) - (rule.align ? 1 : 0.5); }

// Adds one neighbour; those that padding turns to zero are left out.
void add_tap(const AxisRule& rule, int64_t from, double weight, Taps& taps) {
  if (rule.padding == "border") {
    from = std::clamp<int64_t>(from, 0, rule.length - 1);
  } else if (rule.padding == "reflection") {
    from = std::clamp<int64_t>(static_cast<int64_t>(reflected(static_cast<double>(from), low_border(rule), high_border(rule))), 0,
                               rule.length - 1);
  }
  if (from >= 0 && from < rule.length) taps.push_back({from, weight});
}

// The elements that a grid coordinate (-1 to 1 over the axis) is made from.
Taps taps_at(const AxisRule& rule, double coordinate) {
  const auto length = static_cast<double>(rule.length);
  double x = rule.align ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  x = std::isnan(x) ? -1e9 : std::clamp(x, -1e9, 1e9);  // So far outside that only padding counts.
  if (rule.mode == "nearest") x = std::nearbyint(x);
  if (x < low_border(rule) || x > high_border(rule)) {
    if (rule.padding == "border") x = std::clamp(x, 0.0, length - 1);
    if (rule.padding == "reflection") x = reflected(x, low_border(rule), high_border(rule));
  }
  const double floor = std::floor(x);
  const auto left = static_cast<int64_t>(floor);
  Taps taps;
  if (rule.mode == "nearest") {
    add_tap(rule, left, 1, taps);
  } else if (rule.mode == "linear") {
    add_tap(rule, left, 1 - (x - floor), taps);
    add_tap(rule, left + 1, x - floor, taps);
  } else {
    const auto weights = cubic_weights(x - floor, -0.75);
    for (size_t i = 0; i < weights.size(); ++i) add_tap(rule, left - 1 + static_cast<int64_t>(i), weights[i], taps);
  }
  return taps;
}

std::string sample_mode(const OpCall& call) {
  std::string mode = call.text("mode", "linear");
  if (mode == "bilinear") return "linear";
  if (mode == "bicubic") return "cubic";
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    fail(ErrorKind::InvalidModel, title(call), ": mode is '", mode, "', not linear, nearest or cubic");
  return mode;
}

std::vector<Type> infer_grid_sample(const OpCall& call) {
  const Shape& data = call.input(0).shape;
  const Shape& grid = call.input(1).shape;
  sample_mode(call);
  const std::string padding = call.text("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border" && padding != "reflection") {
    fail(ErrorKind::InvalidModel, title(call), ": padding_mode is '", padding, "', not zeros, border or reflection");
  }
  if (!data.has_rank() || !grid.has_rank()) return {TensorType{call.input(0).dtype, Shape::of_unknown_rank()}};
  if (data.rank() < 3 || grid.rank() != data.rank())
    fail(ErrorKind::InvalidModel, title(call), ": a grid ", grid, " does not go with ", data);
  same_dim(call, grid[grid.rank() - 1], static_cast<int64_t>(data.rank()) - 2, "the number of coordinates");
  same_dim(call, data[0], grid[0], "the batch");
  Shape shape;
  shape.push_back(data, 0);
  shape.push_back(data, 1);
  for (size_t axis = 1; axis + 1 < grid.rank(); ++axis) shape.push_back(grid, axis);
  return {TensorType{call.input(0).dtype, std::move(shape)}};
}

// The sum over all combinations of the taps of spatial axes from `axis` on, one channel.
double combined(const double* channel, const std::vector<Taps>& taps, const std::vector<int64_t>& strides, size_t axis = 0) {
  if (axis == taps.size()) return *channel;
  double sum = 0;
  for (const Tap& tap : taps[axis]) {
    if (tap.weight != 0) sum += tap.weight * combined(channel + tap.from * strides[axis + 2], taps, strides, axis + 1);
  }
  return sum;
}

void run_grid_sample(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape& shape = in[0].tensor().shape();
  const auto values = doubles(in[0].tensor());
  const auto grid = doubles(in[1].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_grid_sample);
  const size_t spatial = shape.rank() - 2;
  const auto strides = shape.strides();
  const auto places = static_cast<size_t>(result.shape().elements(2, result.shape().rank()));
  const auto channels = static_cast<size_t>(shape[1]);
  if (result.elements() == 0) return;
  if (values.empty()) fail(ErrorKind::InvalidArgument, title(call), ": shape ", shape, " has nothing to sample");
  std::vector<double> results(result.elements());
  for (size_t point = 0; point < static_cast<size_t>(shape[0]) * places; ++point) {
    std::vector<Taps> taps;
    for (size_t axis = 0; axis < spatial; ++axis) {  // A grid point lists x first, the last axis.
      const AxisRule rule{sample_mode(call), call.text("padding_mode", "zeros"), call.integer("align_corners", 0) != 0,
                          shape[axis + 2]};
      taps.push_back(taps_at(rule, grid[point * spatial + spatial - 1 - axis]));
    }
    for (size_t c = 0; c < channels; ++c) {
      const size_t plane = point / places * channels + c;
      results[plane * places + point % places] = combined(values.data() + plane * static_cast<size_t>(strides[1]), taps, strides);
    }
  }
  store(result, std::span<const double>(results));
}

std::vector<Type> infer_affine_grid(const OpCall& call) {
  require_rank(call, 0, 3);
  const auto size = constant_integers(call, 1);
  if (!size) {
    const auto count = length_of(call, 1);
    return {TensorType{call.input(0).dtype, count ? unknown_shape(*count) : Shape::of_unknown_rank()}};
  }
  const auto spatial = static_cast<int64_t>(size->size()) - 2;
  if (spatial < 2 || spatial > 3) fail(ErrorKind::InvalidModel, title(call), ": size has ", size->size(), " numbers, not 4 or 5");
  const Shape& theta = call.input(0).shape;
  if (theta.has_rank()) {
    same_dim(call, theta[0], (*size)[0], "the batch");
    same_dim(call, theta[1], spatial, "the number of rows of theta");
    same_dim(call, theta[2], spatial + 1, "the number of columns of theta");
  }
  Shape shape{(*size)[0]};
  for (size_t axis = 2; axis < size->size(); ++axis) shape.push_back((*size)[axis]);
  shape.push_back(spatial);
  if (!shape.is_known()) fail(ErrorKind::InvalidModel, title(call), ": size ", shape, " has a negative dimension");
  return {TensorType{call.input(0).dtype, std::move(shape)}};
}

void run_affine_grid(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto theta = doubles(in[0].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_affine_grid);
  const bool align = call.integer("align_corners", 0) != 0;
  const size_t rank = result.shape().rank();
  const size_t spatial = rank - 2;
  std::vector<double> values(result.elements());
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    const double* const row =
        theta.data() + (static_cast<size_t>(index[0]) * spatial + static_cast<size_t>(index[rank - 1])) * (spatial + 1);
    double sum = row[spatial];
    for (size_t k = 0; k < spatial; ++k) {
      const auto length = static_cast<double>(result.shape()[spatial - k]);
      const auto at = static_cast<double>(index[spatial - k]);
      const double place = align ? (length == 1 ? 0 : 2 * at / (length - 1) - 1) : (2 * at + 1) / length - 1;
      sum += row[k] * place;
    }
    values[static_cast<size_t>(i)] = sum;
  });
  store(result, std::span<const double>(values));
}

Op grid_sample() {
  Op op;
  op.name = "GridSample";
  op.summary = "The input read at the places that a grid gives, interpolated.";
  op.inputs = {required("X", plain_types()), required("grid", float_types())};
  op.outputs = {required("Y", plain_types())};
  op.attributes = {{"align_corners", int64_t{0}}, {"mode", std::string("linear")}, {"padding_mode", std::string("zeros")}};
  op.infer = infer_grid_sample;
  op.reference = run_grid_sample;
  op.cost = cost_per_output(8);
  op.rounding = Rounding::Sum;
  op.category = Category::Other;
  op.cases = {
      "T[2,3,4,5]~small f32[2,2,3,2]~small mode=linear,nearest,cubic padding_mode=zeros,border,reflection align_corners=0,1",
      "T[1,2,3,4,2]~small f32[1,2,2,2,3]~small mode=linear,nearest padding_mode=zeros,border,reflection",
      "f32[1,1,2,2] f32[1,1,3,2]{0,nan,inf,0,-5,5}",
      "T[1,1,1,1]~small f32[1,2,2,2]~small padding_mode=reflection align_corners=0,1", "T[0,1,2,2] f32[0,1,1,2]",
      "T[1,0,0,2] f32[1,1,1,2] padding_mode=border,reflection"};
  return op;
}

Op affine_grid() {
  Op op;
  op.name = "AffineGrid";
  op.summary = "The grid for GridSample that an affine map gives.";
  op.inputs = {required("theta", float_types()), required("size", {DType::I64})};
  op.outputs = {required("grid", float_types())};
  op.attributes = {{"align_corners", int64_t{0}}};
  op.infer = infer_affine_grid;
  op.reference = run_affine_grid;
  op.cost = cost_per_output(6);
  op.rounding = Rounding::Sum;
  op.category = Category::Other;
  op.cases = {"T[2,2,3]~small i64[4]{2,3,4,5} align_corners=0,1", "T[1,3,4]~small i64[5]{1,2,3,2,4} align_corners=0,1",
              "T[1,2,3]~small i64[4]{1,1,1,1} align_corners=0,1"};
  return op;
}

}  // namespace

void add_sampling_ops(OpSet& ops) {
  ops.add(grid_sample());
  ops.add(affine_grid());
  add_space_ops(ops);
}

}  // namespace unmoor
