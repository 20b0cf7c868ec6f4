#include <algorithm>
#include <cmath>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/selection.h"

namespace unmoor {
namespace {

// Compares elements of one tensor by place. NaN is above every number and equal to itself.
class ElementOrder {
 public:
  explicit ElementOrder(const Tensor& tensor) {
    if (tensor.dtype() == DType::String) {
      strings_ = tensor.strings();
    } else if (is_float(tensor.dtype())) {
      floats_ = doubles(tensor);
    } else {
      integers_ = integers(tensor);
      if (tensor.dtype() == DType::U64) {  // Keeps their order as signed numbers.
        for (int64_t& value : integers_) value = static_cast<int64_t>(static_cast<uint64_t>(value) ^ (uint64_t{1} << 63));
      }
    }
  }

  // Negative, zero or positive as element a is before, equal to or after b.
  int compare(size_t a, size_t b) const {
    if (!strings_.empty()) return strings_[a].compare(strings_[b]);
    if (!integers_.empty()) return sign(integers_[a], integers_[b]);
    const bool a_nan = std::isnan(floats_[a]);
    const bool b_nan = std::isnan(floats_[b]);
    if (a_nan || b_nan) return sign(a_nan ? 1 : 0, b_nan ? 1 : 0);
    return sign(floats_[a], floats_[b]);
  }

 private:
  template <class T>
  static int sign(T a, T b) {
    return a < b ? -1 : b < a ? 1 : 0;
  }

