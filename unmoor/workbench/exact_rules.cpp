#include "unmoor/workbench/exact_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

// The only node of a region that is no detour, with its inputs; nothing if it has several nodes or an input from another.
struct Alone {
  const Node* node = nullptr;
  std::vector<Data> in;
};
std::optional<Alone> alone(const Region& region) {
  if (region.nodes.size() != 1) return std::nullopt;
  Alone result{&region.graph->node(region.nodes[0]), {}};
  for (const ValueId id : result.node->inputs) {
    Data data;
    if (id != no_value && region.graph->value(id).constant) data = *region.graph->value(id).constant;
    for (const auto& [given, value] : region.given) {
      if (given == id) data = value;
    }
    result.in.push_back(in_float64(data));
  }
  return result;
}

// Which numbers an integer dtype can hold after truncation.
bool fits(double value, DType dtype) {
  if (!std::isfinite(value)) return false;
  const int bits = static_cast<int>(bits_of(dtype));
  const double whole = std::trunc(value);
  const double low = is_signed(dtype) ? -std::ldexp(1.0, bits - 1) : 0;
  const double high = std::ldexp(1.0, is_signed(dtype) ? bits - 1 : bits);
  return whole >= low && whole < high;
}

std::vector<bool> undefined_casts(const Alone& cast, const Tensor& actual) {
  if (!cast.in[0].is_tensor() || cast.in[0].tensor().dtype() != DType::F64 || !is_integer(actual.dtype())) return {};
  std::vector<bool> result;
  for (const double value : doubles(cast.in[0].tensor())) result.push_back(!fits(value, actual.dtype()));
  return result;
}

// Places that more than one update writes: ones added to zeros count them.
std::vector<bool> written_twice(const Alone& scatter) {
  const auto reduction = scatter.node->attributes.find("reduction");
  if (reduction != scatter.node->attributes.end() && std::get<std::string>(reduction->second) != "none") return {};
  Node counter = *scatter.node;
  counter.attributes["reduction"] = std::string("add");
  Tensor zeros(TensorType{DType::F64, scatter.in[0].tensor().shape()});
  Tensor ones(TensorType{DType::F64, scatter.in[2].tensor().shape()});
  std::ranges::fill(ones.writable_span<double>(), 1.0);
  const std::vector<Data> in{zeros, scatter.in[1], ones};
  std::vector<bool> result;
  for (const double count : doubles(reference_on(counter, in).at(0).tensor())) result.push_back(count > 1);
  return result;
}

std::vector<bool> undefined_places(const Region& region, const Tensor& actual) {
  const auto only = alone(region);
  if (!only) return {};
  if (only->node->op == "Cast" || only->node->op == "CastLike") return undefined_casts(*only, actual);
  if (only->node->op == "ScatterElements" || only->node->op == "ScatterND") return written_twice(*only);
  return {};
}

bool lays_out(const Region& region) {
  return std::ranges::all_of(region.nodes, [&](NodeId id) {
    const Op* const op = all_ops().find(region.graph->node(id).op);
    return op != nullptr && op->category == Category::Layout && op->rounding == Rounding::MoveBits;
  });
}

std::vector<size_t> different_places(const Tensor& exact, const Tensor& actual, bool signs) {
  std::vector<size_t> places;
  const auto note = [&places](size_t i, bool same) {
    if (!same) places.push_back(i);
  };
  if (exact.dtype() == DType::String) {
    for (size_t i = 0; i < exact.elements(); ++i) note(i, exact.strings()[i] == actual.strings()[i]);
  } else if (is_float(actual.dtype())) {
    const auto e = doubles(exact);
    const auto a = doubles(actual);
    for (size_t i = 0; i < e.size(); ++i) {
      const double wanted = rounded(actual.dtype(), e[i]);
      const bool same = wanted == a[i] || (std::isnan(wanted) && std::isnan(a[i]));
      note(i, same && (!signs || std::isnan(wanted) || std::signbit(wanted) == std::signbit(a[i])));
    }
  } else {
    const auto e = integers(exact);
    const auto a = integers(actual);
    for (size_t i = 0; i < e.size(); ++i) note(i, e[i] == a[i]);
  }
  return places;
}

// The values that indices along an axis select.
std::vector<double> along(const Tensor& x, const Tensor& indices, int64_t axis) {
  const Split split = split_at(x.shape(), static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.shape().rank()) : axis));
  const auto values = doubles(x);
  const auto places = integers(indices);
  const size_t length = split.outer * split.inner == 0 ? 0 : places.size() / (split.outer * split.inner);
  std::vector<double> result;
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t outer = i / (length * split.inner);
    const bool inside = places[i] >= 0 && places[i] < static_cast<int64_t>(split.length);
    const size_t from = (outer * split.length + static_cast<size_t>(inside ? places[i] : 0)) * split.inner + i % split.inner;
    result.push_back(inside ? values[from] : std::numeric_limits<double>::quiet_NaN());
  }
  return result;
}

