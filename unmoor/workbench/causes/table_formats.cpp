#include <algorithm>
#include <array>

#include "unmoor/base/error.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

std::function<double(double)> rounding_to(const Format& format, Cut cut) {
  return [format, cut](double value) { return on_grid(format, value, cut); };
}

constexpr Cut both_cuts[] = {Cut::Nearest, Cut::TowardZero};
const char* how(Cut cut) { return cut == Cut::Nearest ? "" : "cut off"; }

// What rounding operands can show: operators with sums inside, and functions.
bool takes_operands(const Situation& at) {
  const Op* const op = all_ops().find(at.op());
  return op != nullptr && (op->rounding == Rounding::Sum || op->rounding == Rounding::Function);
}

enum class Which : uint8_t { All, AllButBias, Weights };

// The floating inputs meant, rounded. Empty if there are none.
std::optional<Change> rounded_operands(const Situation& at, const Format& format, Cut cut, Which which) {
  Change change = unchanged(at);
  const auto biases = bias_inputs(at.op());
  bool any = false;
  for (size_t i = 0; i < change.inputs.size(); ++i) {
    const bool is_bias = std::ranges::find(biases, i) != biases.end();
    if (!at.has_floats(i) || (which != Which::All && is_bias) || (which == Which::Weights && !at.is_weight(i))) continue;
    change.inputs[i] = mapped(at.tensor(i), rounding_to(format, cut));
    any = true;
  }
  change.detail = how(cut);
  return any ? std::optional(std::move(change)) : std::nullopt;
}

bool has_bias(const Situation& at) {
  return std::ranges::any_of(bias_inputs(at.op()), [&at](size_t i) { return at.has(i); });
}

// What products take; and their biases with them, as where a whole model's inputs are narrow.
template <const Format& format>
std::vector<Change> inputs_in(const Situation& at) {
  std::vector<Change> changes;
  if (!takes_operands(at)) return changes;
  for (const Cut cut : both_cuts) {
    for (const Which which : {Which::AllButBias, Which::All}) {
      if (which == Which::All && !has_bias(at)) continue;
      if (auto change = rounded_operands(at, format, cut, which)) changes.push_back(std::move(*change));
    }
  }
  return changes;
}

template <const Format& format>
std::vector<Change> weights_in(const Situation& at) {
  std::vector<Change> changes;
  bool any_other = false;
  for (size_t i = 0; i < at.inputs.size(); ++i) any_other = any_other || (at.has_floats(i) && !at.is_weight(i));
  if (!takes_operands(at) || !any_other) return changes;
  for (const Cut cut : both_cuts) {
    if (auto change = rounded_operands(at, format, cut, Which::Weights)) changes.push_back(std::move(*change));
  }
  return changes;
}

template <const Format& format>
std::vector<Change> result_in(const Situation& at) {
  std::vector<Change> changes;
  if (!is_float(at.stored)) return changes;
  for (const Cut cut : both_cuts) {
    changes.push_back(with_result(
        at,
        [cut](std::span<double> values) {
          for (double& value : values) value = on_grid(format, value, cut);
        },
        how(cut)));
  }
  return changes;
}

template <const Format& format>
std::vector<Change> sums_in(const Situation& at) {
  const Op* const op = all_ops().find(at.op());
  const bool has_sums = op != nullptr && (op->rounding == Rounding::Sum || op->category == Category::Recurrent ||
                                          op->category == Category::Attention || op->category == Category::Activation);
  if (!has_sums || !is_float(at.stored)) return {};
  Change change = unchanged(at);
  change.arithmetic = Arithmetic{format, float32_format};
  change.same_values = true;
  return {change};
}

template <const Format& format>
std::vector<Change> steps_in(const Situation& at) {
  const Op* const op = all_ops().find(at.op());
  if (op == nullptr || op->rounding == Rounding::MoveBits || !is_float(at.stored)) return {};
  Change change = unchanged(at);
  change.arithmetic = Arithmetic{format, format};
  change.same_values = true;
  return {change};
}

using Changes = std::vector<Change> (*)(const Situation&);

// One kind in the three formats.
void add_three(std::vector<Entry>& table, std::array<std::string_view, 3> ids, std::array<std::string_view, 3> texts,
               std::string_view advice, int cost, std::array<Changes, 3> changes) {
  for (size_t i = 0; i < 3; ++i) {
    // tf32 last: where it cannot be told from float16, results, sums and steps are more often in float16; inputs are more often
    // in tf32.
    const int more = ids[i].ends_with("tf32") != ids[i].starts_with("inputs") ? 1 : 0;
    table.push_back({ids[i], texts[i], advice, 2 * cost + more, false, {}, changes[i]});
  }
}

}  // namespace

void add_format_causes(std::vector<Entry>& table) {
  add_three(table, {"result-float16", "result-bfloat16", "result-tf32"},
            {"stores its result in float16", "stores its result in bfloat16", "stores its result in tf32"},
            "Keep this value in float32.", 1, {result_in<float16_format>, result_in<bfloat16_format>, result_in<tf32_format>});
  add_three(table, {"weights-float16", "weights-bfloat16", "weights-tf32"},
            {"holds its weights in float16", "holds its weights in bfloat16", "holds its weights in tf32"},
            "Keep the weights in float32, or accept what they lose.", 2,
            {weights_in<float16_format>, weights_in<bfloat16_format>, weights_in<tf32_format>});
  add_three(table, {"inputs-float16", "inputs-bfloat16", "inputs-tf32"},
            {"rounds its inputs to float16", "rounds its inputs to bfloat16", "rounds its inputs to tf32"},
            "Turn off the reduced precision of the target's products (TF32, \"fast math\").", 2,
            {inputs_in<float16_format>, inputs_in<bfloat16_format>, inputs_in<tf32_format>});
  add_three(table, {"sums-float16", "sums-bfloat16", "sums-tf32"},
            {"adds up in float16", "adds up in bfloat16", "adds up in tf32"}, "Ask for sums in float32.", 3,
            {sums_in<float16_format>, sums_in<bfloat16_format>, sums_in<tf32_format>});
  add_three(table, {"steps-float16", "steps-bfloat16", "steps-tf32"},
            {"computes every step in float16", "computes every step in bfloat16", "computes every step in tf32"},
            "Run this operator in float32.", 4, {steps_in<float16_format>, steps_in<bfloat16_format>, steps_in<tf32_format>});
}

}  // namespace unmoor::causes
