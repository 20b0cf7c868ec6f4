#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/resample.h"

namespace unmoor {
namespace {

constexpr int64_t largest_size = int64_t{1} << 48;

// How one axis is resized.
struct AxisPlan {
  int64_t input = 0;
  int64_t output = 0;
  double scale = 1;   // Output over input, as given or as sizes tell.
  double length = 0;  // The output's size before it was cut to an integer: input times a scale, or the size.
  double roi_start = 0;
  double roi_end = 1;
};

bool is_one_of(const std::string& text, std::initializer_list<const char*> known) {
  return std::ranges::any_of(known, [&](const char* word) { return text == word; });
}

void check_choice(const OpCall& call, std::string_view key, std::string_view otherwise,
                  std::initializer_list<const char*> known) {
  const std::string text = call.text(key, otherwise);
  if (!is_one_of(text, known))
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " is '", text, "', which Resize does not have");
}

void check_attributes(const OpCall& call) {
  check_choice(call, "mode", "nearest", {"nearest", "linear", "cubic"});
  check_choice(call, "nearest_mode", "round_prefer_floor", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  check_choice(call, "keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
  check_choice(call, "coordinate_transformation_mode", "half_pixel",
               {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"});
}

// False where the input is absent or known to be empty.
bool is_given(const OpCall& call, size_t i) {
  return call.has(i) && !(call.input(i).shape.is_known() && call.input(i).shape.elements() == 0);
}

std::vector<size_t> resized_axes(const OpCall& call, size_t rank) {
  if (call.has_attribute("axes")) return axes_of(call, call.integers("axes"), rank);
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), size_t{0});
  return axes;
}

void check_count(const OpCall& call, size_t found, size_t wanted, std::string_view what) {
  if (found != wanted) fail(ErrorKind::InvalidModel, title(call), ": ", found, " ", what, " were given, not ", wanted);
}

void plan_scales(const OpCall& call, const std::vector<size_t>& axes, const Tensor& given, std::vector<AxisPlan>& plans) {
  const auto scales = doubles(given);
  check_count(call, scales.size(), axes.size(), "scales");
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPlan& plan = plans[axes[i]];
    // In float32, as ONNX's own shape inference has it: 10 times 0.7 is 7.
    const double size = static_cast<double>(std::floor(static_cast<float>(plan.input) * static_cast<float>(scales[i])));
    if (!(scales[i] > 0) || !(size < 0x1p48))
      fail(ErrorKind::InvalidModel, title(call), ": a scale of ", scales[i], " makes no sense");
    plan.scale = scales[i];
    plan.length = plan.scale * static_cast<double>(plan.input);
    plan.output = plan.input < 0 ? Shape::unknown : static_cast<int64_t>(size);
  }
}

void plan_sizes(const OpCall& call, const std::vector<size_t>& axes, const std::vector<int64_t>& sizes,
                std::vector<AxisPlan>& plans) {
  check_count(call, sizes.size(), axes.size(), "sizes");
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  double common = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPlan& plan = plans[axes[i]];
    if (sizes[i] < 0 || sizes[i] > largest_size)
      fail(ErrorKind::InvalidModel, title(call), ": a size of ", sizes[i], " makes no sense");
    plan.output = sizes[i];
    plan.length = static_cast<double>(sizes[i]);
    plan.scale = plan.input == 0 ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(plan.input);
    common = policy == "not_larger" ? std::min(common, plan.scale) : std::max(common, plan.scale);
  }
  if (policy == "stretch") return;
  for (const size_t axis : axes) {
    AxisPlan& plan = plans[axis];
    plan.scale = common;
    plan.length = common * static_cast<double>(plan.input);
    if (!(plan.length <= static_cast<double>(largest_size)))
      fail(ErrorKind::InvalidModel, title(call), ": the policy ", policy, " makes axis ", axis, " ", plan.length, " elements long");
    plan.output = plan.input < 0 ? Shape::unknown : static_cast<int64_t>(std::floor(plan.length + 0.5));
  }
}

// By axis. Outputs are unknown where scales, sizes or the input's dimensions are.
std::vector<AxisPlan> plan_axes(const OpCall& call, const Shape& shape) {
  std::vector<AxisPlan> plans(shape.rank());
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    plans[axis].input = plans[axis].output = shape[axis];
    plans[axis].length = static_cast<double>(shape[axis]);
  }
  const auto axes = resized_axes(call, shape.rank());
  const bool by_size = is_given(call, 3);
  if (by_size && is_given(call, 2) && !(call.input(2).is_known() && call.input(3).is_known())) {
    for (const size_t axis : axes) plans[axis].output = Shape::unknown;  // One of them may turn out to be empty.
    return plans;
  }
  if (by_size == is_given(call, 2)) fail(ErrorKind::InvalidModel, title(call), ": it needs either scales or sizes");
  const Tensor* given = call.constant(by_size ? 3 : 2);
  const bool unknown_ratio = by_size && call.text("keep_aspect_ratio_policy", "stretch") != "stretch" && !shape.is_known();
  if (given == nullptr || unknown_ratio) {
    for (const size_t axis : axes) plans[axis].output = Shape::unknown;
  } else if (by_size) {
    plan_sizes(call, axes, integers(*given), plans);
  } else {
    plan_scales(call, axes, *given, plans);
  }
  if (call.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" && call.constant(1) != nullptr) {
    const auto roi = doubles(*call.constant(1));
    check_count(call, roi.size(), 2 * axes.size(), "numbers of the region of interest");
    for (size_t i = 0; i < axes.size(); ++i) {
      plans[axes[i]].roi_start = roi[i];
      plans[axes[i]].roi_end = roi[i + axes.size()];
    }
  }
  return plans;
}

