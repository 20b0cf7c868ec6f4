#include "unmoor/ops/space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

int64_t block_of(const OpCall& call) {
  const int64_t block = call.integer("blocksize", 0);
  if (block < 1 || block > (1 << 20)) fail(ErrorKind::InvalidModel, title(call), ": blocksize is ", block);
  return block;
}

int64_t divided(const OpCall& call, int64_t dim, int64_t divisor) {
  if (dim >= 0 && dim % divisor != 0)
    fail(ErrorKind::InvalidModel, title(call), ": a dimension of ", dim, " is no multiple of ", divisor);
  return dim < 0 ? Shape::unknown : dim / divisor;
}

int64_t multiplied(int64_t dim, int64_t factor) { return dim < 0 ? Shape::unknown : Shape{dim, factor}.elements(); }

// Whether blocks come before channels (depth, column, row) or within them (column, row, depth).
bool depth_first(const OpCall& call) {
  const std::string mode = call.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") fail(ErrorKind::InvalidModel, title(call), ": mode is '", mode, "', not DCR or CRD");
  return mode == "DCR";
}

std::vector<Type> infer_space(const OpCall& call, bool to_space) {
  depth_first(call);
  require_rank(call, 0, 4);
  TensorType type = call.input(0);
  if (!type.shape.has_rank()) return {TensorType{type.dtype, unknown_shape(4)}};
  const int64_t block = block_of(call);
  const Shape from = type.shape;
  type.shape.set(1, to_space ? divided(call, from[1], block * block) : multiplied(from[1], block * block));
  for (const size_t axis : {size_t{2}, size_t{3}}) {
    type.shape.set(axis, to_space ? multiplied(from[axis], block) : divided(call, from[axis], block));
  }
  return {std::move(type)};
}

std::vector<Type> infer_depth_to_space(const OpCall& call) { return infer_space(call, true); }

std::vector<Type> infer_space_to_depth(const OpCall& call) { return infer_space(call, false); }

void run_depth_to_space(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_depth_to_space);
  const int64_t block = block_of(call);
  const bool blocks_first = depth_first(call);
  const auto strides = data.shape().strides();
  const int64_t channels = result.shape()[1];
  const ElementCopy copy(data, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    const int64_t inside = index[2] % block * block + index[3] % block;
    const int64_t channel = blocks_first ? inside * channels + index[1] : index[1] * block * block + inside;
    copy(index[0] * strides[0] + channel * strides[1] + index[2] / block * strides[2] + index[3] / block, i);
  });
}

void run_space_to_depth(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_space_to_depth);
  const int64_t block = block_of(call);
  const auto strides = data.shape().strides();
  const int64_t channels = data.shape()[1];
  const bool blocks_first = depth_first(call);
  const ElementCopy copy(data, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    const int64_t inside = blocks_first ? index[1] / channels : index[1] % (block * block);
    const int64_t channel = blocks_first ? index[1] % channels : index[1] / (block * block);
    copy(index[0] * strides[0] + channel * strides[1] + (index[2] * block + inside / block) * strides[2] + index[3] * block +
             inside % block,
         i);
  });
}

// Reshape, Transpose, Reshape.
void expand_space(GraphBuilder& b, std::vector<int64_t> split, std::vector<int64_t> permutation) {
  const Shape& shape = b.call().output(0).shape;
  const ValueId blocks = b.add("Reshape", {b.input(0), b.ints(std::move(split))}, {{"allowzero", int64_t{1}}});
  const ValueId moved = b.add("Transpose", {blocks}, {{"perm", std::move(permutation)}});
  b.output(0, b.add("Reshape", {moved, b.ints(shape.dims())}, {{"allowzero", int64_t{1}}}));
}

void expand_depth_to_space(GraphBuilder& b) {
  const OpCall& call = b.call();
  const Shape& from = call.input(0).shape;
  const Shape& to = call.output(0).shape;
  if (!to.is_known()) fail(ErrorKind::Unsupported, title(call), ": its shape is not known yet");
  const int64_t block = block_of(call);
  if (depth_first(call)) return expand_space(b, {from[0], block, block, to[1], from[2], from[3]}, {0, 3, 4, 1, 5, 2});
  expand_space(b, {from[0], to[1], block, block, from[2], from[3]}, {0, 1, 4, 2, 5, 3});
}

void expand_space_to_depth(GraphBuilder& b) {
  const OpCall& call = b.call();
  const Shape& from = call.input(0).shape;
  const Shape& to = call.output(0).shape;
  if (!to.is_known()) fail(ErrorKind::Unsupported, title(call), ": its shape is not known yet");
  const int64_t block = block_of(call);
  expand_space(b, {from[0], from[1], to[2], block, to[3], block},
               depth_first(call) ? std::vector<int64_t>{0, 3, 5, 1, 2, 4} : std::vector<int64_t>{0, 1, 3, 5, 2, 4});
}

constexpr int64_t most_points = 100000;       // Of a cell, along an axis.
constexpr int64_t most_axis_points = 1 << 22;  // Of all cells of a region, along an axis.

