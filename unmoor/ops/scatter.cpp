#include <algorithm>
#include <cmath>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

// For update element i, the place in the data that it goes to.
using Targets = std::vector<int64_t>;

template <class T>
T combined(const std::string& reduction, T old, T update) {
  if (reduction == "add") {
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(old) + static_cast<uint64_t>(update));
    return old + update;
  }
  if (reduction == "mul") {
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(old) * static_cast<uint64_t>(update));
    return old * update;
  }
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(old)) return old;
    if (std::isnan(update)) return update;
  }
  return reduction == "max" ? std::max(old, update) : std::min(old, update);
}

void scatter(const OpCall& call, const Tensor& data, const Tensor& updates, const Targets& targets, Tensor& result) {
  copy_all(data, result);
  const std::string reduction = call.text("reduction", "none");
  if (reduction == "none") {
    const ElementCopy copy(updates, result);
    for (size_t i = 0; i < targets.size(); ++i) copy(static_cast<int64_t>(i), targets[i]);
    return;
  }
  if (bits_of(data.dtype()) == 0 || data.dtype() == DType::C64 || data.dtype() == DType::C128) {
    fail(ErrorKind::Unsupported, title(call), ": elements of ", data.dtype(), " cannot be reduced");
  }
  with_lane(data.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto values = read_as<T>(data);
    const auto changes = read_as<T>(updates);
    for (size_t i = 0; i < targets.size(); ++i) {
      T& value = values[static_cast<size_t>(targets[i])];
      value = combined(reduction, value, changes[i]);
    }
    write_as(result, values);
  });
}

void check_attributes(const OpCall& call) {
  if (call.input(0).dtype != call.input(2).dtype) {
    fail(ErrorKind::InvalidModel, title(call), ": data are ", call.input(0).dtype, " and updates ", call.input(2).dtype);
  }
  const std::string reduction = call.text("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return;
  }
  fail(ErrorKind::InvalidModel, title(call), ": reduction is '", reduction, "', not none, add, mul, max or min");
}

void check_same(const OpCall& call, const Shape& a, const Shape& b, std::string_view what) {
  if (!a.has_rank() || !b.has_rank()) return;
  bool same = a.rank() == b.rank();
  for (size_t axis = 0; same && axis < a.rank(); ++axis) same = a[axis] < 0 || b[axis] < 0 || a[axis] == b[axis];
  if (!same) fail(ErrorKind::InvalidModel, title(call), ": updates have shape ", b, ", not the ", a, " of ", what);
}

std::vector<Type> infer_scatter_elements(const OpCall& call) {
  check_attributes(call);
  const Shape& data = call.input(0).shape;
  const Shape& indices = call.input(1).shape;
  check_same(call, indices, call.input(2).shape, "the indices");
  if (data.has_rank() && indices.has_rank()) {
    if (data.rank() != indices.rank())
      fail(ErrorKind::InvalidModel, title(call), ": data ", data, " and indices ", indices, " do not have the same rank");
    const size_t axis = axis_of(call, call.integer("axis", 0), data.rank());
    for (size_t i = 0; i < data.rank(); ++i) {
      if (i != axis && data[i] >= 0 && indices[i] > data[i]) {
        fail(ErrorKind::InvalidModel, title(call), ": indices ", indices, " reach beyond data ", data, " on axis ", i);
      }
    }
  }
  return {call.input(0)};
}

void run_scatter_elements(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const auto indices = integers(in[1].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_scatter_elements);
  const size_t axis = axis_of(call, call.integer("axis", 0), data.shape().rank());
  const auto strides = data.shape().strides();
  Targets targets(indices.size());
  for_each_index(in[1].tensor().shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    const int64_t chosen = wrapped_index(call, indices[static_cast<size_t>(i)], data.shape()[axis]);
    targets[static_cast<size_t>(i)] = place_of(index, strides) + (chosen - index[axis]) * strides[axis];
  });
  scatter(call, data, in[2].tensor(), targets, result);
}

std::vector<Type> infer_scatter_nd(const OpCall& call) {
  check_attributes(call);
  const Shape& data = call.input(0).shape;
  const Shape& indices = call.input(1).shape;
  if (data.has_rank() && indices.has_rank()) {
    if (indices.rank() == 0) fail(ErrorKind::InvalidModel, title(call), ": indices are a scalar");
    const int64_t depth = indices[indices.rank() - 1];
    if (depth > static_cast<int64_t>(data.rank()))
      fail(ErrorKind::InvalidModel, title(call), ": ", depth, " indices are too many for ", data);
    if (depth >= 0) {
      Shape wanted;
      for (size_t i = 0; i + 1 < indices.rank(); ++i) wanted.push_back(indices, i);
      for (auto i = static_cast<size_t>(depth); i < data.rank(); ++i) wanted.push_back(data, i);
      check_same(call, wanted, call.input(2).shape, "indices and data");
    }
  }
  return {call.input(0)};
}