std::vector<Type> infer_resize(const OpCall& call) {
  const TensorType& data = call.input(0);
  check_attributes(call);
  if (!data.shape.has_rank()) return {data};
  const auto plans = plan_axes(call, data.shape);
  Shape shape = data.shape;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (plans[axis].output != shape[axis] || plans[axis].scale != 1) shape.set(axis, plans[axis].output);
  }
  return {TensorType{data.dtype, std::move(shape)}};
}

// Where output element x lies on the input's axis.
double source_place(const std::string& mode, const AxisPlan& plan, int64_t element) {
  const auto x = static_cast<double>(element);
  const auto input = static_cast<double>(plan.input);
  const bool single = plan.output == 1;
  if (mode == "align_corners") return single ? 0 : x * (input - 1) / (plan.length - 1);
  if (mode == "asymmetric") return x / plan.scale;
  if (mode == "tf_crop_and_resize") {
    const double width = (plan.roi_end - plan.roi_start) * (input - 1);
    return plan.roi_start * (input - 1) + (single ? width / 2 : x * width / (plan.length - 1));
  }
  if (mode == "pytorch_half_pixel" && single) return 0;
  const double middle = (x + 0.5) / plan.scale - 0.5;
  if (mode != "half_pixel_symmetric") return middle;
  return input / 2 * (1 - static_cast<double>(plan.output) / plan.length) + middle;
}

// The weights of the neighbours from `first` on, counted from the element left of the place; ratio is in (0, 1].
struct Kernel1D {
  int64_t first = 0;
  std::vector<double> weights;
};

