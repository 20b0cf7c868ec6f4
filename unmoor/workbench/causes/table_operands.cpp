#include <algorithm>
#include <cmath>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

using Places = std::map<std::string_view, std::vector<size_t>>;

// Where operators have what is added to their result.
const Places& bias_places() {
  static const Places places{{"Conv", {2}},
                             {"ConvTranspose", {2}},
                             {"DeformConv", {3}},
                             {"Gemm", {2}},
                             {"LayerNormalization", {2}},
                             {"BatchNormalization", {2}},
                             {"InstanceNormalization", {2}},
                             {"GroupNormalization", {2}},
                             {"unmoor:FusedConv", {2, 3}},
                             {"unmoor:FusedMatMul", {2, 3}},
                             {"RNN", {3}},
                             {"GRU", {3}},
                             {"LSTM", {3}},
                             {"QLinearConv", {8}},
                             {"com.microsoft:BiasGelu", {1}},
                             {"com.microsoft:FastGelu", {1}},
                             {"com.microsoft:SkipLayerNormalization", {3, 4}},
                             {"com.microsoft:SkipSimplifiedLayerNormalization", {3}},
                             {"com.microsoft:Attention", {2}},
                             {"com.microsoft:MultiHeadAttention", {3}},
                             {"com.microsoft:MatMulNBits", {5}}};
  return places;
}

// And where they have what their result is multiplied by.
const Places& scale_places() {
  static const Places places{{"LayerNormalization", {1}},
                             {"RMSNormalization", {1}},
                             {"BatchNormalization", {1}},
                             {"InstanceNormalization", {1}},
                             {"GroupNormalization", {1}},
                             {"com.microsoft:SkipLayerNormalization", {2}},
                             {"com.microsoft:SkipSimplifiedLayerNormalization", {2}}};
  return places;
}

std::vector<std::string_view> ops_of(const Places& places, std::vector<std::string_view> more) {
  for (const auto& entry : places) more.push_back(entry.first);
  return more;
}

bool is_small_number(const Tensor& tensor) {
  const auto value = only_element(tensor);
  return value && std::fabs(*value) <= 0.01;  // An epsilon: see table_norm.cpp.
}

std::vector<Change> no_bias(const Situation& at) {
  std::vector<Change> changes;
  if (at.op() == "Add" || at.op() == "Sub") {
    for (const size_t i : {size_t{1}, size_t{0}}) {
      if (!at.has_floats(i) || !at.is_weight(i) || is_small_number(at.tensor(i)) || greatest_magnitude(at.tensor(i)) >= 1e3)
        continue;
      changes.push_back(with_input(at, i, filled(at.tensor(i), 0)));
    }
    return changes;
  }
  const auto found = bias_places().find(at.op());
  if (found == bias_places().end()) return {};
  for (const size_t i : found->second) {
    if (!at.has(i) || greatest_magnitude(at.tensor(i)) == 0) continue;
    changes.push_back(with_input(at, i, filled(at.tensor(i), 0), found->second.size() > 1 ? cat("input ", i) : ""));
  }
  return changes;
}

// The scale of scores in attention, by its attribute: none, and 1/d in the place of 1/√d.
std::vector<Change> no_score_scale(const Situation& at) {
  std::vector<Change> changes{with_attribute(at, "scale", 1.0F, "1")};
  if (at.has(0) && at.tensor(0).shape().rank() == 4) {
    const auto depth = static_cast<float>(at.tensor(0).shape()[3]);
    if (depth > 1) changes.push_back(with_attribute(at, "scale", 1 / depth, "1/d"));
  } else if (const double own = at.call.real("scale", 1); own != 1) {
    changes.push_back(with_attribute(at, "scale", static_cast<float>(own * own), "its square"));
  }
  return changes;
}

std::vector<Change> no_factor(const Situation& at) {
  std::vector<Change> changes;
  for (const char* const key : {"alpha", "beta"}) {
    const double own = at.call.real(key, 1);
    if (own == 1) continue;
    changes.push_back(with_attribute(at, key, 1.0F, cat("without ", key)));
    if (own > 0 && own < 1) changes.push_back(with_attribute(at, key, static_cast<float>(own * own), cat(key, " squared")));
  }
  return changes;
}

std::vector<Change> no_scale(const Situation& at) {
  if (at.op().ends_with("Attention")) return no_score_scale(at);
  if (at.op() == "Gemm" || at.op().ends_with(":FusedMatMul")) return no_factor(at);
  std::vector<Change> changes;
  if (at.op() == "Mul" || at.op() == "Div") {
    for (const size_t i : {size_t{1}, size_t{0}}) {
      if (!at.has_floats(i) || !at.is_weight(i) || (at.op() == "Div" && i == 0)) continue;
      changes.push_back(with_input(at, i, filled(at.tensor(i), 1)));
      changes.push_back(with_input(at, i, mapped(at.tensor(i), [](double value) { return value * value; }), "applied twice"));
    }
    return changes;
  }
  const auto found = scale_places().find(at.op());
  if (found == scale_places().end()) return {};
  for (const size_t i : found->second) {
    if (at.has_floats(i)) changes.push_back(with_input(at, i, filled(at.tensor(i), 1)));
  }
  return changes;
}

}  // namespace

std::vector<size_t> bias_inputs(std::string_view op) {
  const auto found = bias_places().find(op);
  return found == bias_places().end() ? std::vector<size_t>() : found->second;
}

void add_operand_causes(std::vector<Entry>& table) {
  table.push_back({"missing-bias", "leaves out what is added",
                   "Look for a bias that the conversion dropped, or a fusion that lost it.", 1, true,
                   ops_of(bias_places(), {"Add", "Sub"}), no_bias});
  table.push_back({"missing-scale", "leaves out a factor, or applies it wrongly",
                   "Look for a scale that the conversion dropped or applied twice (1/√d of attention, gamma of a normalisation).",
                   1, true,
                   ops_of(scale_places(), {"Mul", "Div", "Gemm", "unmoor:FusedMatMul", "com.microsoft:FusedMatMul", "Attention",
                                           "unmoor:FusedAttention", "com.microsoft:Attention", "com.microsoft:MultiHeadAttention",
                                           "com.microsoft:GroupQueryAttention"}),
                   no_scale});
}

}  // namespace unmoor::causes
