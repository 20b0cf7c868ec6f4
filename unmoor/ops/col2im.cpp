#include "unmoor/base/error.h"
#include "unmoor/ops/convolve.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/vision.h"

namespace unmoor {
namespace {

// The number of spatial axes, as far as the inputs and attributes tell.
std::optional<size_t> spatial_rank(const OpCall& call) {
  std::optional<size_t> rank;
  const auto learn = [&](std::optional<size_t> found, std::string_view what) {
    if (found && rank && *found != *rank) {
      fail(ErrorKind::InvalidModel, title(call), ": ", what, " is about ", *found, " axes, not ", *rank);
    }
    if (found) rank = found;
  };
  learn(length_of(call, 1), "image_shape");
  learn(length_of(call, 2), "block_shape");
  for (const char* key : {"strides", "dilations"}) {
    if (const size_t count = call.integers(key).size(); count > 0) learn(count, key);
  }
  if (const size_t count = call.integers("pads").size(); count > 0) learn(count / 2, "pads");
  return rank;
}

// Where they are known.
std::optional<std::vector<int64_t>> sizes_of(const OpCall& call, size_t i) {
  auto sizes = constant_integers(call, i);
  for (size_t axis = 0; sizes && axis < sizes->size(); ++axis) {
    if ((*sizes)[axis] < 1) fail(ErrorKind::InvalidModel, title(call), ": an image or block of size ", (*sizes)[axis], " makes no sense");
  }
  return sizes;
}

std::vector<Type> infer_col2im(const OpCall& call) {
  const TensorType& x = call.input(0);
  require_rank(call, 0, 3);
  const auto rank = spatial_rank(call);
  if (!rank) return {TensorType{x.dtype, Shape::of_unknown_rank()}};
  if (*rank == 0) fail(ErrorKind::InvalidModel, title(call), ": the image has no axes");
  Shape shape = unknown_shape(*rank + 2);
  const auto image = sizes_of(call, 1);
  const auto block = sizes_of(call, 2);
  for (size_t axis = 0; image && axis < *rank; ++axis) shape.set(axis + 2, (*image)[axis]);
  if (image && block) {
    const Window window = window_of(call, *image, *block);  // Its outputs count the blocks.
    if (x.shape.has_rank()) same_dim(call, x.shape[2], Shape(window.output).elements(), "the number of blocks");
  }
  if (!x.shape.has_rank()) return {TensorType{x.dtype, std::move(shape)}};
  Shape result;
  result.push_back(x.shape, 0);
  const int64_t taps = block ? Shape(*block).elements() : 0;
  if (taps > 0 && x.shape[1] >= 0 && x.shape[1] % taps != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": ", x.shape[1], " rows do not hold blocks of ", taps, " elements");
  }
  result.push_back(taps > 0 && x.shape[1] >= 0 ? x.shape[1] / taps : Shape::unknown);
  for (size_t axis = 0; axis < *rank; ++axis) result.push_back(shape[axis + 2]);
  return {TensorType{x.dtype, std::move(result)}};
}

// Adds the columns [planes, taps, blocks, parts] up to images [planes, …, parts].
template <class T>
std::vector<T> folded(const Window& window, size_t planes, const std::vector<T>& columns, size_t parts) {
  const auto size = static_cast<size_t>(Shape(window.input).elements());
  const auto taps = static_cast<size_t>(Shape(window.kernel).elements());
  const int64_t blocks = Shape(window.output).elements();
  const auto count = static_cast<size_t>(blocks);
  std::vector<T> images(planes * size * parts);
  if (columns.empty()) return images;
  TapOffsets offsets(window, 0, blocks);
  std::vector<int64_t> index(window.rank());
  for (size_t tap = 0; tap < taps; ++tap, advance(index, window.kernel)) {
    const std::vector<int64_t>& to = offsets.at(index);
    for (size_t plane = 0; plane < planes; ++plane) {
      for (size_t i = 0; i < count; ++i) {
        if (to[i] < 0) continue;
        for (size_t part = 0; part < parts; ++part) {
          images[(plane * size + static_cast<size_t>(to[i])) * parts + part] +=
              columns[((plane * taps + tap) * count + i) * parts + part];
        }
      }
    }
  }
  return images;
}

// A complex tensor's real and imaginary parts as numbers.
TensorType parts_type(const Tensor& tensor) {
  return {tensor.dtype() == DType::C64 ? DType::F32 : DType::F64, Shape{2 * tensor.shape().elements()}};
}

void run_col2im(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_col2im);
  const Window window = window_of(call, integers_at(in, 1), integers_at(in, 2));
  const auto planes = static_cast<size_t>(result.shape().elements(0, 2));
  if (x.dtype() == DType::C64 || x.dtype() == DType::C128) {
    const Tensor numbers = Tensor::view(parts_type(x), x.bytes(), nullptr);
    const auto images = folded(window, planes, doubles(numbers), 2);
    Tensor parts(parts_type(result));
    store(parts, std::span<const double>(images));
    std::ranges::copy(parts.bytes(), result.writable_bytes().begin());
  } else if (is_float(x.dtype())) {
    write_as<double>(result, folded(window, planes, doubles(x), 1));
  } else {
    write_as<uint64_t>(result, folded(window, planes, read_as<uint64_t>(x), 1));  // Wraps, as the dtype does.
  }
}

std::vector<DType> summed_types() {
  std::vector<DType> types = plain_types();
  types.insert(types.end(), {DType::C64, DType::C128});
  return types;
}

}  // namespace

void add_col2im(OpSet& ops) {
  Op op;
  op.name = "Col2Im";
  op.summary = "Puts columns back where blocks of an image were, and adds where blocks overlap.";
  op.inputs = {required("input", summed_types()), required("image_shape", {DType::I64}), required("block_shape", {DType::I64})};
  op.outputs = {required("output", summed_types())};
  op.attributes = {{"dilations", std::vector<int64_t>()}, {"pads", std::vector<int64_t>()}, {"strides", std::vector<int64_t>()}};
  op.infer = infer_col2im;
  op.reference = run_col2im;
  op.cost = cost_per_input(1);
  op.rounding = Rounding::Sum;
  op.category = Category::Layout;
  op.cases = {"T[1,5,5]~small i64[2]{5,5} i64[2]{1,5}",
              "T[2,18,16]~small i64[2]{6,6} i64[2]{3,3}",
              "T[1,9,4]~small i64[2]{5,5} i64[2]{3,3} strides=[2,2]",
              "T[1,5,15]~small i64[2]{5,5} i64[2]{1,5} pads=[0,1,0,1]",
              "T[1,4,5]~small i64[2]{6,6} i64[2]{2,2} dilations=[1,5]",
              "T[2,12,16]~small i64[2]{4,3} i64[2]{2,2} pads=[1,0,0,2] strides=[1,1]",
              "T[1,10,12]~small i64[3]{3,4,5} i64[3]{1,1,5}",
              "T[2,6,3]~small i64[1]{5} i64[1]{3}",
              "T[1,4,4]~small i64[2]{5,5} i64[2]{2,2} strides=[3,3]",
              "T[0,4,16] i64[2]{5,5} i64[2]{2,2}",
              "T[2,0,16] i64[2]{5,5} i64[2]{2,2}",
              "bool[1,4,4] i64[2]{3,3} i64[2]{2,2}",
              "c64[1,4,4] i64[2]{3,3} i64[2]{2,2}"};
  ops.add(std::move(op));
}

}  // namespace unmoor