double cubic_at(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Filters widened by 1/scale, so that shrinking averages over all it covers.
Kernel1D antialiased(const OpCall& call, bool cubic, double ratio, double scale) {
  const double reach = cubic ? 2 : 1;
  const double a = call.real("cubic_coeff_a", -0.75);
  Kernel1D kernel{static_cast<int64_t>(std::floor(-reach / scale)) + 1, {}};
  double sum = 0;
  for (int64_t i = kernel.first; i <= 1 - kernel.first; ++i) {
    const double x = (static_cast<double>(i) - ratio) * scale;
    kernel.weights.push_back(cubic ? cubic_at(x, a) : std::max(0.0, 1 - std::fabs(x)));
    sum += kernel.weights.back();
  }
  for (double& weight : kernel.weights) weight /= sum;
  return kernel;
}

Kernel1D kernel_for(const OpCall& call, double ratio, double scale) {
  const std::string mode = call.text("mode", "nearest");
  if (mode == "nearest") {
    const std::string rounding = call.text("nearest_mode", "round_prefer_floor");
    bool right = rounding == "ceil" || ratio == 1;
    if (rounding == "round_prefer_floor") right = ratio > 0.5;
    if (rounding == "round_prefer_ceil") right = ratio >= 0.5;
    return {right ? 1 : 0, {1.0}};
  }
  const bool cubic = mode == "cubic";
  if (call.integer("antialias", 0) != 0 && scale < 1) return antialiased(call, cubic, ratio, scale);
  if (!cubic) return {0, {1 - ratio, ratio}};
  const auto weights = cubic_weights(ratio, call.real("cubic_coeff_a", -0.75));
  return {-1, {weights.begin(), weights.end()}};
}

// What output element x takes from along an axis. Empty where tf_crop_and_resize looks outside.
Taps taps_for(const OpCall& call, const AxisPlan& plan, int64_t x) {
  const std::string mode = call.text("coordinate_transformation_mode", "half_pixel");
  const double place = source_place(mode, plan, x);
  if (mode == "tf_crop_and_resize" && !(place >= 0 && place <= static_cast<double>(plan.input - 1))) return {};
  if (!(std::fabs(place) < 0x1p52)) fail(ErrorKind::InvalidArgument, title(call), ": an element would come from place ", place);
  const bool whole = place == std::floor(place);
  const auto left = static_cast<int64_t>(std::floor(place)) - (whole ? 1 : 0);
  const Kernel1D kernel = kernel_for(call, whole ? 1 : place - std::floor(place), plan.scale);
  const bool exclude = call.integer("exclude_outside", 0) != 0;
  Taps taps;
  double sum = 0;
  for (size_t i = 0; i < kernel.weights.size(); ++i) {
    const int64_t from = left + kernel.first + static_cast<int64_t>(i);
    const bool outside = from < 0 || from >= plan.input;
    const double weight = exclude && outside ? 0 : kernel.weights[i];
    sum += weight;
    taps.push_back({std::clamp<int64_t>(from, 0, plan.input - 1), weight});
  }
  for (Tap& tap : taps) tap.weight /= exclude ? sum : 1;
  return taps;
}

bool stays(const OpCall& call, const AxisPlan& plan) {
  return plan.scale == 1 && plan.output == plan.input &&
         call.text("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
}

std::vector<Taps> axis_taps(const OpCall& call, const AxisPlan& plan) {
  std::vector<Taps> all;
  for (int64_t x = 0; x < plan.output; ++x) all.push_back(stays(call, plan) ? Taps{{x, 1.0}} : taps_for(call, plan, x));
  return all;
}

// One axis of dense values resampled.
std::vector<double> resampled(const std::vector<double>& values, const Split& split, const std::vector<Taps>& taps) {
  std::vector<double> result(split.outer * taps.size() * split.inner);
  for (size_t outer = 0; outer < split.outer; ++outer) {
    for (size_t x = 0; x < taps.size(); ++x) {
      double* const row = result.data() + (outer * taps.size() + x) * split.inner;
      for (const Tap& tap : taps[x]) {
        if (tap.weight == 0) continue;
        const double* const from = values.data() + (outer * split.length + static_cast<size_t>(tap.from)) * split.inner;
        for (size_t i = 0; i < split.inner; ++i) row[i] += tap.weight * from[i];
      }
    }
  }
  return result;
}

void clamp_to_integers(DType dtype, std::vector<double>& values) {
  if (is_float(dtype)) return;
  const int bits = static_cast<int>(bits_of(dtype));
  const double low = is_signed(dtype) ? -std::ldexp(1.0, bits - 1) : 0;
  const double high = dtype == DType::Bool ? 1 : std::ldexp(1.0, is_signed(dtype) ? bits - 1 : bits) - 1;
  for (double& value : values) value = std::clamp(value, low, high);
}

void run_nearest(const Tensor& data, const std::vector<std::vector<Taps>>& taps, double extrapolation, Tensor& result) {
  const auto strides = data.shape().strides();
  Tensor outside(TensorType{data.dtype(), Shape()});
  store(outside, std::span<const double>(&extrapolation, 1));
  const ElementCopy copy(data, result);
  const ElementCopy extrapolate(outside, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    int64_t from = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      const Taps& tap = taps[axis][static_cast<size_t>(index[axis])];
      if (tap.empty()) return extrapolate(0, i);
      from += tap[0].from * strides[axis];
    }
    copy(from, i);
  });
}

void run_filter(const Tensor& data, const std::vector<std::vector<Taps>>& taps, double extrapolation, Tensor& result) {
  auto values = doubles(data);
  Shape shape = data.shape();
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    values = resampled(values, split_at(shape, axis), taps[axis]);
    shape.set(axis, static_cast<int64_t>(taps[axis].size()));
  }
  for_each_index(shape, [&](int64_t i, const std::vector<int64_t>& index) {
    for (size_t axis = 0; axis < index.size(); ++axis) {
      if (taps[axis][static_cast<size_t>(index[axis])].empty()) values[static_cast<size_t>(i)] = extrapolation;
    }
  });
  clamp_to_integers(result.dtype(), values);
  store(result, std::span<const double>(values));
}

