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

// The scores of NonMaxSuppression's rows [batch, class, box]; boxes [batch, boxes, 4], scores [batch, classes, boxes].
std::vector<double> scores_of(const Tensor& scores, const Tensor& rows) {
  const auto values = doubles(scores);
  const auto places = integers(rows);
  const Shape& shape = scores.shape();
  std::vector<double> result;
  for (size_t i = 0; i + 2 < places.size(); i += 3) {
    const bool inside = places[i] >= 0 && places[i] < shape[0] && places[i + 1] >= 0 && places[i + 1] < shape[1] &&
                        places[i + 2] >= 0 && places[i + 2] < shape[2];
    const auto at = static_cast<size_t>(inside ? (places[i] * shape[1] + places[i + 1]) * shape[2] + places[i + 2] : 0);
    result.push_back(inside ? values[at] : std::numeric_limits<double>::quiet_NaN());
  }
  return result;
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
  if (!only || !found.is_tensor() || found.tensor().dtype() != DType::I64) return false;
  const OpCall call = call_on(*only->node, only->in);
  const std::string& op = only->node->op;
  const auto both = [&](const auto& selected) { return selected(found.tensor()) == selected(wanted.tensor()); };
  if (op == "NonMaxSuppression") return both([&](const Tensor& rows) { return scores_of(only->in[1].tensor(), rows); });
  const bool picks_one = op == "ArgMax" || op == "ArgMin";
  const bool is_top = op == "TopK" && region.wanted.at(i) == only->node->outputs.at(1);
  if (!picks_one && !is_top) return false;
  const int64_t axis = call.integer("axis", picks_one ? 0 : -1);
  return both([&](const Tensor& places) { return along(only->in[0].tensor(), places, axis); });
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
