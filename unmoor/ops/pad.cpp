#include "unmoor/ops/pad.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

constexpr int64_t largest_pad = int64_t{1} << 48;

// Before and after each axis; negative ones crop.
struct Pads {
  std::vector<int64_t> before, after;
};

// Nothing where the pads or axes are not known.
std::optional<Pads> known_pads(const OpCall& call, size_t rank) {
  const auto pads = constant_integers(call, 1);
  if (!pads) return std::nullopt;
  std::vector<size_t> axes;
  if (call.has(3)) {
    const auto given = constant_integers(call, 3);
    if (!given) return std::nullopt;
    axes = axes_of(call, *given, rank);
  } else {
    for (size_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (pads->size() != 2 * axes.size()) {
    fail(ErrorKind::InvalidModel, title(call), ": ", pads->size(), " pads for ", axes.size(), " axes; two an axis were expected");
  }
  Pads result{std::vector<int64_t>(rank), std::vector<int64_t>(rank)};
  for (size_t i = 0; i < axes.size(); ++i) {
    result.before[axes[i]] = (*pads)[i];
    result.after[axes[i]] = (*pads)[i + axes.size()];
  }
  for (const int64_t pad : *pads) {
    if (pad > largest_pad || pad < -largest_pad)
      fail(ErrorKind::InvalidModel, title(call), ": a pad of ", pad, " makes no sense");
  }
  return result;
}

void check_mode(const OpCall& call) {
  const std::string mode = call.text("mode", "constant");
  for (const char* known : {"constant", "reflect", "edge", "wrap"}) {
    if (mode == known) return;
  }
  fail(ErrorKind::InvalidModel, title(call), ": mode is '", mode, "', not constant, reflect, edge or wrap");
}

std::vector<Type> infer_pad(const OpCall& call) {
  const TensorType& data = call.input(0);
  check_mode(call);
  if (!data.shape.has_rank()) return {data};
  const auto pads = known_pads(call, data.shape.rank());
  if (!pads) return {TensorType{data.dtype, unknown_shape(data.shape.rank())}};
  Shape shape = data.shape;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    const int64_t change = pads->before[axis] + pads->after[axis];
    if (pads->before[axis] == 0 && pads->after[axis] == 0) continue;
    if (shape[axis] < 0) {
      shape.set(axis, Shape::unknown);
    } else if (shape[axis] + change < 0) {
      fail(ErrorKind::InvalidModel, title(call), ": pads ", pads->before[axis], " and ", pads->after[axis],
           " leave nothing of axis ", axis, " of ", data.shape);
    } else {
      shape.set(axis, shape[axis] + change);
    }
  }
  return {TensorType{data.dtype, std::move(shape)}};
}

// For each place along a padded axis, the place in the input it shows; -1 for the constant.
std::vector<int64_t> places_along(const OpCall& call, int64_t dim, int64_t before, int64_t after) {
  const std::string mode = call.text("mode", "constant");
  // What is left after cropping; the pads then grow from there.
  const int64_t first = std::max<int64_t>(-before, 0);
  const int64_t length = dim - first - std::max<int64_t>(-after, 0);
  std::vector<int64_t> places(static_cast<size_t>(dim + before + after), -1);
  if (length <= 0 && mode != "constant" && !places.empty()) {
    fail(ErrorKind::InvalidArgument, title(call), ": an axis without elements cannot be padded in mode ", mode);
  }
  const int64_t period = std::max<int64_t>(2 * (length - 1), 1);
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t at = static_cast<int64_t>(i) - std::max<int64_t>(before, 0);
    if (mode == "edge") {
      at = std::clamp<int64_t>(at, 0, length - 1);
    } else if (mode == "wrap") {
      at = ((at % length) + length) % length;
    } else if (mode == "reflect") {
      at = ((at % period) + period) % period;
      if (at >= length) at = period - at;
    }
    if (at >= 0 && at < length) places[i] = first + at;
  }
  return places;
}

void run_pad(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const OpCall known = with_data(call, in);
  Tensor& result = allocate_inferred(call, in, out, infer_pad);
  const size_t rank = data.shape().rank();
  const Pads pads = *known_pads(known, rank);
  if (const Tensor* value = tensor_at(in, 2)) {
    if (value->elements() != 1)
      fail(ErrorKind::InvalidArgument, title(call), ": constant_value is ", value->type(), ", not a scalar");
    fill(result, *value);
  }
  if (result.elements() == 0) return;  // Then an axis may be 2^40 long.
  std::vector<std::vector<int64_t>> places;
  for (size_t axis = 0; axis < rank; ++axis) {
    places.push_back(places_along(call, data.shape()[axis], pads.before[axis], pads.after[axis]));
  }
  const auto strides = data.shape().strides();
  const ElementCopy copy(data, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    int64_t from = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t place = places[axis][static_cast<size_t>(index[axis])];
      if (place < 0) return;
      from += place * strides[axis];
    }
    copy(from, i);
  });
}

Op pad() {
  Op op;
  op.name = "Pad";
  op.summary = "Grows each axis before and after by a constant, its edge, its mirror image or itself; negative pads crop.";
  op.inputs = {required("data", every_type()), required("pads", {DType::I64}), optional("constant_value", every_type()),
               optional("axes", index_types())};
  op.outputs = {required("output", every_type())};
  op.attributes = {{"mode", std::string("constant")}};
  op.infer = infer_pad;
  op.reference = run_pad;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  op.cases = {
      "T[2,3] i64[4]{0,2,1,0}",
      "T[2,3] i64[4]{0,2,1,0} T[]{7}",
      "T[1,3,4,5] i64[8]{0,0,2,3,0,0,3,2} mode=constant,reflect,edge,wrap",
      "T[3,4] i64[2]{1,2} - i64[1]{-1} mode=constant,reflect,edge,wrap",
      "T[5,6] i64[4]{-1,2,1,-2} mode=constant,reflect,edge,wrap",
      "T[3] i64[2]{7,8} mode=reflect,wrap,edge",
      "T[1] i64[2]{2,2} mode=reflect,wrap",
      "T[0,4] i64[4]{1,0,1,0} T[]{2}",
      "T[] i64[0]{}",
      "T[4,4] i64[4]{0,-2,0,-2}",
      "bool[2,2] i64[4]{1,1,1,1} bool[]{1}",
      "string[2] i64[2]{1,1} string[]{x}",
      "i4[3] i64[2]{1,1}",
      "T[2,3,4] i64[4]{1,0,0,1} - i64[2]{2,0}",
      "T[0,4] i64[4]{0,1099511627776,0,0} mode=constant,edge",
      "T[4] i64[2]{-5,3}",
  };
  return op;
}

}  // namespace

void add_pad_op(OpSet& ops) { ops.add(pad()); }

}  // namespace unmoor
