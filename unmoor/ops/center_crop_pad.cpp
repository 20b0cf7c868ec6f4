#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/vision.h"

namespace unmoor {
namespace {

// The axes whose sizes the second input gives.
std::vector<size_t> sized_axes(const OpCall& call, size_t rank) {
  if (call.has_attribute("axes")) return axes_of(call, call.integers("axes"), rank);
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), size_t{0});
  return axes;
}

std::vector<Type> infer_center(const OpCall& call) {
  const TensorType& data = call.input(0);
  const auto count = length_of(call, 1);
  if (!data.shape.has_rank()) return {data};
  const auto axes = sized_axes(call, data.shape.rank());
  if (count && *count != axes.size()) {
    fail(ErrorKind::InvalidModel, title(call), ": ", *count, " sizes were given for ", axes.size(), " axes");
  }
  const auto sizes = constant_integers(call, 1);
  Shape shape = data.shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes && (*sizes)[i] < 0) fail(ErrorKind::InvalidModel, title(call), ": a size of ", (*sizes)[i], " makes no sense");
    shape.set(axes[i], sizes ? (*sizes)[i] : Shape::unknown);
  }
  return {TensorType{data.dtype, std::move(shape)}};
}

void run_center(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_center);
  std::vector<int64_t> skipped;  // By axis: elements cut off in front; negative where it is padded. Halves go toward zero.
  for (size_t axis = 0; axis < data.shape().rank(); ++axis) {
    skipped.push_back((data.shape()[axis] - result.shape()[axis]) / 2);
  }
  const auto strides = data.shape().strides();
  const ElementCopy copy(data, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    int64_t from = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      const int64_t at = index[axis] + skipped[axis];
      if (at < 0 || at >= data.shape()[axis]) return;
      from += at * strides[axis];
    }
    copy(from, i);
  });
}

// A Pad of the axes that grow, then a Slice of those that shrink.
void expand_center(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  const Shape from = call.input(0).shape;
  const Shape to = call.output(0).shape;
  if (!from.is_known() || !to.is_known()) {
    fail(ErrorKind::Unsupported, title(call), " can only be expanded if its shapes are known; they are ", from, " and ", to);
  }
  std::vector<int64_t> before, after, grown, starts, ends, shrunk;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    const int64_t difference = to[axis] - from[axis];
    if (difference > 0) {
      before.push_back(difference / 2);
      after.push_back(difference - difference / 2);
      grown.push_back(static_cast<int64_t>(axis));
    } else if (difference < 0) {
      starts.push_back(-difference / 2);
      ends.push_back(starts.back() + to[axis]);
      shrunk.push_back(static_cast<int64_t>(axis));
    }
  }
  ValueId value = builder.add("Identity", {builder.input(0)});
  if (!grown.empty()) {
    before.insert(before.end(), after.begin(), after.end());
    value = builder.add("Pad", {value, builder.ints(before), no_value, builder.ints(grown)});
  }
  if (!shrunk.empty()) {
    value = builder.add("Slice", {value, builder.ints(starts), builder.ints(ends), builder.ints(shrunk)});
  }
  builder.output(0, value);
}

}  // namespace

void add_center_crop_pad(OpSet& ops) {
  Op op;
  op.name = "CenterCropPad";
  op.summary = "Cuts axes around their middle, or pads them with zeros on both sides, to given sizes.";
  op.inputs = {required("input_data", every_type()), required("shape", index_types())};
  op.outputs = {required("output_data", every_type())};
  op.attributes = {{"axes", std::vector<int64_t>()}};
  op.infer = infer_center;
  op.reference = run_center;
  op.expand = expand_center;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  op.cases = {"T[20,10,3] i64[3]{10,7,3}",
              "T[10,7,3] i64[3]{20,10,3}",
              "T[20,8,3] i64[3]{10,10,3}",
              "T[5,4] i64[2]{2,7}",
              "T[4,5] i64[2]{7,2}",
              "T[20,8,3] i64[2]{10,9} axes=[1,0],[-3,-1]",
              "T[2,3,7,9] i32[2]{4,12} axes=[2,3]",
              "T[2,3] i64[0]{} axes=[]",
              "T[] i64[0]{}",
              "T[0,3] i64[2]{2,5}",
              "T[4,3] i64[2]{0,3}",
              "T[1,1] i64[2]{1,1}",
              "bool[3,3] i64[2]{2,4}",
              "string[3] i64[1]{5}",
              "string[4] i64[1]{1}",
              "i4[3,3] i64[2]{2,5}"};
  ops.add(std::move(op));
}

}  // namespace unmoor