  std::vector<double> floats_;
  std::vector<int64_t> integers_;
  std::vector<std::string> strings_;
};

std::vector<Type> infer_top_k(const OpCall& call) {
  TensorType values = call.input(0);
  if (values.shape.has_rank()) {
    const size_t axis = axis_of(call, call.integer("axis", -1), values.shape.rank());
    const int64_t dim = values.shape[axis];
    int64_t count = Shape::unknown;
    if (const auto given = constant_integers(call, 1)) {
      if (given->size() != 1 || (*given)[0] < 0)
        fail(ErrorKind::InvalidModel, title(call), ": K must be one number that is not negative");
      count = (*given)[0];
      if (dim >= 0 && count > dim) fail(ErrorKind::InvalidModel, title(call), ": K is ", count, " on an axis of ", dim);
    }
    values.shape.set(axis, count);
  }
  return {values, TensorType{DType::I64, values.shape}};
}

void run_top_k(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const auto types = infer_top_k(with_data(call, in));
  const auto& type = std::get<TensorType>(types[0]);
  const size_t axis = axis_of(call, call.integer("axis", -1), data.shape().rank());
  const auto split = split_at(data.shape(), axis);
  const auto count = static_cast<size_t>(type.shape[axis]);
  const bool largest = call.integer("largest", 1) != 0;
  const ElementOrder order(data);
  Tensor values(type);
  const ElementCopy copy(data, values);
  std::vector<int64_t> indices(values.elements());
  std::vector<size_t> sorted(indices.empty() ? 0 : split.length);
  for (size_t row = 0; row < split.outer * split.inner && count > 0; ++row) {
    const size_t from = row / split.inner * split.length * split.inner + row % split.inner;
    const size_t to = row / split.inner * count * split.inner + row % split.inner;
    std::iota(sorted.begin(), sorted.end(), size_t{0});
    std::ranges::stable_sort(sorted, [&](size_t a, size_t b) {
      const int compared = order.compare(from + a * split.inner, from + b * split.inner);
      return largest ? compared > 0 : compared < 0;
    });
    for (size_t k = 0; k < count; ++k) {
      indices[to + k * split.inner] = static_cast<int64_t>(sorted[k]);
      copy(static_cast<int64_t>(from + sorted[k] * split.inner), static_cast<int64_t>(to + k * split.inner));
    }
  }
  if (call.wants_output(0)) copy_all(values, out.allocate(0, type));
  if (call.wants_output(1)) store(out.allocate(1, std::get<TensorType>(types[1])), std::span<const int64_t>(indices));
}

std::vector<Type> infer_unique(const OpCall& call) {
  TensorType unique = call.input(0);
  if (!call.has_attribute("axis")) {
    unique.shape = unknown_shape(1);
  } else if (unique.shape.has_rank()) {
    unique.shape.set(axis_of(call, call.integer("axis", 0), unique.shape.rank()), Shape::unknown);
  }
  const TensorType counts{DType::I64, unknown_shape(1)};
  TensorType inverse = counts;
  const Shape& from = call.input(0).shape;
  if (from.is_known())
    inverse.shape.set(0, call.has_attribute("axis") ? from[from.axis(call.integer("axis", 0))] : from.elements());
  return {unique, counts, inverse, counts};
}

// Equal slices of an axis, in groups.
struct Groups {
  std::vector<size_t> first;    // By group: its first slice.
  std::vector<int64_t> counts;  // By group.
  std::vector<int64_t> group;   // By slice.
};

Groups groups_of(const Tensor& data, size_t axis, bool sorted) {
  const auto split = split_at(data.shape(), axis);
  const ElementOrder order(data);
  const auto compare = [&](size_t a, size_t b) {
    for (size_t outer = 0; outer < split.outer; ++outer) {
      for (size_t inner = 0; inner < split.inner; ++inner) {
        const size_t base = outer * split.length * split.inner + inner;
        if (const int result = order.compare(base + a * split.inner, base + b * split.inner)) return result;
      }
    }
    return 0;
  };
  std::vector<size_t> slices(split.length);
  std::iota(slices.begin(), slices.end(), size_t{0});
  std::ranges::stable_sort(slices, [&](size_t a, size_t b) { return compare(a, b) < 0; });
  Groups groups;
  groups.group.resize(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    if (i == 0 || compare(slices[i - 1], slices[i]) != 0) {
      groups.first.push_back(slices[i]);
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.group[slices[i]] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  if (sorted) return groups;
  std::vector<size_t> place(groups.first.size());
  std::iota(place.begin(), place.end(), size_t{0});
  std::ranges::sort(place, [&](size_t a, size_t b) { return groups.first[a] < groups.first[b]; });
  Groups reordered = groups;
  std::vector<int64_t> renamed(place.size());
  for (size_t i = 0; i < place.size(); ++i) {
    reordered.first[i] = groups.first[place[i]];
    reordered.counts[i] = groups.counts[place[i]];
    renamed[place[i]] = static_cast<int64_t>(i);
  }
  for (int64_t& group : reordered.group) group = renamed[static_cast<size_t>(group)];
  return reordered;
}

void put_list(const OpCall& call, Outputs& out, size_t i, const std::vector<int64_t>& values) {
  if (!call.wants_output(i)) return;
  store(out.allocate(i, {DType::I64, Shape{static_cast<int64_t>(values.size())}}), std::span<const int64_t>(values));
}

void run_unique(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const bool flat = !call.has_attribute("axis");
  const Tensor data = flat ? in[0].tensor().reshaped(Shape{in[0].tensor().shape().elements()}) : in[0].tensor();
  const size_t axis = flat ? 0 : axis_of(call, call.integer("axis", 0), data.shape().rank());
  const Groups groups = groups_of(data, axis, call.integer("sorted", 1) != 0);
  Shape shape = data.shape();
  shape.set(axis, static_cast<int64_t>(groups.first.size()));
  if (call.wants_output(0)) {
    const auto split = split_at(data.shape(), axis);
    Tensor& unique = out.allocate(0, {data.dtype(), std::move(shape)});
    const ElementCopy copy(data, unique);
    int64_t to = 0;
    for (size_t outer = 0; outer < split.outer; ++outer) {
      for (const size_t slice : groups.first) {
        const size_t from = (outer * split.length + slice) * split.inner;
        for (size_t inner = 0; inner < split.inner; ++inner) copy(static_cast<int64_t>(from + inner), to++);
      }
    }
  }
  put_list(call, out, 1, std::vector<int64_t>(groups.first.begin(), groups.first.end()));
  put_list(call, out, 2, groups.group);
  put_list(call, out, 3, groups.counts);
}

Op top_k() {
  Op op;
  op.name = "TopK";
  op.summary = "The K largest or smallest elements along an axis, and where they are; of equal ones the first.";
  op.inputs = {required("X", number_types()), required("K", {DType::I64})};
  op.outputs = {required("Values", number_types()), required("Indices", {DType::I64})};
  op.attributes = {{"axis", int64_t{-1}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}};
  op.infer = infer_top_k;
  op.reference = run_top_k;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Reduction;
  op.cases = {"T[3,7]~small i64[1]{3} axis=-1,0 largest=0,1 outputs=2",
              "T[2,5,3]~small i64[1]{2} axis=1 outputs=2",
              "f32[6]{2,1,2,3,1,3} i64[1]{4} outputs=2 largest=0,1",
              "f32[4]{1,nan,-inf,inf} i64[1]{2} outputs=2",
              "T[3,4] i64[1]{0} outputs=2",
              "T[0,4] i64[1]{2} outputs=2",
              "T[5] i64[1]{5} outputs=2",
              "T[1000] i64[1]{7} outputs=2",
              "u64[3]{1,18446744073709549568,5} i64[1]{1} outputs=2"};
  return op;
}

Op unique() {
  Op op;
  op.name = "Unique";
  op.summary = "The different elements, or slices along an axis; where each is first, which each is, how many there are.";
  op.inputs = {required("X", plain_types())};
  op.inputs[0].dtypes.push_back(DType::String);
  op.outputs = {required("Y", op.inputs[0].dtypes), optional("indices", {DType::I64}), optional("inverse_indices", {DType::I64}),
                optional("counts", {DType::I64})};
  op.attributes = {{"sorted", int64_t{1}}};
  op.infer = infer_unique;
  op.reference = run_unique;
  op.rounding = Rounding::MoveBits;
  op.category = Category::DynamicOutput;
  op.cases = {"f32[6]{2,1,1,3,4,3} sorted=0,1 outputs=4",
              "f32[4,3]{1,0,0,1,0,0,2,3,4,2,3,4} axis=0,1,-1 outputs=4",
              "i64[3,4]~index:4 outputs=4",
              "string[6] outputs=4",
              "T[0] outputs=4",
              "f32[4]{nan,1,nan,-0} outputs=4",
              "bool[5] sorted=0 outputs=4",
              "T[7]~small",
              "i64[2,6,2]~index:2 axis=1 sorted=0,1 outputs=4"};
  return op;
}

}  // namespace

void add_sort_ops(OpSet& ops) {
  ops.add(top_k());
  ops.add(unique());
  add_selection_ops(ops);
}

}  // namespace unmoor