void check_roi_align(const OpCall& call) {
  const std::string mode = call.text("mode", "avg");
  if (mode != "avg" && mode != "max") fail(ErrorKind::InvalidModel, title(call), ": mode is '", mode, "', not avg or max");
  const std::string coordinates = call.text("coordinate_transformation_mode", "half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    fail(ErrorKind::InvalidModel, title(call), ": coordinate_transformation_mode is '", coordinates,
         "', not half_pixel or output_half_pixel");
  }
  const int64_t ratio = call.integer("sampling_ratio", 0);
  if (ratio > most_points)
    fail(ErrorKind::InvalidModel, title(call), ": sampling_ratio is ", ratio, ", not at most ", most_points);
}

std::vector<Type> infer_roi_align(const OpCall& call) {
  check_roi_align(call);
  require_rank(call, 0, 4);
  require_rank(call, 1, 2);
  require_rank(call, 2, 1);
  if (call.input(1).shape.has_rank()) same_dim(call, call.input(1).shape[1], 4, "the number of corners of a region");
  const int64_t height = call.integer("output_height", 1);
  const int64_t width = call.integer("output_width", 1);
  if (height < 0 || width < 0) fail(ErrorKind::InvalidModel, title(call), ": its output would be ", height, " by ", width);
  Shape shape = unknown_shape(2);
  if (call.input(1).shape.has_rank())
    shape.set(0, same_dim(call, call.input(1).shape[0], call.input(2).shape.has_rank() ? call.input(2).shape[0] : -1,
                          "the number of regions"));
  if (call.input(0).shape.has_rank()) shape.set(1, call.input(0).shape[1]);
  shape.push_back(height);
  shape.push_back(width);
  return {TensorType{call.input(0).dtype, std::move(shape)}};
}

// What the sampling points of a cell take from one element along an axis: the weights' sum, and the least and greatest of them.
struct Share {
  double sum = 0, least = 0, most = 0;
};
struct Footprint {
  std::map<int64_t, Share> shares;  // By element.
  int64_t points = 0;
  bool outside = false;  // Some point lies off the plane, where all is 0.
};

void add_share(Footprint& footprint, int64_t element, double weight) {
  const auto [found, added] = footprint.shares.emplace(element, Share{weight, weight, weight});
  if (added) return;
  Share& share = found->second;
  share = {share.sum + weight, std::min(share.least, weight), std::max(share.most, weight)};
}