void run_resize(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const auto plans = plan_axes(with_data(call, in), data.shape());
  Tensor& result = allocate_inferred(call, in, out, infer_resize);
  if (result.elements() == 0) return;
  if (data.elements() == 0)
    fail(ErrorKind::InvalidArgument, title(call), ": a tensor of shape ", data.shape(), " has nothing to resize");
  std::vector<std::vector<Taps>> taps;
  for (const AxisPlan& plan : plans) taps.push_back(axis_taps(call, plan));
  const double extrapolation = call.real("extrapolation_value", 0);
  if (call.text("mode", "nearest") == "nearest") return run_nearest(data, taps, extrapolation, result);
  run_filter(data, taps, extrapolation, result);
}

Op resize() {
  Op op;
  op.name = "Resize";
  op.summary = "Grows or shrinks axes by taking the nearest element, or by linear or cubic interpolation.";
  op.inputs = {required("X", plain_types()), optional("roi", float_types()), optional("scales", {DType::F32}),
               optional("sizes", {DType::I64})};
  op.outputs = {required("Y", plain_types())};
  op.attributes = {{"antialias", int64_t{0}},        {"coordinate_transformation_mode", std::string("half_pixel")},
                   {"cubic_coeff_a", -0.75F},        {"exclude_outside", int64_t{0}},
                   {"extrapolation_value", 0.0F},    {"keep_aspect_ratio_policy", std::string("stretch")},
                   {"mode", std::string("nearest")}, {"nearest_mode", std::string("round_prefer_floor")}};
  op.infer = infer_resize;
  op.reference = run_resize;
  op.cost = cost_per_output(8);
  op.rounding = Rounding::Sum;
  op.category = Category::Layout;
  op.cases = {
      "T[1,2,4,5] - f32[4]{1,1,2,2} mode=nearest,linear,cubic "
      "coordinate_transformation_mode=half_pixel,asymmetric,align_corners,pytorch_half_pixel,half_pixel_symmetric",
      "T[1,1,4,4] - f32[4]{1,1,0.6,1.7} mode=linear,cubic "
      "coordinate_transformation_mode=half_pixel,align_corners,half_pixel_symmetric antialias=0,1",
      "T[1,1,7,8] - - i64[4]{1,1,3,2} mode=nearest,linear,cubic antialias=0,1",
      "T[1,1,5,5] - - i64[2]{9,3} axes=[2,3],[-1,-2] mode=nearest nearest_mode=round_prefer_floor,round_prefer_ceil,floor,ceil "
      "coordinate_transformation_mode=half_pixel,asymmetric",
      "T[1,1,4,4] - f32[4]{1,1,0.8,2} mode=cubic exclude_outside=0,1 cubic_coeff_a=-0.5 "
      "coordinate_transformation_mode=half_pixel",
      "f32[1,1,4,4] f32[8]{0,0,0.4,0.6,1,1,0.6,1.2} - i64[4]{1,1,3,3} mode=linear,nearest,cubic "
      "coordinate_transformation_mode=tf_crop_and_resize extrapolation_value=10",
      "f32[1,1,4,6] f32[4]{0.2,0.1,0.8,1} - i64[2]{3,3} axes=[2,3] mode=linear coordinate_transformation_mode=tf_crop_and_resize",
      "T[1,1,2,4] - - i64[2]{7,8} axes=[2,3] keep_aspect_ratio_policy=not_larger,not_smaller,stretch mode=linear",
      "T[1,1,4,4] - - i64[2]{1,1} axes=[2,3] mode=linear coordinate_transformation_mode=pytorch_half_pixel,align_corners",
      "u8[1,1,4,4] - f32[4]{1,1,2,2} mode=nearest,linear,cubic",
      "T[0,1,4,4] - f32[4]{1,1,2,2}",
      "i32[1,1,2,2] - f64[4]{1,1,2,2}",
      "T[6] - f32[1]{0.5}",
      "T[1,3,2,3,2] - f32[5]{1,1,2,2,2} mode=linear",
      "T[2,3] f32[0]{} f32[0]{} i64[2]{2,3}",
      "f32[1,1,2,4]{inf,inf,1,-inf,inf,inf,3e38,-3e38} - f32[4]{1,1,1.5,2} mode=linear",
  };
  return op;
}

}  // namespace

std::array<double, 4> cubic_weights(double ratio, double a) {
  return {cubic_at(ratio + 1, a), cubic_at(ratio, a), cubic_at(1 - ratio, a), cubic_at(2 - ratio, a)};
}

void add_resize_ops(OpSet& ops) {
  ops.add(resize());
  add_sampling_ops(ops);
}

}  // namespace unmoor
