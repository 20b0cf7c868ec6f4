#include <algorithm>
#include <cmath>
#include <cstring>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/walk.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::cpu {

namespace {

// The factor of each axis of the input. Scales or sizes may be for some axes only.
std::vector<double> factors_of(const OpCall& call) {
  const Shape& in = call.input(0).shape;
  const Shape& out = call.output(0).shape;
  std::vector<double> factors;
  for (size_t i = 0; i < in.rank(); ++i) factors.push_back(static_cast<double>(out[i]) / static_cast<double>(in[i]));
  const Tensor* const scales = call.has(2) ? call.constant(2) : nullptr;
  if (scales == nullptr) return factors;
  const std::vector<double> values = doubles(*scales);
  const std::vector<int64_t> axes = call.integers("axes");
  for (size_t i = 0; i < values.size(); ++i) factors[axes.empty() ? i : in.axis(axes[i])] = values[i];
  return factors;
}

// Where output position `at` lies on the input axis, as coordinate_transformation_mode says.
double position(const std::string& mode, double at, double in, double out, double factor) {
  const double exact = factor * in;  // The output's size before it was cut to a whole number.
  if (mode == "asymmetric") return at / factor;
  if (mode == "align_corners") return out == 1 ? 0 : at * (in - 1) / (exact - 1);
  if (mode == "pytorch_half_pixel" && out == 1) return 0;
  if (mode == "half_pixel_symmetric") {
    const double adjustment = out / exact;
    return in / 2 * (1 - adjustment) + (at + 0.5) / factor - 0.5;
  }
  return (at + 0.5) / factor - 0.5;
}

size_t nearest(const std::string& mode, double x, int64_t size) {
  double chosen = 0;
  if (mode == "floor") chosen = std::floor(x);
  if (mode == "ceil") chosen = std::ceil(x);
  if (mode == "round_prefer_floor") chosen = std::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") chosen = std::floor(x + 0.5);
  return static_cast<size_t>(std::clamp<double>(chosen, 0, static_cast<double>(size - 1)));
}

struct Between {
  size_t low, high;
  float weight;  // Of high.
};

// One axis of the call: for each output place, the input's.
template <class Place, class Make>
std::vector<Place> along(const OpCall& call, size_t axis, Make make) {
  const int64_t in = call.input(0).shape[axis];
  const int64_t out = call.output(0).shape[axis];
  const double factor = factors_of(call)[axis];
  const std::string mode = call.text("coordinate_transformation_mode", "half_pixel");
  std::vector<Place> places;
  for (int64_t i = 0; i < out; ++i) {
    places.push_back(make(position(mode, static_cast<double>(i), static_cast<double>(in), static_cast<double>(out), factor), in));
  }
  return places;
}

Support supports_resize(const OpCall& call) {
  const std::string mode = call.text("mode", "nearest");
  const std::string coordinates = call.text("coordinate_transformation_mode", "half_pixel");
  if (call.input(0).shape.elements() == 0 || call.output(0).shape.elements() == 0) return no(Reason::Size, "an empty input or result");
  if (call.text("layout", "NCHW") != "NCHW") return no(Reason::Layout, call.text("layout", "NCHW"));
  if (coordinates == "tf_crop_and_resize" || coordinates == "tf_half_pixel_for_nn") {
    return no(Reason::Attribute, "coordinate_transformation_mode ", coordinates);
  }
  if (call.text("keep_aspect_ratio_policy", "stretch") != "stretch") return no(Reason::Attribute, "keep_aspect_ratio_policy");
  if (call.has(2) && call.constant(2) == nullptr) return no(Reason::Dynamic, "scales are not constant");
  if (Support rest = all_of(integer_is(call, "antialias", 0, 0), integer_is(call, "exclude_outside", 0, 0)); !rest) return rest;
  if (mode == "nearest") {
    return element_bytes(call.input(0).dtype) == 4 ? yes() : no(Reason::DType, call.input(0).dtype);
  }
  if (mode != "linear") return no(Reason::Attribute, "mode ", mode);
  const size_t rank = call.input(0).shape.rank();
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (call.input(0).shape[i] != call.output(0).shape[i]) return no(Reason::Size, "linear along axis ", i);
  }
  return rank < 2 ? no(Reason::Rank, "linear of one dimension") : input_is(call, 0, {DType::F32});
}

