#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/order.h"
#include "unmoor/backends/cpu/kernels/walk.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

// Operators whose result's shape is known only when they run: they work on values.
namespace {

template <class T>
void places_of(const Tensor& data, std::vector<int64_t>& found) {
  const std::span<const T> values = data.span<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != T{0}) found.push_back(static_cast<int64_t>(i));
  }
}

void run_non_zero(const OpCall&, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  std::vector<int64_t> found;
  switch (data.dtype()) {
    case DType::F32:
      places_of<float>(data, found);
      break;
    case DType::I64:
      places_of<int64_t>(data, found);
      break;
    case DType::I32:
      places_of<int32_t>(data, found);
      break;
    default:
      places_of<uint8_t>(data, found);
      break;
  }
  const size_t rank = data.shape().rank();
  Tensor& result = out.allocate(0, {DType::I64, Shape{static_cast<int64_t>(rank), static_cast<int64_t>(found.size())}});
  const std::span<int64_t> places = result.writable_span<int64_t>();
  for (size_t axis = rank; axis-- > 0;) {  // The last axis is the rest of a division, what is left are the axes before.
    const int64_t dim = data.shape()[axis];
    for (size_t i = 0; i < found.size(); ++i) {
      places[axis * found.size() + i] = found[i] % dim;
      found[i] /= dim;
    }
  }
}

void run_compress(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const bool flat = !call.has_attribute("axis");
  const Tensor data = flat ? in[0].tensor().reshaped(Shape{in[0].tensor().shape().elements()}) : in[0].tensor();
  const size_t axis = flat ? 0 : data.shape().axis(call.integer("axis", 0));
  const Split at = split_at(data.shape(), axis);
  const std::span<const uint8_t> condition = in[1].tensor().span<uint8_t>();
  if (condition.size() > at.length) {
    fail(ErrorKind::InvalidArgument, title(call), ": a condition of ", condition.size(), " elements for an axis of ", at.length);
  }
  std::vector<size_t> kept;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] != 0) kept.push_back(i);
  }
  Shape shape = data.shape();
  shape.set(axis, static_cast<int64_t>(kept.size()));
  const size_t run = at.inner * element_bytes(data.dtype());
  Tensor& result = out.allocate(0, {data.dtype(), std::move(shape)});
  std::byte* to = result.writable_bytes().data();
  for (size_t outer = 0; outer < at.outer; ++outer) {
    for (const size_t i : kept) {
      std::memcpy(to, data.bytes().data() + (outer * at.length + i) * run, run);
      to += run;
    }
  }
}

// Equal elements, in groups.
struct Groups {
  std::vector<int64_t> first, counts;  // By group.
  std::vector<int64_t> group;          // By element.
};

Groups groups_of(std::span<const float> x, bool sorted) {
  std::vector<uint64_t> order(x.size());
  for (size_t i = 0; i < x.size(); ++i) order[i] = (uint64_t{order_of(x[i])} << 32) | i;
  std::ranges::sort(order);
  Groups groups;
  groups.group.resize(x.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const auto element = static_cast<uint32_t>(order[i]);
    if (i == 0 || order[i] >> 32 != order[i - 1] >> 32) {
      groups.first.push_back(element);
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.group[element] = static_cast<int64_t>(groups.first.size()) - 1;
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
  std::ranges::copy(values,
                    out.allocate(i, {DType::I64, Shape{static_cast<int64_t>(values.size())}}).writable_span<int64_t>().begin());
}

Support supports_unique(const OpCall& call) {
  if (call.has_attribute("axis")) return no(Reason::Attribute, "axis");
  if (Support types = input_is(call, 0, {DType::F32}); !types) return types;
  const Shape& shape = call.input(0).shape;
  return shape.is_known() && shape.elements() >= int64_t{1} << 32 ? no(Reason::Size, shape) : yes();
}

void run_unique(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const std::span<const float> x = in[0].tensor().span<float>();
  if (x.size() >= size_t{1} << 32) return run_reference(call, in, out);  // Of a shape that was not known before.
  const Groups groups = groups_of(x, call.integer("sorted", 1) != 0);
  if (call.wants_output(0)) {
    const std::span<float> y =
        out.allocate(0, {DType::F32, Shape{static_cast<int64_t>(groups.first.size())}}).writable_span<float>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = x[static_cast<size_t>(groups.first[i])];
  }
  put_list(call, out, 1, groups.first);
  put_list(call, out, 2, groups.group);
  put_list(call, out, 3, groups.counts);
}

// Corners, the lower ones first.
struct Box {
  double y1, x1, y2, x2, area;
};

Box box_at(const float* at, bool centered) {
  const auto v = [at](size_t i) { return static_cast<double>(at[i]); };
  Box box{};
  if (centered) {
    box = {v(1) - v(3) / 2, v(0) - v(2) / 2, v(1) + v(3) / 2, v(0) + v(2) / 2, 0};
  } else {
    box = {std::min(v(0), v(2)), std::min(v(1), v(3)), std::max(v(0), v(2)), std::max(v(1), v(3)), 0};
  }
  box.area = (box.y2 - box.y1) * (box.x2 - box.x1);
  return box;
}

// Whether intersection over union passes the limit. Boxes without area overlap nothing.
bool overlap(const Box& a, const Box& b, double limit) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0 && width > 0) || a.area <= 0 || b.area <= 0) return 0 > limit;
  return height * width / (a.area + b.area - height * width) > limit;
}

