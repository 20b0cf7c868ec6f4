#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "unmoor/backends/gpu/move.h"
#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::gpu {
namespace {

struct Padding {
  std::vector<int64_t> in;  // What is left of the input by axis; axes that are not padded are joined where they are neighbours.
  std::vector<int64_t> out;
  std::vector<int64_t> before;
  std::vector<int64_t> steps;  // Of the input, in elements.
  int64_t first = 0;           // The element that is left of everything that is cut off.
};

// Negative pads cut off first.
Padding padding_of(const OpCall& call) {
  const auto& in = call.input(0).shape;
  const auto& out = call.output(0).shape;
  const auto pads = integers(*call.constant(1));
  std::vector<int64_t> axes(in.rank());
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has(3)) axes = integers(*call.constant(3));
  std::vector<int64_t> before(in.rank(), 0);
  std::vector<int64_t> left = in.dims();
  const auto strides = in.strides();
  Padding result;
  std::vector<bool> padded_axis(in.rank(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = in.axis(axes[i]);
    const int64_t at_front = pads.at(i);
    const int64_t at_end = pads.at(i + axes.size());
    before[axis] = std::max<int64_t>(at_front, 0);
    left[axis] = std::max<int64_t>(in[axis] + std::min<int64_t>(at_front, 0) + std::min<int64_t>(at_end, 0), 0);
    result.first += std::max<int64_t>(-at_front, 0) * strides[axis];
    padded_axis[axis] = at_front != 0 || at_end != 0;
  }
  for (size_t axis = 0; axis < in.rank(); ++axis) {
    if (axis > 0 && !padded_axis[axis] && !padded_axis[axis - 1]) {
      result.in.back() *= in[axis];
      result.out.back() *= out[axis];
      result.steps.back() = strides[axis];
    } else {
      result.in.push_back(left[axis]);
      result.out.push_back(out[axis]);
      result.before.push_back(before[axis]);
      result.steps.push_back(strides[axis]);
    }
  }
  return result;
}

std::optional<int64_t> mode_of(const OpCall& call) {
  constexpr std::array modes{"constant", "edge", "reflect", "wrap"};
  const auto wanted = call.text("mode", "constant");
  for (size_t i = 0; i < modes.size(); ++i) {
    if (wanted == modes[i]) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

Support can_pad(const OpCall& call) {
  if (auto answer = moves_bytes(call, 0); !answer) return answer;
  for (const size_t i : {size_t{1}, size_t{3}}) {
    if (call.has(i) && call.constant(i) == nullptr) return no(Reason::Dynamic, "input ", i, " is known only at run time");
  }
  if (!mode_of(call)) return no(Reason::Attribute, "mode is ", call.text("mode", "constant"));
  const auto padding = padding_of(call);
  const auto axes = padding.in.size();
  if (axes > most_axes) return no(Reason::Rank, axes, " axes, more than ", most_axes);
  const auto fits = [](const std::vector<int64_t>& list) { return std::ranges::all_of(list, [](int64_t each) { return each < (int64_t{1} << 31); }); };
  if (!fits(padding.in) || !fits(padding.out) || !fits(padding.before)) return no(Reason::Size, "an axis of 2^31 elements or more");
  // Reflection counts to twice the length in 32 bits.
  const bool short_enough = std::ranges::all_of(padding.in, [](int64_t length) { return length < (int64_t{1} << 30); });
  return short_enough || *mode_of(call) == 0 ? yes() : no(Reason::Size, "an axis of 2^30 elements or more");
}

std::vector<int64_t> six(std::vector<int64_t> values, int64_t filling) {
  values.insert(values.begin(), most_axes - values.size(), filling);
  return values;
}

Prepared prepare_pad(const OpCall& call, GpuDevice& device) {
  const auto padding = padding_of(call);
  const auto bytes = bytes_of(call.input(0).dtype, 1);
  const int64_t count = call.output(0).shape.elements();
  Launch launch("pad", unmoor_gpu_text::unmoor_backends_gpu_kernels_pad_inc, {cat("TYPE ", element_name(integer_of_bytes(bytes)))});
  launch.input_bytes(0, bytes);
  if (call.has(2)) {
    launch.input_bytes(2, bytes);
  } else {
    launch.nothing();
  }
  launch.output_bytes(0, bytes).integer(padding.first).integers(six(padding.in, 1)).integers(six(padding.out, 1)).integers(six(padding.before, 0));
  launch.integers(six(padding.steps, 0)).integer(*mode_of(call)).integer(call.has(2) ? 1 : 0).integer(count);
  launch.elements(count);
  return run_in_order(call, device, {std::move(launch)});
}

}  // namespace

void add_pad_kernels(Kernels& kernels) { kernels.add("Pad", "pad", can_pad, prepare_pad); }

}  // namespace unmoor::gpu
