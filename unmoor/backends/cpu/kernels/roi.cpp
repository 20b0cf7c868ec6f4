#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

namespace {

constexpr int64_t most_points = 100000;        // Of a cell, along an axis.
constexpr int64_t most_axis_points = 1 << 22;  // Of all cells of a region, along an axis.

struct Align {
  std::string who;
  size_t regions, channels;
  int64_t batch, height, width;  // Of the input.
  int64_t rows, columns;         // Of the cells.
  int64_t ratio;
  double scale;
  bool half, maximum;
};

// What the sampling points of a cell take from one element along an axis: the weights' sum, and the least and greatest of them.
struct Share {
  size_t element;
  double sum, least, most;
};

// Of one cell. Weights of rows and columns multiply, so a cell costs its elements, not its points.
struct Footprint {
  std::vector<Share> shares;
  bool outside = false;  // Some point lies off the plane, where all is 0.
};

struct AxisCells {
  int64_t points = 0;  // Of each cell.
  std::vector<Footprint> cells;
};

// Points go one way along the axis, so an element that was there before is among the last.
void add_share(Footprint& footprint, int64_t at, double weight) {
  const auto element = static_cast<size_t>(at);
  std::vector<Share>& shares = footprint.shares;
  for (size_t i = shares.size(); i-- > 0 && i + 3 >= shares.size();) {
    Share& share = shares[i];
    if (share.element != element) continue;
    share = {element, share.sum + weight, std::min(share.least, weight), std::max(share.most, weight)};
    return;
  }
  shares.push_back({element, weight, weight, weight});
}

Footprint footprint_of(double start, double bin, int64_t cell, int64_t points, int64_t length) {
  Footprint footprint;
  const auto last = static_cast<double>(length - 1);
  for (int64_t i = 0; i < points; ++i) {
    const double place = start + bin * (static_cast<double>(cell) + (static_cast<double>(i) + 0.5) / static_cast<double>(points));
    if (!(place >= -1 && place <= last + 1)) {
      footprint.outside = true;
      continue;
    }
    const double inside = std::clamp(place, 0.0, last);
    const auto low = static_cast<int64_t>(inside);
    const double part = inside - static_cast<double>(low);
    add_share(footprint, low, 1 - part);
    add_share(footprint, std::min(low + 1, length - 1), part);
  }
  return footprint;
}

AxisCells axis_cells(const Align& a, double from, double to, int64_t cells, int64_t length) {
  const double offset = a.half ? 0.5 : 0;
  const double start = from * a.scale - offset;
  double size = to * a.scale - offset - start;
  if (!a.half) size = std::max(size, 1.0);
  const double bin = size / static_cast<double>(cells);
  if (a.ratio <= 0 && !(std::fabs(bin) <= static_cast<double>(most_points))) {
    fail(ErrorKind::InvalidArgument, a.who, ": a region of interest makes cells of ", bin, " elements");
  }
  AxisCells axis;
  axis.points = a.ratio > 0 ? a.ratio : std::max<int64_t>(static_cast<int64_t>(std::ceil(bin)), 0);
  if (cells > most_axis_points / std::max<int64_t>(axis.points, 1)) {
    fail(ErrorKind::InvalidArgument, a.who, ": ", cells, " cells with ", axis.points, " points each are sampled at more than ",
         most_axis_points, " places along an axis");
  }
  for (int64_t cell = 0; cell < cells; ++cell) axis.cells.push_back(footprint_of(start, bin, cell, axis.points, length));
  return axis;
}

// The mean over a cell's points, or as ONNX has it the largest of their weighted corners.
float cell_value(const Align& a, const float* plane, const Footprint& rows, const Footprint& columns, double points) {
  double sum = 0;
  double largest = points > 0 && (rows.outside || columns.outside) ? 0 : -std::numeric_limits<double>::infinity();
  for (const Share& y : rows.shares) {
    const float* const row = plane + y.element * static_cast<size_t>(a.width);
    for (const Share& x : columns.shares) {
      const auto value = static_cast<double>(row[x.element]);
      sum += y.sum * x.sum * value;
      largest = std::max(largest, value >= 0 ? y.most * x.most * value : y.least * x.least * value);
    }
  }
  if (a.maximum) return std::isinf(largest) ? 0.0F : static_cast<float>(largest);
  return static_cast<float>(sum / std::max(points, 1.0));
}

void align_region(const Align& a, const KernelArgs& args, size_t region) {
  const float* const roi = input_as(args, 1) + region * 4;
  const int64_t item = input_as<int64_t>(args, 2)[region];
  if (item < 0 || item >= a.batch)
    fail(ErrorKind::InvalidArgument, a.who, ": batch index ", item, " is outside of [0,", a.batch, ")");
  const auto at = [roi](size_t i) { return static_cast<double>(roi[i]); };
  const AxisCells rows = axis_cells(a, at(1), at(3), a.rows, a.height);
  const AxisCells columns = axis_cells(a, at(0), at(2), a.columns, a.width);
  const double points = static_cast<double>(rows.points) * static_cast<double>(columns.points);
  const auto cells = static_cast<size_t>(a.rows * a.columns);
  const auto across = static_cast<size_t>(a.columns);
  for (size_t c = 0; c < a.channels; ++c) {
    const float* const plane =
        input_as(args, 0) + (static_cast<size_t>(item) * a.channels + c) * static_cast<size_t>(a.height * a.width);
    float* const y = output_as(args, 0) + (region * a.channels + c) * cells;
    for (size_t i = 0; i < cells; ++i) y[i] = cell_value(a, plane, rows.cells[i / across], columns.cells[i % across], points);
  }
}

Support supports_align(const OpCall& call) {
  if (Support types = all_of(input_is(call, 0, {DType::F32}), input_is(call, 1, {DType::F32})); !types) return types;
  const Shape& shape = call.input(0).shape;
  return shape.elements() == 0 || call.output(0).shape.elements() == 0 ? no(Reason::Size, "an empty input") : yes();
}

Prepared prepare_align(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  Align align{.who = title(call),
              .regions = static_cast<size_t>(call.input(1).shape[0]),
              .channels = static_cast<size_t>(shape[1]),
              .batch = shape[0],
              .height = shape[2],
              .width = shape[3],
              .rows = call.output(0).shape[2],
              .columns = call.output(0).shape[3],
              .ratio = call.integer("sampling_ratio", 0),
              .scale = call.real("spatial_scale", 1),
              .half = call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel",
              .maximum = call.text("mode", "avg") == "max"};
  return {.run = [&machine = machine_of(device), align = std::move(align)](Stream&, const KernelArgs& args) {
    machine.pool().each(align.regions, [&](size_t region) { align_region(align, args, region); });
  }};
}

struct MaxPool {
  std::string who;
  size_t regions, channels;
  int64_t batch, height, width;
  std::array<int64_t, 2> bins;
  double scale;
};

// A corner in pixels: scaled and rounded, halves away from zero, as Fast R-CNN (Girshick 2015) does.
int64_t pixel(const MaxPool& pool, float coordinate) {
  const double scaled = std::round(static_cast<double>(coordinate) * pool.scale);
  if (!(std::fabs(scaled) < 0x1p31)) {
    fail(ErrorKind::InvalidArgument, pool.who, ": a region has the coordinate ", coordinate, ", scaled by ", pool.scale);
  }
  return static_cast<int64_t>(scaled);
}

struct Range {
  int64_t begin, end;
};
Range bin_range(int64_t first, int64_t last, int64_t bin, int64_t bins, int64_t limit) {
  const int64_t length = std::max<int64_t>(last - first + 1, 1);
  return {std::clamp<int64_t>(first + bin * length / bins, 0, limit),
          std::clamp<int64_t>(first + ((bin + 1) * length + bins - 1) / bins, 0, limit)};
}

// The greatest element, NaN before all; 0 of none.
float greatest(const float* plane, Range rows, Range columns, int64_t width) {
  if (rows.begin >= rows.end || columns.begin >= columns.end) return 0;
  float best = -std::numeric_limits<float>::infinity();
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      const float value = plane[y * width + x];
      if (value > best || std::isnan(value)) best = std::isnan(best) ? best : value;
    }
  }
  return best;
}