void run_scatter_nd(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const Shape& shape = in[1].tensor().shape();
  const auto indices = integers(in[1].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_scatter_nd);
  const auto depth = static_cast<size_t>(shape[shape.rank() - 1]);
  const auto strides = data.shape().strides();
  const int64_t slice = data.shape().elements(depth, data.shape().rank());
  const int64_t rows = shape.elements(0, shape.rank() - 1);
  Targets targets;
  for (int64_t row = 0; row < rows && (depth > 0 || slice > 0); ++row) {  // Rows without either are no data and may be 2^40.
    int64_t to = 0;
    for (size_t k = 0; k < depth; ++k) {
      to += wrapped_index(call, indices[static_cast<size_t>(row) * depth + k], data.shape()[k]) * strides[k];
    }
    for (int64_t i = 0; i < slice; ++i) targets.push_back(to + i);
  }
  scatter(call, data, in[2].tensor(), targets, result);
}

size_t sequence_axis(const OpCall& call, const Shape& cache) {
  const size_t axis = axis_of(call, call.integer("axis", -2), cache.rank());
  if (axis == 0) fail(ErrorKind::InvalidModel, title(call), ": axis 0 is the batch's, not the sequence's");
  return axis;
}

std::vector<Type> infer_tensor_scatter(const OpCall& call) {
  const Shape& cache = call.input(0).shape;
  const Shape& update = call.input(1).shape;
  const std::string mode = call.text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    fail(ErrorKind::InvalidModel, title(call), ": mode is '", mode, "', not linear or circular");
  if (call.input(1).dtype != call.input(0).dtype) {
    fail(ErrorKind::InvalidModel, title(call), ": updates of ", call.input(1).dtype, " for a cache of ", call.input(0).dtype);
  }
  if (cache.has_rank() && update.has_rank()) {
    const size_t axis = sequence_axis(call, cache);
    Shape wanted = cache;
    if (axis < update.rank()) wanted.set(axis, update[axis]);
    check_same(call, wanted, update, "the cache");
    if (cache[axis] >= 0 && update[axis] > cache[axis]) {
      fail(ErrorKind::InvalidModel, title(call), ": updates of shape ", update, " are longer than the cache ", cache);
    }
  }
  return {call.input(0)};
}

void run_tensor_scatter(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& cache = in[0].tensor();
  const Tensor& update = in[1].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_tensor_scatter);
  const size_t axis = sequence_axis(call, cache.shape());
  const int64_t length = cache.shape()[axis];
  const bool circular = call.text("mode", "linear") == "circular";
  auto starts = integers_at(in, 2);
  if (tensor_at(in, 2) == nullptr) starts.assign(static_cast<size_t>(cache.shape()[0]), 0);
  if (static_cast<int64_t>(starts.size()) != cache.shape()[0]) {
    fail(ErrorKind::InvalidArgument, title(call), ": ", starts.size(), " write_indices for a batch of ", cache.shape()[0]);
  }
  const auto strides = cache.shape().strides();
  copy_all(cache, result);
  const ElementCopy copy(update, result);
  for_each_index(update.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    const int64_t start = starts[static_cast<size_t>(index[0])];
    if (start < 0 || start > (int64_t{1} << 60) || (!circular && start + index[axis] >= length)) {
      fail(ErrorKind::InvalidArgument, title(call), ": writing at ", start, " passes the cache's end at ", length);
    }
    copy(i, place_of(index, strides) + ((start + index[axis]) % length - index[axis]) * strides[axis]);
  });
}

constexpr int64_t most_rows = 16;  // That an expansion writes one by one.

// Each row put where its place is, for few rows that do not wrap around; rows at the front need no places.
void expand_tensor_scatter(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  const Shape& cache = call.input(0).shape;
  const size_t axis = sequence_axis(call, cache);
  const auto at = static_cast<int64_t>(axis);
  const int64_t rows = call.input(1).shape[axis];
  const auto sliced = [&](ValueId x, int64_t from, int64_t to) {
    return builder.add("Slice", {x, builder.ints({from}), builder.ints({to}), builder.ints({at})});
  };
  if (builder.input(2) == no_value) {
    return builder.output(0,
                          builder.add("Concat", {builder.input(1), sliced(builder.input(0), rows, cache[axis])}, {{"axis", at}}));
  }
  if (rows > most_rows || call.text("mode", "linear") == "circular") {
    fail(ErrorKind::Unsupported, title(call), ": more than ", most_rows,
         " rows, or rows that wrap around, cannot be written one by one");
  }
  std::vector<int64_t> column(cache.rank() - axis, 1);
  column[0] = cache[axis];
  Tensor places(TensorType{DType::I64, Shape(column)});
  std::iota(places.writable_span<int64_t>().begin(), places.writable_span<int64_t>().end(), 0);
  const ValueId all = builder.constant(std::move(places));
  std::vector<int64_t> by_batch(cache.rank(), 1);
  by_batch[0] = cache[0];
  const ValueId starts = builder.add("Reshape", {builder.input(2), builder.ints(by_batch)}, {{"allowzero", int64_t{1}}});
  ValueId result = builder.input(0);
  for (int64_t row = 0; row < rows; ++row) {
    const ValueId place = builder.add("Add", {starts, builder.constant(Tensor::scalar<int64_t>(row))});
    const ValueId is_here = builder.add("Equal", {all, place});
    result = builder.add("Where", {is_here, rows == 1 ? builder.input(1) : sliced(builder.input(1), row, row + 1), result});
  }
  builder.output(0, result);
}