struct Rule {
  size_t most = 0;  // Boxes a class.
  double overlap = 0;
  float score = -std::numeric_limits<float>::infinity();
};

// The best-scored boxes that do not overlap a better one, best first; equal scores in the order given.
std::vector<size_t> kept_boxes(std::span<const Box> boxes, const float* scores, const Rule& rule) {
  std::vector<size_t> order;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (scores[i] > rule.score) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<size_t> kept;
  for (const size_t i : order) {
    if (kept.size() >= rule.most) break;
    if (std::ranges::none_of(kept, [&](size_t k) { return overlap(boxes[i], boxes[k], rule.overlap); })) kept.push_back(i);
  }
  return kept;
}

// An optional input's first element.
template <class T>
std::optional<T> first_of(std::span<const Data> in, size_t i) {
  if (i >= in.size() || !in[i] || in[i].tensor().elements() == 0) return std::nullopt;
  return in[i].tensor().span<T>()[0];
}

void run_suppression(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& given = in[0].tensor();
  const Tensor& scores = in[1].tensor();
  const Shape& shape = scores.shape();
  if (given.shape().rank() != 3 || shape.rank() != 3 || given.shape()[2] != 4 || given.shape()[0] != shape[0] ||
      given.shape()[1] != shape[2]) {
    fail(ErrorKind::InvalidModel, title(call), ": boxes ", given.shape(), " and scores ", shape, " do not go together");
  }
  const auto count = static_cast<size_t>(shape[2]);
  const auto classes = static_cast<size_t>(shape[1]);
  Rule rule;
  rule.most = static_cast<size_t>(std::max<int64_t>(first_of<int64_t>(in, 2).value_or(0), 0));
  rule.overlap = static_cast<double>(first_of<float>(in, 3).value_or(0));
  rule.score = first_of<float>(in, 4).value_or(rule.score);
  std::vector<int64_t> selected;
  const bool centered = call.integer("center_point_box", 0) != 0;
  for (size_t batch = 0; batch < static_cast<size_t>(shape[0]) && count > 0 && rule.most > 0; ++batch) {
    std::vector<Box> boxes;
    for (size_t i = 0; i < count; ++i) boxes.push_back(box_at(given.span<float>().data() + (batch * count + i) * 4, centered));
    for (size_t c = 0; c < classes; ++c) {
      for (const size_t i : kept_boxes(boxes, scores.span<float>().data() + (batch * classes + c) * count, rule)) {
        for (const size_t part : {batch, c, i}) selected.push_back(static_cast<int64_t>(part));
      }
    }
  }
  Tensor& result = out.allocate(0, {DType::I64, Shape{static_cast<int64_t>(selected.size() / 3), 3}});
  std::ranges::copy(selected, result.writable_span<int64_t>().begin());
}

}  // namespace

void add_select_kernels(KernelTable& table) {
  table.add("NonZero", {.name = "cpu.nonzero.places",
                        .supports =
                            [](const OpCall& call) {
                              return input_is(call, 0, {DType::F32, DType::I64, DType::I32, DType::Bool, DType::U8});
                            },
                        .evaluate = run_non_zero});
  table.add("Compress", {.name = "cpu.compress.runs",
                         .supports =
                             [](const OpCall& call) {
                               return element_bytes(call.input(0).dtype) != 0 ? yes() : no(Reason::DType, call.input(0).dtype);
                             },
                         .evaluate = run_compress});
  const Kernel unique{.name = "cpu.unique.sort", .supports = supports_unique, .evaluate = run_unique};
  table.add("Unique", unique);
  table.add(
      "NonMaxSuppression",
      {.name = "cpu.nonmaxsuppression.boxes",
       .supports = [](const OpCall& call) { return all_of(input_is(call, 0, {DType::F32}), input_is(call, 1, {DType::F32})); },
       .evaluate = run_suppression});
}

}  // namespace unmoor::cpu
