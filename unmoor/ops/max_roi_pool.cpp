#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/vision.h"

namespace unmoor {
namespace {

// Height and width of what each region becomes.
std::array<int64_t, 2> pooled_size(const OpCall& call) {
  const auto sizes = call.integers("pooled_shape");
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1 || std::max(sizes[0], sizes[1]) > std::numeric_limits<int32_t>::max()) {
    fail(ErrorKind::InvalidModel, title(call), ": pooled_shape is not a height and a width of 1 or more");
  }
  return {sizes[0], sizes[1]};
}

std::vector<Type> infer_roi_pool(const OpCall& call) {
  require_rank(call, 0, 4);
  require_rank(call, 1, 2);
  const Shape& x = call.input(0).shape;
  const Shape& regions = call.input(1).shape;
  const auto size = pooled_size(call);
  if (regions.has_rank()) same_dim(call, regions[1], 5, "the numbers of a region");
  Shape shape;
  shape.push_back(regions.has_rank() ? regions[0] : Shape::unknown);
  shape.push_back(x.has_rank() ? x[1] : Shape::unknown);
  for (const int64_t dim : size) shape.push_back(dim);
  return {TensorType{call.input(0).dtype, std::move(shape)}};
}

// A corner in pixels: scaled and rounded, halves away from zero, as Fast R-CNN (Girshick 2015) does.
int64_t pixel(const OpCall& call, double coordinate, double scale) {
  const double scaled = std::round(coordinate * scale);
  if (!(std::fabs(scaled) < 0x1p31)) {
    fail(ErrorKind::InvalidArgument, title(call), ": a region has the coordinate ", coordinate, ", scaled by ", scale);
  }
  return static_cast<int64_t>(scaled);
}

// The pixels of one axis that a bin covers, cut to the image.
struct Range {
  int64_t begin = 0, end = 0;
};
Range bin_range(int64_t first, int64_t last, int64_t bin, int64_t bins, int64_t limit) {
  const int64_t length = std::max<int64_t>(last - first + 1, 1);
  const int64_t begin = bin * length / bins;
  const int64_t end = ((bin + 1) * length + bins - 1) / bins;
  return {std::clamp<int64_t>(first + begin, 0, limit), std::clamp<int64_t>(first + end, 0, limit)};
}

// The greatest element, NaN before all; 0 of none.
double greatest(const double* plane, Range rows, Range columns, int64_t width) {
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      const double value = plane[y * width + x];
      if (value > best || std::isnan(value)) best = std::isnan(best) ? best : value;
    }
  }
  return rows.begin >= rows.end || columns.begin >= columns.end ? 0 : best;
}

void run_roi_pool(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape shape = in[0].tensor().shape();
  const auto x = doubles(in[0].tensor());
  const auto regions = doubles(in[1].tensor());
  const double scale = call.real("spatial_scale", 1);
  const auto [bins_y, bins_x] = pooled_size(call);
  Tensor& result = allocate_inferred(call, in, out, infer_roi_pool);
  std::vector<double> y(result.elements());
  size_t next = 0;
  for (size_t at = 0; at + 5 <= regions.size(); at += 5) {
    const double item = regions[at];
    if (!(item >= 0 && item < static_cast<double>(shape[0])) || item != std::floor(item)) {
      fail(ErrorKind::InvalidArgument, title(call), ": a region is of item ", item, " of a batch of ", shape[0]);
    }
    std::array<int64_t, 4> corners{};
    for (size_t i = 0; i < 4; ++i) corners[i] = pixel(call, regions[at + 1 + i], scale);
    for (int64_t c = 0; c < shape[1]; ++c) {
      const double* const plane = x.data() + (static_cast<int64_t>(item) * shape[1] + c) * shape[2] * shape[3];
      for (int64_t row = 0; row < bins_y; ++row) {
        const Range rows = bin_range(corners[1], corners[3], row, bins_y, shape[2]);
        for (int64_t column = 0; column < bins_x; ++column) {
          y[next++] = greatest(plane, rows, bin_range(corners[0], corners[2], column, bins_x, shape[3]), shape[3]);
        }
      }
    }
  }
  store(result, std::span<const double>(y));
}

}  // namespace

void add_max_roi_pool(OpSet& ops) {
  Op op;
  op.name = "MaxRoiPool";
  op.summary = "The greatest elements of a grid of bins in each region of interest [item, x1, y1, x2, y2].";
  op.inputs = {required("X", float_types()), required("rois", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"pooled_shape", std::vector<int64_t>()}, {"spatial_scale", 1.0F}};
  op.infer = infer_roi_pool;
  op.reference = run_roi_pool;
  op.cost = cost_per_output(4);
  op.rounding = Rounding::MoveBits;
  op.category = Category::Pooling;
  op.cases = {"T[1,1,6,6] T[1,5]{0,0,0,5,5} pooled_shape=[2,2],[1,1],[3,2],[7,5]",
              "T[2,3,8,7] T[3,5]{0,1,1,6,5,1,0,0,7,7,1,2,3,2,3} pooled_shape=[2,3]",
              "T[1,2,6,6] T[2,5]{0,0,0,11,11,0,2,4,9,10} pooled_shape=[2,2] spatial_scale=0.5",
              "f32[1,2,9,9] f32[1,5]{0,0.5,1.5,6.4,7.6} pooled_shape=[3,3]",
              "T[1,1,4,4] T[2,5]{0,-3,-3,1,1,0,2,2,9,9} pooled_shape=[2,2]",
              "T[1,1,4,4] T[1,5]{0,10,10,12,12} pooled_shape=[2,2]",
              "T[1,1,4,4] T[1,5]{0,3,3,1,1} pooled_shape=[2,2]",
              "T[2,3,4,4] T[0,5] pooled_shape=[2,2]",
              "T[1,0,4,4] T[1,5]{0,0,0,1,1} pooled_shape=[2,2]",
              "T[1,1,0,4] T[1,5]{0,0,0,1,1} pooled_shape=[1,2]",
              "f32[1,1,2,2]{nan,1,2,3} f32[1,5]{0,0,0,1,1} pooled_shape=[1,2]"};
  ops.add(std::move(op));
}

}  // namespace unmoor