Op scatter_op(std::string name, std::string summary) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("data", every_type()), required("indices", index_types()), required("updates", every_type())};
  op.outputs = {required("output", every_type())};
  op.rounding = Rounding::Sum;
  op.category = Category::Layout;
  return op;
}

Op scatter_elements() {
  Op op = scatter_op("ScatterElements", "The data with single elements replaced, or combined with, along an axis.");
  op.attributes = {{"axis", int64_t{0}}, {"reduction", std::string("none")}};
  op.infer = infer_scatter_elements;
  op.reference = run_scatter_elements;
  op.cases = {"T[3,3] i64[2,3]{1,0,2,0,2,1} T[2,3]",
              "T[1,5] i64[1,2]{1,-2} T[1,2] axis=1,-1",
              "T[5,4]~small i64[7,4]~signed_index:5 T[7,4]~small reduction=add,mul,max,min",
              "T[2,5] i32[2,2]{0,4,3,1} T[2,2] axis=1",
              "T[3,4] i64[0,4] T[0,4]",
              "bool[4] i64[2]{3,0} bool[2]",
              "string[3] i64[1]{1} string[1]",
              "i64[3]~small i64[6]~index:3 i64[6]~small reduction=add,max",
              "i4[3,3] i64[1,3]{0,1,2} i4[1,3]"};
  return op;
}

Op scatter_nd() {
  Op op = scatter_op("ScatterND", "The data with slices replaced, or combined with, each at a tuple of indices.");
  op.inputs[1].dtypes = {DType::I64};
  op.attributes = {{"reduction", std::string("none")}};
  op.infer = infer_scatter_nd;
  op.reference = run_scatter_nd;
  op.cases = {"T[8] i64[4,1]{4,3,1,-1} T[4]",
              "T[4,4,4] i64[2,1]{0,2} T[2,4,4]",
              "T[4,3] i64[2,2]{0,1,-1,-3} T[2]",
              "T[4,4]~small i64[5,1]~index:4 T[5,4]~small reduction=add,mul,max,min",
              "T[3,4] i64[0,1] T[0,4]",
              "T[2,3] i64[1,0]{} T[1,2,3]",
              "bool[4] i64[2,1]{3,0} bool[2]",
              "string[3] i64[1,1]{1} string[1]",
              "T[2,3,4] i64[2,1,2]{1,0,0,2} T[2,1,4]"};
  return op;
}

Op tensor_scatter() {
  Op op = scatter_op("TensorScatter", "A key or value cache with new entries written at each batch's place.");
  op.inputs = {required("past_cache", every_type()), required("update", every_type()), optional("write_indices", {DType::I64})};
  op.attributes = {{"axis", int64_t{-2}}, {"mode", std::string("linear")}};
  op.infer = infer_tensor_scatter;
  op.reference = run_tensor_scatter;
  op.expand = expand_tensor_scatter;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Attention;
  op.cases = {"T[2,6,4] T[2,2,4] i64[2]{0,4} mode=linear,circular",
              "T[2,6,4] T[2,3,4] i64[2]{5,13} mode=circular",
              "T[2,3,6,4] T[2,3,1,4] i64[2]{5,0}",
              "T[2,6,4] T[2,2,4]",
              "T[2,4,6] T[2,4,1] i64[2]{3,2} axis=2,-1",
              "T[2,6,4] T[2,0,4] i64[2]{6,0}",
              "T[2,6,4] T[2,6,4] mode=linear,circular",
              "bool[1,2,5,3] bool[1,2,2,3] i64[1]{3}",
              "T[1,40,3] T[1,17,3] i64[1]{20}",
              "T[0,6,4] T[0,2,4] i64[0]"};
  return op;
}

}  // namespace

void add_scatter_ops(OpSet& ops) {
  ops.add(scatter_elements());
  ops.add(scatter_nd());
  ops.add(tensor_scatter());
}

}  // namespace unmoor