Prepared prepare_nearest(const OpCall& call, const Machine& machine) {
  const Shape& shape = call.input(0).shape;
  const std::vector<int64_t> steps = dense_steps(shape);
  const std::string mode = call.text("nearest_mode", "round_prefer_floor");
  std::vector<std::vector<size_t>> offsets;  // By axis and output place.
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    offsets.push_back(along<size_t>(call, axis, [&](double x, int64_t size) {
      return nearest(mode, x, size) * static_cast<size_t>(steps[axis]);
    }));
  }
  return {.run = [&machine, offsets](Stream&, const KernelArgs& args) {
    const auto* const x = reinterpret_cast<const uint32_t*>(args.inputs[0].host());
    auto* const y = reinterpret_cast<uint32_t*>(args.outputs[0].host());
    if (offsets.empty()) {
      y[0] = x[0];
      return;
    }
    size_t rows = 1;
    for (size_t axis = 0; axis + 1 < offsets.size(); ++axis) rows *= offsets[axis].size();
    const std::vector<size_t>& last = offsets.back();
    machine.pool().ranges(rows, 16384 / (last.size() + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        size_t from = 0;
        size_t rest = row;
        for (size_t axis = offsets.size() - 1; axis-- > 0;) {
          from += offsets[axis][rest % offsets[axis].size()];
          rest /= offsets[axis].size();
        }
        uint32_t* const to = y + row * last.size();
        for (size_t i = 0; i < last.size(); ++i) to[i] = x[from + last[i]];
      }
    });
  }};
}

Between between(double x, int64_t size) {
  const double inside = std::clamp<double>(x, 0, static_cast<double>(size - 1));
  const auto low = static_cast<size_t>(inside);
  return {low, std::min(low + 1, static_cast<size_t>(size - 1)), static_cast<float>(inside - static_cast<double>(low))};
}

// What has no weight counts for nothing, even if it is infinite.
float mixed(float low, float high, float weight) { return weight == 0 ? low : low * (1 - weight) + high * weight; }

Prepared prepare_linear(const OpCall& call, const Machine& machine) {
  const Shape& shape = call.input(0).shape;
  const size_t rank = shape.rank();
  const auto planes = static_cast<size_t>(shape.elements(0, rank - 2));
  const auto h = static_cast<size_t>(shape[rank - 2]);
  const auto w = static_cast<size_t>(shape[rank - 1]);
  return {.run = [&machine, planes, h, w, rows = along<Between>(call, rank - 2, between),
                  columns = along<Between>(call, rank - 1, between)](Stream&, const KernelArgs& args) {
    const auto* const x = reinterpret_cast<const float*>(args.inputs[0].host());
    auto* const y = reinterpret_cast<float*>(args.outputs[0].host());
    machine.pool().ranges(planes * rows.size(), 8192 / (w + columns.size()) + 1, [&](size_t begin, size_t end) {
      float* const line = scratch(0, w);
      for (size_t i = begin; i < end; ++i) {
        const Between& row = rows[i % rows.size()];
        const float* const low = x + (i / rows.size() * h + row.low) * w;
        const float* const high = x + (i / rows.size() * h + row.high) * w;
        for (size_t j = 0; j < w; ++j) line[j] = mixed(low[j], high[j], row.weight);
        float* const to = y + i * columns.size();
        for (size_t j = 0; j < columns.size(); ++j) {
          const Between& c = columns[j];
          to[j] = mixed(line[c.low], line[c.high], c.weight);
        }
      }
    });
  }};
}

Prepared prepare_resize(const OpCall& call, Device& device) {
  return call.text("mode", "nearest") == "nearest" ? prepare_nearest(call, machine_of(device)) : prepare_linear(call, machine_of(device));
}

}  // namespace

void add_resize_kernels(KernelTable& table) {
  table.add("Resize", {.name = "cpu.resize.table", .supports = supports_resize, .prepare = prepare_resize});
}

}  // namespace unmoor::cpu
