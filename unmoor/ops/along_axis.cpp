#include "unmoor/ops/along_axis.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/nan.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {

namespace {

std::vector<Type> infer_arg(const OpCall& call) {
  const Shape& data = call.input(0).shape;
  if (!data.has_rank()) return {TensorType{DType::I64, Shape::of_unknown_rank()}};
  const size_t axis = axis_of(call, data, call.integer("axis", 0));
  if (data[axis] == 0) fail(ErrorKind::InvalidModel, title(call), ": axis ", axis, " of shape ", data, " is empty");
  Shape shape;
  for (size_t i = 0; i < data.rank(); ++i) {
    if (i != axis) {
      shape.push_back(data, i);
    } else if (call.integer("keepdims", 1) != 0) {
      shape.push_back(1);
    }
  }
  return {TensorType{DType::I64, shape}};
}

// NaN is the most extreme, as in NumPy.
template <class T>
bool beats(T x, T best, bool maximum, bool later) {
  if (is_nan(best)) return later && is_nan(x);
  if (is_nan(x)) return true;
  return (maximum ? x > best : x < best) || (later && x == best);
}

void arg_reference(bool maximum, const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const Split at = split_at(data.shape(), axis_of(call, data.shape(), call.integer("axis", 0)));
  const bool later = call.integer("select_last_index", 0) != 0;
  std::vector<int64_t> places(at.outer * at.inner);
  with_lane(data.dtype(), [&](auto lane) {
    const auto x = read_as<decltype(lane)>(data);
    for (size_t outer = 0; outer < at.outer; ++outer) {
      for (size_t inner = 0; inner < at.inner; ++inner) {
        const auto* const row = &x[outer * at.length * at.inner + inner];
        size_t best = 0;
        for (size_t i = 1; i < at.length; ++i) {
          if (beats(row[i * at.inner], row[best * at.inner], maximum, later)) best = i;
        }
        places[outer * at.inner + inner] = static_cast<int64_t>(best);
      }
    }
  });
  put(call, out, 0, std::span<const int64_t>(places));
}

Op arg(std::string name, std::string summary, bool maximum) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("data", number_types())};
  op.outputs = {required("reduced", {DType::I64})};
  op.attributes = {{"axis", int64_t{0}}, {"keepdims", int64_t{1}}, {"select_last_index", int64_t{0}}};
  op.infer = infer_arg;
  op.reference = [maximum](const OpCall& call, std::span<const Data> in, Outputs& out) { arg_reference(maximum, call, in, out); };
  op.cost = cost_per_input(1);
  op.rounding = Rounding::MoveBits;
  op.category = Category::Reduction;
  op.cases = {"T[2,3,4] axis=-1,0,1,2 keepdims=0,1",
              "T[5,257] axis=1",
              "f32[2,4]{1,3,3,1,-2,-2,-5,-5} axis=1 select_last_index=0,1",
              "f32[3,33]~special axis=-1 select_last_index=0,1",
              "T[7] keepdims=0",
              "f32[0,4] axis=1",
              "T[1,1,1000] axis=-1"};
  return op;
}

template <class T>
T combined(T a, T b, bool product) {
  using U = std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;
  const auto x = static_cast<U>(a);
  const auto y = static_cast<U>(b);
  return static_cast<T>(product ? x * y : x + y);
}

// Along each line of the axis, forward or in reverse.
void running_reference(bool product, const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const std::vector<int64_t> axis = integers_at(in, 1);
  if (axis.size() != 1) fail(ErrorKind::InvalidModel, title(call), ": axis has ", axis.size(), " elements, not one");
  const Split at = split_at(data.shape(), axis_of(call, data.shape(), axis[0]));
  const bool exclusive = call.integer("exclusive", 0) != 0;
  const bool reverse = call.integer("reverse", 0) != 0;
  Tensor& result = out.allocate(0, data.type());
  with_lane(data.dtype(), [&](auto lane) {
    using T = decltype(lane);
    std::vector<T> x = read_as<T>(data);
    for (size_t outer = 0; outer < at.outer; ++outer) {
      for (size_t inner = 0; inner < at.inner; ++inner) {
        T so_far = product ? T{1} : T{0};
        for (size_t i = 0; i < at.length; ++i) {
          T& element = x[(outer * at.length + (reverse ? at.length - 1 - i : i)) * at.inner + inner];
          const T next = combined(so_far, element, product);
          element = exclusive ? so_far : next;
          so_far = next;
        }
      }
    }
    write_as<T>(result, x);
  });
}

Op running(std::string name, std::string summary, bool product) {
  const std::vector<DType> dtypes{DType::F32, DType::F16, DType::BF16, DType::F64,
                                  DType::I32, DType::I64, DType::U32,  DType::U64};
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("x", dtypes), required("axis", index_types())};
  op.outputs = {required("y", dtypes)};
  op.attributes = {{"exclusive", int64_t{0}}, {"reverse", int64_t{0}}};
  op.infer = [](const OpCall& call) {
    const auto axis = constant_integers(call, 1);
    if (axis && axis->size() == 1 && call.input(0).shape.has_rank()) axis_of(call, call.input(0).shape, (*axis)[0]);
    return like_first(call);
  };
  op.reference = [product](const OpCall& call, std::span<const Data> in, Outputs& out) {
    running_reference(product, call, in, out);
  };
  op.cost = cost_per_input(1);
  op.rounding = Rounding::Sum;
  op.category = Category::Reduction;
  const std::string data = product ? "~unit" : "~small";
  op.cases = {cat("T[2,3,4]", data, " i64[]{1}! exclusive=0,1 reverse=0,1"),
              cat("T[2,3,4]", data, " i32[]{-1} exclusive=0,1"),
              cat("T[257]", data, " i64[]{0}!"),
              "f32[0,4] i64[]{1}!",
              "f32[3,0] i64[]{1}!",
              cat("T[2,3,4]", data, " i64[1]{0}!")};
  return op;
}

}  // namespace

void add_extreme_ops(OpSet& ops) {
  ops.add(arg("ArgMax", "The place of the greatest along an axis; NaN counts as greatest.", true));
  ops.add(arg("ArgMin", "The place of the least along an axis; NaN counts as least.", false));
}

void add_running_ops(OpSet& ops) {
  ops.add(running("CumSum", "Sums so far along an axis.", false));
  ops.add(running("CumProd", "Products so far along an axis.", true));
}

}  // namespace unmoor
