#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/contrib_attention.h"

// com.microsoft's CropAndResize and Inverse.
namespace unmoor {

namespace {

enum Input : size_t { X, Boxes, Batches, Size };

std::vector<Type> infer_crop(const OpCall& call) {
  require_one_float_dtype(call);
  for (const auto& [i, rank] : {std::pair<size_t, size_t>{X, 4}, {Boxes, 2}, {Batches, 1}, {Size, 1}})
    require_rank(call, i, rank);
  const std::string mode = call.text("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest")
    fail(ErrorKind::InvalidModel, title(call), ": mode is '", mode, "', not bilinear or nearest");
  const Shape x = call.input(X).shape.has_rank() ? call.input(X).shape : unknown_shape(4);
  const Shape boxes = call.input(Boxes).shape.has_rank() ? call.input(Boxes).shape : unknown_shape(2);
  same_dim(call, 4, boxes[1], "the numbers of a box");
  int64_t count = boxes[0];
  if (call.input(Batches).shape.has_rank()) count = same_dim(call, count, call.input(Batches).shape[0], "the number of boxes");
  Shape y{count, x[1], Shape::unknown, Shape::unknown};
  if (const auto size = constant_integers(call, Size)) {
    if (size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1) {
      fail(ErrorKind::InvalidArgument, title(call), ": crop_size is not two numbers of 1 or more");
    }
    y.set(2, (*size)[0]);
    y.set(3, (*size)[1]);
  }
  return {TensorType{call.input(X).dtype, y}};
}

// Where row `at` of `count` of a box from `low` to `high` lies in `size` rows; both ends are corners.
double place(int64_t at, int64_t count, double low, double high, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  if (count == 1) return 0.5 * (low + high) * last;
  return low * last + static_cast<double>(at) * (high - low) * last / static_cast<double>(count - 1);
}

struct Plane {
  const double* values;
  int64_t height, width;