// Of cell number `cell`, each `bin` elements long, on an axis of `length` elements.
Footprint footprint_of(double start, double bin, int64_t cell, int64_t points, int64_t length) {
  Footprint footprint;
  footprint.points = points;
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

struct Region {
  double y = 0, x = 0;               // Its corner.
  double bin_y = 0, bin_x = 0;       // The size of a cell of the output.
  int64_t count_y = 0, count_x = 0;  // Sampling points a cell.
};

Region region_of(const OpCall& call, const double* roi, int64_t height, int64_t width) {
  const bool half = call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const double scale = call.real("spatial_scale", 1);
  const double offset = half ? 0.5 : 0;
  Region region{roi[1] * scale - offset, roi[0] * scale - offset, 0, 0, 0, 0};
  double high = roi[3] * scale - offset - region.y;
  double wide = roi[2] * scale - offset - region.x;
  if (!half) {
    high = std::max(high, 1.0);
    wide = std::max(wide, 1.0);
  }
  region.bin_y = high / static_cast<double>(height);
  region.bin_x = wide / static_cast<double>(width);
  const int64_t ratio = call.integer("sampling_ratio", 0);
  const auto points = [&](double bin) -> int64_t {
    if (ratio > 0) return ratio;
    if (!(std::fabs(bin) <= static_cast<double>(most_points)))
      fail(ErrorKind::InvalidArgument, title(call), ": a region of interest makes cells of ", bin, " elements");
    return static_cast<int64_t>(std::ceil(bin));
  };
  region.count_y = points(region.bin_y);
  region.count_x = points(region.bin_x);
  if (height > most_axis_points / std::max<int64_t>(region.count_y, 1) || width > most_axis_points / std::max<int64_t>(region.count_x, 1)) {
    fail(ErrorKind::InvalidArgument, title(call), ": a grid of ", height, " by ", width, " cells with ", region.count_y, " by ", region.count_x,
         " points each is sampled at more than ", most_axis_points, " places along an axis");
  }
  return region;
}

// The mean over the cell's points, or as ONNX has it the largest of their weighted corners. Weights of rows and columns multiply, so a
// cell costs its elements, not its points.
double cell_value(const double* plane, int64_t width, const Footprint& rows, const Footprint& columns, bool maximum) {
  double sum = 0;
  double largest = -std::numeric_limits<double>::infinity();
  if (rows.points > 0 && columns.points > 0 && (rows.outside || columns.outside)) largest = 0;
  for (const auto& [row, y] : rows.shares) {
    for (const auto& [column, x] : columns.shares) {
      const double value = plane[row * width + column];
      sum += y.sum * x.sum * value;
      largest = std::max(largest, value >= 0 ? y.most * x.most * value : y.least * x.least * value);
    }
  }
  const double count = static_cast<double>(rows.points) * static_cast<double>(columns.points);
  return maximum ? (std::isinf(largest) ? 0 : largest) : sum / std::max(count, 1.0);
}

void run_roi_align(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape& shape = in[0].tensor().shape();
  const auto values = doubles(in[0].tensor());
  const auto rois = doubles(in[1].tensor());
  const auto batches = integers(in[2].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_roi_align);
  if (result.elements() == 0) return;
  if (values.empty()) fail(ErrorKind::InvalidArgument, title(call), ": shape ", shape, " has nothing to sample");
  const bool maximum = call.text("mode", "avg") == "max";
  const int64_t height = result.shape()[2];
  const int64_t width = result.shape()[3];
  std::vector<double> results;
  for (size_t roi = 0; roi < batches.size(); ++roi) {
    if (batches[roi] < 0 || batches[roi] >= shape[0])
      fail(ErrorKind::InvalidArgument, title(call), ": batch index ", batches[roi], " is outside of [0,", shape[0], ")");
    const Region region = region_of(call, rois.data() + roi * 4, height, width);
    std::vector<Footprint> rows;
    std::vector<Footprint> columns;
    for (int64_t i = 0; i < height; ++i) rows.push_back(footprint_of(region.y, region.bin_y, i, region.count_y, shape[2]));
    for (int64_t i = 0; i < width; ++i) columns.push_back(footprint_of(region.x, region.bin_x, i, region.count_x, shape[3]));
    for (int64_t channel = 0; channel < shape[1]; ++channel) {
      const double* const plane = values.data() + (batches[roi] * shape[1] + channel) * shape[2] * shape[3];
      for (const Footprint& row : rows) {
        for (const Footprint& column : columns) results.push_back(cell_value(plane, shape[3], row, column, maximum));
      }
    }
  }
  store(result, std::span<const double>(results));
}

Op depth_to_space() {
  Op op = moving_op("DepthToSpace", "Blocks of channels become blocks of pixels.");
  op.attributes = {{"mode", std::string("DCR")}};
  op.infer = infer_depth_to_space;
  op.reference = run_depth_to_space;
  op.expand = expand_depth_to_space;
  op.cases = {"T[1,8,2,3] blocksize=2 mode=DCR,CRD", "T[2,18,1,2] blocksize=3 mode=DCR,CRD", "T[1,4,0,2] blocksize=2",
              "T[1,3,2,2] blocksize=1"};
  return op;
}

Op space_to_depth() {
  Op op = moving_op("SpaceToDepth", "Blocks of pixels become blocks of channels.");
  op.attributes = {{"mode", std::string("DCR")}};
  op.infer = infer_space_to_depth;
  op.reference = run_space_to_depth;
  op.expand = expand_space_to_depth;
  op.cases = {"T[1,2,4,6] blocksize=2 mode=DCR,CRD", "T[2,1,3,3] blocksize=3", "T[1,1,0,2] blocksize=2",
              "T[1,3,2,2] blocksize=1"};
  return op;
}

Op roi_align() {
  Op op;
  op.name = "RoiAlign";
  op.summary = "Each region of interest averaged, or its maximum, over a grid of cells of interpolated points.";
  op.inputs = {required("X", float_types()), required("rois", float_types()), required("batch_indices", {DType::I64})};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"coordinate_transformation_mode", std::string("half_pixel")},
                   {"mode", std::string("avg")},
                   {"output_height", int64_t{1}},
                   {"output_width", int64_t{1}},
                   {"sampling_ratio", int64_t{0}},
                   {"spatial_scale", 1.0F}};
  op.infer = infer_roi_align;
  op.reference = run_roi_align;
  op.cost = cost_per_output(32);
  op.rounding = Rounding::Sum;
  op.category = Category::Other;
  op.cases = {
      "T[2,2,8,8]~small T[3,4]{0,0,7,7,1,2,5,4,3,3,3.5,9} i64[3]{0,1,0} output_height=3 output_width=2 mode=avg,max "
      "coordinate_transformation_mode=half_pixel,output_half_pixel",
      "T[1,2,6,6]~small T[1,4]{0,0,20,20} i64[1]{0} output_height=2 output_width=2 sampling_ratio=2 spatial_scale=0.25",
      "T[1,2,6,6]~small T[3,4]{5,4,1,1,-3,-3,2,9,0,0,60000,60000} i64[3]{0,0,0} output_height=2 output_width=1 mode=avg,max "
      "coordinate_transformation_mode=half_pixel,output_half_pixel",
      "T[1,2,6,6] T[0,4] i64[0]{}"};
  return op;
}

}  // namespace

void add_space_ops(OpSet& ops) {
  ops.add(depth_to_space());
  ops.add(space_to_depth());
  ops.add(roi_align());
}

}  // namespace unmoor