void pool_region(const MaxPool& p, const KernelArgs& args, size_t region) {
  const float* const roi = input_as(args, 1) + region * 5;
  const auto item = static_cast<double>(roi[0]);
  if (!(item >= 0 && item < static_cast<double>(p.batch)) || item != std::floor(item)) {
    fail(ErrorKind::InvalidArgument, p.who, ": a region is of item ", item, " of a batch of ", p.batch);
  }
  std::array<int64_t, 4> corners{};
  for (size_t i = 0; i < 4; ++i) corners[i] = pixel(p, roi[1 + i]);
  float* y = output_as(args, 0) + region * p.channels * static_cast<size_t>(p.bins[0] * p.bins[1]);
  for (size_t c = 0; c < p.channels; ++c) {
    const float* const plane =
        input_as(args, 0) + (static_cast<size_t>(item) * p.channels + c) * static_cast<size_t>(p.height * p.width);
    for (int64_t row = 0; row < p.bins[0]; ++row) {
      const Range rows = bin_range(corners[1], corners[3], row, p.bins[0], p.height);
      for (int64_t column = 0; column < p.bins[1]; ++column) {
        *y++ = greatest(plane, rows, bin_range(corners[0], corners[2], column, p.bins[1], p.width), p.width);
      }
    }
  }
}

Prepared prepare_max_pool(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  MaxPool pool{title(call), static_cast<size_t>(call.input(1).shape[0]),        static_cast<size_t>(shape[1]), shape[0], shape[2],
               shape[3],    {call.output(0).shape[2], call.output(0).shape[3]}, call.real("spatial_scale", 1)};
  return {.run = [&machine = machine_of(device), pool = std::move(pool)](Stream&, const KernelArgs& args) {
    machine.pool().each(pool.regions, [&](size_t region) { pool_region(pool, args, region); });
  }};
}

}  // namespace

void add_roi_kernels(KernelTable& table) {
  table.add("RoiAlign", {.name = "cpu.roialign.regions", .supports = supports_align, .prepare = prepare_align});
  table.add("MaxRoiPool", {.name = "cpu.maxroipool.regions",
                           .supports = [](const OpCall& call) { return inputs_are(call, {DType::F32}); },
                           .prepare = prepare_max_pool});
}

}  // namespace unmoor::cpu