  double at(double y, double x) const { return values[static_cast<int64_t>(y) * width + static_cast<int64_t>(x)]; }
  double sample(double y, double x, bool nearest, double outside) const {
    const bool is_inside = y >= 0 && y <= static_cast<double>(height - 1) && x >= 0 && x <= static_cast<double>(width - 1);
    if (!is_inside) return outside;
    if (nearest) return at(std::round(y), std::round(x));
    const double top = std::floor(y);
    const double left = std::floor(x);
    const auto row = [&](double of) { return at(of, left) + (at(of, std::ceil(x)) - at(of, left)) * (x - left); };
    return row(top) + (row(std::ceil(y)) - row(top)) * (y - top);
  }
};

void run_crop(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& input = in[X].tensor();
  const Shape& shape = input.shape();
  const std::vector<int64_t> crop = integers(in[Size].tensor());
  const std::vector<int64_t> batches = integers(in[Batches].tensor());
  OpCall known{call.node, call.inputs, call.outputs, call.constants};
  known.constants.resize(known.inputs.size());
  known.constants[Size] = &in[Size].tensor();
  Tensor& result = out.allocate(0, std::get<TensorType>(infer_crop(known)[0]));
  const std::vector<double> x = doubles(input);
  const std::vector<double> boxes = doubles(in[Boxes].tensor());
  const bool nearest = call.text("mode", "bilinear") == "nearest";
  const double outside = call.real("extrapolation_value", 0);
  std::vector<double> y;
  y.reserve(result.elements());
  const auto plane = static_cast<size_t>(shape[2] * shape[3]);
  for (size_t i = 0; i < batches.size(); ++i) {
    if (batches[i] < 0 || batches[i] >= shape[0]) {
      fail(ErrorKind::InvalidArgument, title(call), ": batch_indices have ", batches[i], " for ", shape[0], " images");
    }
    const double* const box = boxes.data() + 4 * i;
    for (size_t c = 0; c < static_cast<size_t>(shape[1]); ++c) {
      const Plane from{x.data() + (static_cast<size_t>(batches[i] * shape[1]) + c) * plane, shape[2], shape[3]};
      for (int64_t row = 0; row < crop[0]; ++row) {
        for (int64_t column = 0; column < crop[1]; ++column) {
          y.push_back(from.sample(place(row, crop[0], box[0], box[2], shape[2]), place(column, crop[1], box[1], box[3], shape[3]),
                                  nearest, outside));
        }
      }
    }
  }
  store(result, std::span<const double>(y));
}

// Gauss and Jordan's elimination with the largest pivot. False if there is no inverse.
bool invert(std::span<double> a, size_t n, std::span<double> inverse) {
  for (size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
  const auto swap_rows = [n](std::span<double> m, size_t i, size_t j) {
    for (size_t k = 0; k < n; ++k) std::swap(m[i * n + k], m[j * n + k]);
  };
  for (size_t i = 0; i < n; ++i) {
    size_t best = i;
    for (size_t j = i + 1; j < n; ++j) {
      if (std::fabs(a[j * n + i]) > std::fabs(a[best * n + i])) best = j;
    }
    if (a[best * n + i] == 0) return false;
    swap_rows(a, i, best);
    swap_rows(inverse, i, best);
    const double pivot = a[i * n + i];
    for (size_t k = 0; k < n; ++k) {
      a[i * n + k] /= pivot;
      inverse[i * n + k] /= pivot;
    }
    for (size_t j = 0; j < n; ++j) {
      const double factor = j == i ? 0 : a[j * n + i];
      for (size_t k = 0; factor != 0 && k < n; ++k) {
        a[j * n + k] -= factor * a[i * n + k];
        inverse[j * n + k] -= factor * inverse[i * n + k];
      }
    }
  }
  return true;
}

void run_inverse(const OpCall& call, std::span<const Data> in, Outputs& out) {
  std::vector<double> x = doubles(in[0].tensor());
  const Shape& shape = in[0].tensor().shape();
  const auto n = static_cast<size_t>(shape[shape.rank() - 1]);
  std::vector<double> y(x.size());
  for (size_t at = 0; at < x.size(); at += n * n) {
    if (!invert(std::span(x).subspan(at, n * n), n, std::span(y).subspan(at, n * n))) {
      fail(ErrorKind::InvalidArgument, title(call), ": matrix ", at / (n * n), " has no inverse");
    }
  }
  put(call, out, 0, std::span<const double>(y));
}

}  // namespace

void add_crop_and_inverse(OpSet& ops) {
  Op crop;
  crop.name = "com.microsoft:CropAndResize";
  crop.summary = "Boxes cut out of images and resized, corners on corners.";
  const std::vector<DType> i32{DType::I32};
  crop.inputs = {required("X", float_types()), required("rois", float_types()), required("batch_indices", i32),
                 required("crop_size", i32)};
  crop.outputs = {required("Y", float_types())};
  crop.attributes = {{"mode", std::string("bilinear")}, {"extrapolation_value", 0.0F}};
  crop.infer = infer_crop;
  crop.reference = run_crop;
  crop.cost = cost_per_output(7);
  crop.rounding = Rounding::Sum;
  crop.category = Category::Pooling;
  crop.cases = {
      "T[2,3,5,7]~small T[3,4]{0,0,1,1,0.25,0.5,0.75,1,0,0.125,0.5,0.25} i32[3]{0,1,0} i32[2]{4,6} mode=bilinear,nearest",
      "T[1,2,5,7]~small T[1,4]{0,0,1,1} i32[1]{0} i32[2]{5,7} mode=bilinear,nearest",
      // One row, one column; boxes that are turned round or reach outside.
      "T[1,2,5,7]~small T[2,4]{0.25,0.25,0.75,0.75,0,0,1,1} i32[2]{0,0} i32[2]{1,1} mode=bilinear,nearest",
      "T[1,1,5,7]~small T[1,4]{1,1,0,0} i32[1]{0} i32[2]{3,4} mode=bilinear,nearest",
      "T[1,1,4,4]~small T[1,4]{-0.5,-0.25,1.5,1.25} i32[1]{0} i32[2]{5,5} extrapolation_value=0.0,-7.5",
      "T[1,1,4,4]~small T[1,4]{-0.5,-0.25,1.5,1.25} i32[1]{0} i32[2]{5,5} extrapolation_value=3.0 mode=nearest",
      "T[2,3,1,1]~small T[2,4]{0,0,1,1,0,0,0,0} i32[2]{1,0} i32[2]{2,3}",
      "T[2,3,4,4]~small T[0,4] i32[0] i32[2]{2,3}",
      "T[1,0,4,4] T[1,4]{0,0,1,1} i32[1]{0} i32[2]{2,3}",
      "T[3,2,9,9]~small T[4,4]~unit i32[4]~index:3 i32[2]{7,7}",
      "T[3,2,9,9]~small T[4,4]~unit i32[4]~index:3 i32[2]{7,1} mode=bilinear",
  };
  ops.add(std::move(crop));

  Op inverse;
  inverse.name = "com.microsoft:Inverse";
  inverse.summary = "The inverse of each matrix.";
  inverse.inputs = {required("X", float_types())};
  inverse.outputs = {required("Y", float_types())};
  inverse.infer = [](const OpCall& call) {
    const Shape& x = call.input(0).shape;
    if (x.has_rank() && x.rank() < 2)
      fail(ErrorKind::InvalidModel, title(call), ": the input has shape ", x, ", which is no matrix");
    if (x.has_rank()) same_dim(call, x[x.rank() - 2], x[x.rank() - 1], "the number of rows and columns");
    return like_first(call);
  };
  inverse.reference = run_inverse;
  inverse.cost = [](const OpCall& call) {
    const Shape& x = call.input(0).shape;
    return Cost{x.is_known() ? 2 * elements_or_zero(x) * static_cast<double>(x[x.rank() - 1]) : 0, bytes_moved(call)};
  };
  inverse.rounding = Rounding::Function;
  inverse.category = Category::Matrix;
  inverse.cases = {"T[2,2]{1,2,3,4}",
                   "T[3,3]{0,2,1,1,0,0,3,1,2}",
                   "T[2,2,2]{2,0,0,4,0,1,1,0}",
                   "T[1,1]{4}",
                   "T[3,1,1]~positive",
                   "T[0,2,2]",
                   "T[2,0,0]",
                   "T[1,2,1,2,2]{1,1,0,1,4,7,2,6}",
                   "T[4,4]{4,1,0,0,1,4,1,0,0,1,4,1,0,0,1,4}",
                   "T[2,3,3]{1,0,0,0,2,0,0,0,8,1,2,3,0,1,4,5,6,0}",
                   "f64[5,5]~small"};
  ops.add(std::move(inverse));
}

}  // namespace unmoor