// The elements of each slice along the last of three lengths, as [outer, length, inner], in order of their size.
std::vector<double> sorted_along(std::vector<double> values, size_t length, size_t inner) {
  std::vector<double> slice(length);
  for (size_t first = 0; first + length * inner <= values.size(); first += length * inner) {
    for (size_t k = 0; k < inner; ++k) {
      for (size_t i = 0; i < length; ++i) slice[i] = values[first + i * inner + k];
      std::ranges::sort(slice, [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
      for (size_t i = 0; i < length; ++i) values[first + i * inner + k] = slice[i];
    }
  }
  return values;
}

bool has_repeats(const Tensor& indices, size_t length, size_t inner) {
  std::vector<double> numbers = doubles(indices);
  numbers = sorted_along(std::move(numbers), length, inner);
  for (size_t i = 0; i + inner < numbers.size(); ++i) {
    if (i / inner % length + 1 < length && numbers[i] == numbers[i + inner]) return true;
  }
  return false;
}

// Values and indices of TopK: no index twice, and where the order is left open, the values in any.
bool same_top(const OpCall& call, const Tensor& x, bool is_index, const Tensor& found, const Tensor& wanted) {
  const int64_t axis = call.integer("axis", -1);
  const size_t place = axis_of(call, x.shape(), axis);
  const Split split = split_at(found.shape(), place);
  const bool any_order = call.integer("sorted", 1) == 0;
  if (!is_index && !any_order) return false;
  if (is_index && has_repeats(found, split.length, split.inner)) return false;
  auto a = is_index ? along(x, found, axis) : doubles(found);
  auto b = is_index ? along(x, wanted, axis) : doubles(wanted);
  if (!is_index) {
    for (double& value : b) value = rounded(found.dtype(), value);
  }
  if (!any_order) return a == b;
  return sorted_along(std::move(a), split.length, split.inner) == sorted_along(std::move(b), split.length, split.inner);
}

// Whether NonMaxSuppression gives these rows [batch, class, box] if equal scores are taken in the order of the rows; boxes [batch,
// boxes, 4], scores [batch, classes, boxes]. What a row chose is raised by less than any two scores of 32 bits differ.
bool suppresses_to(const Alone& only, const Tensor& rows) {
  std::vector<double> scores = doubles(only.in[1].tensor());
  const Shape& shape = only.in[1].tensor().shape();
  const auto places = integers(rows);
  const std::vector<double> threshold = doubles_at(only.in, 4);
  const auto count = static_cast<double>(places.size() / 3);
  for (size_t i = 0; i + 2 < places.size(); i += 3) {
    const bool inside = places[i] >= 0 && places[i] < shape[0] && places[i + 1] >= 0 && places[i + 1] < shape[1] &&
                        places[i + 2] >= 0 && places[i + 2] < shape[2];
    if (!inside) return false;
    double& score = scores[static_cast<size_t>((places[i] * shape[1] + places[i + 1]) * shape[2] + places[i + 2])];
    if (!threshold.empty() && score <= threshold[0]) return false;
    score += std::fabs(score) * 0x1p-52 * (count - static_cast<double>(i / 3));
  }
  std::vector<Data> in = only.in;
  Tensor raised(only.in[1].tensor().type());
  store(raised, std::span<const double>(scores));
  in[1] = raised;
  const Data made = reference_on(*only.node, in).at(0);
  return integers(made.tensor()) == places;
}

}  // namespace

ExactComparison compare_exactly(const Region& region, size_t, const Data& exact, const Data& actual) {
  ExactComparison result;
  if (!exact.is_tensor() || !actual.is_tensor()) return result;
  const std::vector<size_t> places = different_places(exact.tensor(), actual.tensor(), lays_out(region));
  if (places.empty()) return result;
  const std::vector<bool> undefined = undefined_places(region, actual.tensor());
  for (const size_t place : places) ++(place < undefined.size() && undefined[place] ? result.undefined : result.different);
  return result;
}

bool same_selection(const Region& region, size_t i, const Data& found, const Data& wanted) {
  const auto only = alone(region);
  if (!only || !found.is_tensor() || !wanted.is_tensor() || found.tensor().shape() != wanted.tensor().shape()) return false;
  const OpCall call = call_on(*only->node, only->in);
  const std::string& op = only->node->op;
  if (op == "TopK") {
    const bool is_index = region.wanted.at(i) == only->node->outputs.at(1);
    return same_top(call, only->in[0].tensor(), is_index, found.tensor(), wanted.tensor());
  }
  if (found.tensor().dtype() != DType::I64) return false;
  if (op == "NonMaxSuppression") return suppresses_to(*only, found.tensor());
  if (op != "ArgMax" && op != "ArgMin") return false;
  const int64_t axis = call.integer("axis", 0);
  return along(only->in[0].tensor(), found.tensor(), axis) == along(only->in[0].tensor(), wanted.tensor(), axis);
}

bool selects_places(const Region& region) {
  return std::ranges::any_of(region.nodes, [&](NodeId id) {
    const std::string& op = region.graph->node(id).op;
    return op == "ArgMax" || op == "ArgMin" || op == "TopK" || op == "NonMaxSuppression" || op == "NonZero" || op == "Unique";
  });
}

bool may_be_winograd(const Region& region) {
  return std::ranges::any_of(region.nodes, [&](NodeId id) {
    const Node& node = region.graph->node(id);
    if (node.op != "Conv" || node.inputs.size() < 2) return false;
    const auto* const type = std::get_if<TensorType>(&region.graph->value(node.inputs[1]).type);
    const auto ones = [&node](std::string_view key) {
      const auto found = node.attributes.find(key);
      const auto* list = found == node.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
      return list == nullptr || std::ranges::all_of(*list, [](int64_t each) { return each == 1; });
    };
    if (type == nullptr || !type->shape.is_known() || type->shape.rank() < 3 || type->shape.rank() > 4 || !ones("strides")) return false;
    const auto last = type->shape[type->shape.rank() - 1];
    const auto before = type->shape.rank() == 4 ? type->shape[2] : 1;
    return last == 3 && (before == 1 || (before == 3 && ones("dilations")));
  });
}

}  // namespace unmoor
