#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

constexpr double shut = -1e3;  // What is added to shut something out is at most this.
constexpr double finite_masks[] = {-1e4, -10};

bool shuts_out(const Tensor& tensor) {
  return std::ranges::any_of(doubles(tensor), [](double value) { return value <= shut; });
}

// Inputs that are masks, by operator.
std::vector<size_t> mask_places(std::string_view op) {
  if (op == "Attention") return {3};
  if (op == "unmoor:FusedAttention") return {3, 4};
  if (op == "com.microsoft:Attention") return {3, 5};
  if (op == "com.microsoft:MultiHeadAttention") return {4, 5};
  return {};
}

std::vector<Change> no_mask(const Situation& at) {
  std::vector<Change> changes;
  if (at.op() == "Add") {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (at.has_floats(i) && shuts_out(at.tensor(i))) changes.push_back(with_input(at, i, filled(at.tensor(i), 0)));
    }
    return changes;
  }
  if (at.op() == "Where") {
    for (const size_t i : {size_t{1}, size_t{2}}) {
      if (!at.has_floats(i) || !(only_element(at.tensor(i)).value_or(0) <= shut)) continue;
      const double keep = i == 1 ? 0 : 1;
      changes.push_back(with_input(at, 0, filled(at.tensor(0), keep)));
    }
    return changes;
  }
  for (const size_t i : mask_places(at.op())) {
    if (at.has(i)) changes.push_back(with_input(at, i, Data()));
  }
  for (const char* const key : {"is_causal", "unidirectional"}) {
    if (at.call.integer(key, 0) != 0) changes.push_back(with_attribute(at, key, int64_t{0}, "the causal one"));
  }
  return changes;
}

// A mask of truths as numbers to add.
Tensor as_numbers(const Tensor& mask, double hidden) {
  Tensor result(TensorType{DType::F64, mask.shape()});
  std::vector<double> values = doubles(mask);
  for (double& value : values) value = value != 0 ? 0 : hidden;
  store(result, values);
  return result;
}

// The causal rule of Attention as a mask to add; empty where a cache moves it.
std::optional<Tensor> causal_mask(const Situation& at, double hidden) {
  const bool plain = at.has(0) && at.has(1) && at.tensor(0).shape().rank() == 4 && !at.has(3) && !at.has(4) && !at.has(6);
  if (at.op() != "Attention" || at.call.integer("is_causal", 0) == 0 || !plain) return std::nullopt;
  const int64_t length = at.tensor(0).shape()[2];
  const int64_t total = at.tensor(1).shape()[2];
  Tensor mask(TensorType{DType::F64, Shape{length, total}});
  std::vector<double> values(mask.elements());
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t k = 0; k < total; ++k) values[static_cast<size_t>(i * total + k)] = k > i ? hidden : 0;
  }
  store(mask, values);
  return mask;
}

std::vector<Change> finite_mask(const Situation& at) {
  std::vector<Change> changes;
  for (const double hidden : finite_masks) {
    const auto limited = [hidden](double value) { return std::max(value, hidden); };
    const std::string detail = cat(hidden);
    if (at.op() == "Add") {
      for (const size_t i : {size_t{0}, size_t{1}}) {
        if (at.has_floats(i) && shuts_out(at.tensor(i)))
          changes.push_back(with_input(at, i, mapped(at.tensor(i), limited), detail));
      }
      continue;
    }
    if (at.op() == "Where") {
      for (const size_t i : {size_t{1}, size_t{2}}) {
        const auto value = at.has_floats(i) ? only_element(at.tensor(i)) : std::nullopt;
        if (value && *value <= shut) changes.push_back(with_input(at, i, filled(at.tensor(i), hidden), detail));
      }
      continue;
    }
    for (const size_t i : mask_places(at.op())) {
      if (!at.has(i)) continue;
      if (at.op() == "unmoor:FusedAttention" && i == 4) {
        changes.push_back(with_attribute(at, "hidden_score", static_cast<float>(hidden), detail));
      } else if (at.tensor(i).dtype() == DType::Bool) {
        changes.push_back(with_input(at, i, as_numbers(at.tensor(i), hidden), detail));
      } else if (at.has_floats(i) && shuts_out(at.tensor(i))) {
        changes.push_back(with_input(at, i, mapped(at.tensor(i), limited), detail));
      }
    }
    if (const auto mask = causal_mask(at, hidden)) {
      Change change = with_attribute(at, "is_causal", int64_t{0}, detail);
      change.inputs.resize(std::max<size_t>(change.inputs.size(), 4));
      change.inputs[3] = *mask;
      change.node.inputs.resize(change.inputs.size(), ValueId{0});
      changes.push_back(std::move(change));
    }
  }
  return changes;
}

}  // namespace

void add_mask_causes(std::vector<Entry>& table) {
  const std::vector<std::string_view> ops{
      "Attention", "unmoor:FusedAttention", "com.microsoft:Attention", "com.microsoft:MultiHeadAttention", "Add", "Where"};
  table.push_back({"missing-mask", "leaves out the mask",
                   "Hand the mask to the target's attention, and check which of its forms it takes.", 1, true, ops, no_mask});
  table.push_back({"mask-finite", "adds a finite number where the mask has -infinity, so hidden places still count a little",
                   "Use a mask of -infinity, or the lowest number of the dtype.", 1, true, ops, finite_mask});
}

}  // namespace unmoor::causes
