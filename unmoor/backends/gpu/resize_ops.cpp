#include <algorithm>
#include <cmath>
#include <cstring>

#include "unmoor/backends/gpu/kernels.h"
#include "unmoor/backends/gpu/resize.h"
#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::gpu {
namespace {

// Which axes of the input are the kernel's rows and columns, and what lies around them.
struct Plane {
  int64_t outer = 1;
  int64_t middle = 1;
  int64_t inner = 1;
  ResizeAxis rows;
  ResizeAxis columns;
};

std::vector<double> constant_values(const OpCall& call, size_t input) {
  return call.has(input) && call.constant(input) != nullptr ? doubles(*call.constant(input)) : std::vector<double>();
}

// By axis of the input.
std::vector<ResizeAxis> axes_of(const OpCall& call) {
  const auto& in = call.input(0).shape;
  const auto& out = call.output(0).shape;
  const auto scales = constant_values(call, 2);
  const auto region = constant_values(call, 1);
  std::vector<ResizeAxis> axes(in.rank());
  std::vector<int64_t> named = call.integers("axes");
  if (named.empty()) {
    for (size_t axis = 0; axis < in.rank(); ++axis) named.push_back(static_cast<int64_t>(axis));
  }
  for (size_t axis = 0; axis < in.rank(); ++axis) {
    axes[axis].in = in[axis];
    axes[axis].out = out[axis];
    axes[axis].scale = in[axis] == 0 ? 1 : static_cast<double>(out[axis]) / static_cast<double>(in[axis]);
  }
  for (size_t i = 0; i < named.size(); ++i) {
    auto& axis = axes[in.axis(named[i])];
    if (i < scales.size()) axis.scale = scales[i];
    if (region.size() == 2 * named.size()) {
      axis.region_start = region[i];
      axis.region_end = region[i + named.size()];
    }
  }
  return axes;
}

ResizeRule rule_of(const OpCall& call) {
  return {.mode = call.text("mode", "nearest"),
          .coordinates = call.text("coordinate_transformation_mode", "half_pixel"),
          .nearest = call.text("nearest_mode", "round_prefer_floor"),
          .cubic_a = call.real("cubic_coeff_a", -0.75),
          .exclude_outside = call.integer("exclude_outside", 0) != 0};
}

bool changes(const ResizeAxis& axis, const ResizeRule& rule) {
  return axis.in != axis.out || axis.scale != 1 || rule.coordinates == "tf_crop_and_resize";
}

// The axes that change, at most two; further ones are the kernel's outer, middle and inner.
Support split_axes(const OpCall& call, Plane& plane) {
  const auto axes = axes_of(call);
  const auto rule = rule_of(call);
  std::vector<size_t> changing;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const bool whole = rule.coordinates == "tf_crop_and_resize" && axes[axis].in == axes[axis].out && axes[axis].region_start == 0 &&
                       axes[axis].region_end == 1;
    if (changes(axes[axis], rule) && !whole) changing.push_back(axis);
  }
  if (changing.size() > 2) return no(Reason::Rank, changing.size(), " axes are resized, more than 2");
  if (axes.empty()) return no(Reason::Rank, "input 0 is a scalar");
  if (changing.empty()) changing.push_back(axes.size() - 1);
  const auto& shape = call.input(0).shape;
  const size_t last = changing.back();
  plane.columns = axes[last];
  plane.inner = shape.elements(last + 1, shape.rank());
  if (changing.size() == 2) {
    plane.rows = axes[changing[0]];
    plane.middle = shape.elements(changing[0] + 1, last);
  }
  plane.outer = shape.elements(0, changing[0]);
  return yes();
}

// Places in tables are numbers of the input's dtype: a float32 counts to 2^24.
constexpr int64_t longest_axis = int64_t{1} << 24;

Support can_resize(const OpCall& call, const Abilities& abilities) {
  if (auto answer = is_real(call, 0, abilities); !answer) return answer;
  if (call.input(0).shape.elements() == 0) return no(Reason::Size, "input 0 is empty");
  for (size_t i = 1; i < 4; ++i) {
    if (call.has(i) && call.input(i).shape.elements() > 0 && call.constant(i) == nullptr) {
      return no(Reason::Dynamic, "input ", i, " is known only at run time");
    }
  }
  if (call.integer("antialias", 0) != 0) return no(Reason::Attribute, "antialias is 1");
  if (const auto policy = call.text("keep_aspect_ratio_policy", "stretch"); policy != "stretch") {
    return no(Reason::Attribute, "keep_aspect_ratio_policy is ", policy);
  }
  if (const auto unknown = unknown_choice(rule_of(call)); !unknown.empty()) return no(Reason::Attribute, unknown);
  Plane plane;
  if (auto answer = split_axes(call, plane); !answer) return answer;
  const int64_t longest = std::max(plane.rows.in, plane.columns.in);
  return longest <= longest_axis ? yes() : no(Reason::Size, "an axis of ", longest, ", more than ", longest_axis);
}

template <class T>
std::shared_ptr<Buffer> table_on(GpuDevice& device, const std::vector<double>& values) {
  const std::vector<T> rounded(values.begin(), values.end());
  return device.constant(std::as_bytes(std::span(rounded)));
}

Prepared prepare_resize(const OpCall& call, GpuDevice& device) {
  Plane plane;
  if (const auto answer = split_axes(call, plane); !answer) fail(ErrorKind::Internal, answer.detail);
  const auto rule = rule_of(call);
  const auto rows = resize_table(plane.rows, rule);
  const auto columns = resize_table(plane.columns, rule);
  const auto dtype = call.output(0).dtype;
  const int64_t count = call.output(0).shape.elements();
  auto numbers = rows.numbers;
  numbers.insert(numbers.end(), columns.numbers.begin(), columns.numbers.end());
  Launch launch("resize", unmoor_gpu_text::unmoor_backends_gpu_kernels_resize_inc, real_defines(dtype));
  launch.input(call, 0).constant(dtype == DType::F64 ? table_on<double>(device, numbers) : table_on<float>(device, numbers));
  launch.output(call, 0).integers({plane.rows.in, plane.middle, plane.columns.in, plane.inner, plane.rows.out, plane.columns.out,
                                   rows.taps, columns.taps});
  launch.real(call.real("extrapolation_value", 0)).integer(count).elements(count);
  return run_in_order(call, device, {std::move(launch)});
}

}  // namespace

void add_resize_kernels(Kernels& kernels) {
  const auto abilities = kernels.abilities();
  kernels.add("Resize", "resize", [abilities](const OpCall& call) { return can_resize(call, abilities); }, prepare_resize);
}

}  // namespace unmoor::gpu
