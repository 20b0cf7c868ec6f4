#include "unmoor/ops/window.h"

#include "unmoor/base/error.h"

namespace unmoor {

namespace {

void read_pads(const OpCall& call, Window& window) {
  const std::vector<int64_t> pads = per_axis(call, "pads", 2 * window.rank(), 0, 0);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(window.rank());
  window.begin.assign(pads.begin(), middle);
  window.end.assign(middle, pads.end());
}

// As many outputs as strides fit in; what is padded on the side named gets the odd element.
int64_t same_output(Window& window, size_t axis, bool upper) {
  const int64_t output = (window.input[axis] + window.strides[axis] - 1) / window.strides[axis];
  const int64_t total = std::max<int64_t>(0, (output - 1) * window.strides[axis] + window.reach(axis) - window.input[axis]);
  window.begin[axis] = upper ? total / 2 : total - total / 2;
  window.end[axis] = total - window.begin[axis];
  return output;
}

int64_t fitting_output(const OpCall& call, const Window& window, size_t axis) {
  const int64_t room = window.input[axis] + window.begin[axis] + window.end[axis] - window.reach(axis);
  const int64_t stride = window.strides[axis];
  const bool ceil = call.integer("ceil_mode", 0) != 0;
  if (room < 0 && !(ceil && room > -stride)) {
    fail(ErrorKind::InvalidModel, title(call), ": a window that reaches over ", window.reach(axis),
         " elements does not fit in spatial axis ", axis, " of ", window.input[axis], " elements with padding ",
         window.begin[axis], " and ", window.end[axis]);
  }
  if (!ceil) return room / stride + 1;
  const int64_t output = (room + stride - 1) / stride + 1;
  // A window may not start in the padding at the end.
  return (output - 1) * stride >= window.input[axis] + window.begin[axis] ? output - 1 : output;
}

}  // namespace

void require_size(const OpCall& call, std::string_view what, int64_t value, int64_t least) {
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  if (value >= least && value <= most) return;
  fail(ErrorKind::InvalidModel, title(call), ": ", what, " has the value ", value, ", not one from ", least, " to ", most);
}

std::string padding_kind(const OpCall& call) {
  std::string kind = call.text("auto_pad", "NOTSET");
  for (const char* allowed : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}) {
    if (kind == allowed) return kind;
  }
  fail(ErrorKind::InvalidModel, title(call), ": auto_pad is '", kind, "', not NOTSET, VALID, SAME_UPPER or SAME_LOWER");
}

std::vector<int64_t> per_axis(const OpCall& call, std::string_view key, size_t count, int64_t otherwise, int64_t least) {
  std::vector<int64_t> values = call.integers(key);
  if (values.empty()) values.assign(count, otherwise);
  if (values.size() != count) {
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " has ", values.size(), " values, not ", count);
  }
  for (const int64_t value : values) require_size(call, key, value, least);
  return values;
}

Window window_of(const OpCall& call, std::vector<int64_t> input, std::vector<int64_t> kernel) {
  Window window;
  window.input = std::move(input);
  window.kernel = std::move(kernel);
  const size_t rank = window.rank();
  if (window.input.size() != rank) {
    fail(ErrorKind::InvalidModel, title(call), ": the input has ", window.input.size(), " spatial axes and the kernel ", rank);
  }
  window.strides = per_axis(call, "strides", rank, 1, 1);
  window.dilations = per_axis(call, "dilations", rank, 1, 1);
  window.begin.assign(rank, 0);
  window.end.assign(rank, 0);
  window.output.assign(rank, Shape::unknown);
  const std::string kind = padding_kind(call);
  if (kind == "NOTSET") read_pads(call, window);
  for (size_t axis = 0; axis < rank; ++axis) {
    if (window.kernel[axis] < 0 || window.input[axis] < 0) continue;
    require_size(call, "the kernel", window.kernel[axis], 1);
    require_size(call, "the input", window.input[axis], 0);
    window.output[axis] = kind == "SAME_UPPER" || kind == "SAME_LOWER" ? same_output(window, axis, kind == "SAME_UPPER")
                                                                       : fitting_output(call, window, axis);
  }
  return window;
}

bool channels_last(const OpCall& call) {
  const std::string layout = call.text("layout", "NCHW");
  if (layout != "NCHW" && layout != "NHWC")
    fail(ErrorKind::InvalidModel, title(call), ": layout is '", layout, "', not NCHW or NHWC");
  return layout == "NHWC";
}

Shape channels_first_shape(const Shape& shape) {
  if (!shape.has_rank() || shape.rank() < 2) return shape;
  Shape result;
  result.push_back(shape, 0);
  result.push_back(shape, shape.rank() - 1);
  for (size_t axis = 1; axis + 1 < shape.rank(); ++axis) result.push_back(shape, axis);
  return result;
}

Shape channels_last_shape(const Shape& shape) {
  if (!shape.has_rank() || shape.rank() < 2) return shape;
  Shape result;
  result.push_back(shape, 0);
  for (size_t axis = 2; axis < shape.rank(); ++axis) result.push_back(shape, axis);
  result.push_back(shape, 1);
  return result;
}

}  // namespace unmoor
