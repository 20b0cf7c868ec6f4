#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/workbench/causes/evaluate.h"

namespace unmoor::causes {

// A node on its inputs, as a hypothesis sees it.
struct Situation {
  const OpCall& call;  // Floats in float64; every input is known.
  std::span<const Data> inputs;
  std::vector<bool> weights;  // By input: a constant of the model.
  DType stored = DType::F32;  // How the target stores the result.
  size_t output = 0;          // Which one is looked at.

  std::string_view op() const { return call.node.op; }
  bool has(size_t i) const { return i < inputs.size() && inputs[i].is_tensor(); }
  const Tensor& tensor(size_t i) const { return inputs[i].tensor(); }
  bool has_floats(size_t i) const { return has(i) && tensor(i).dtype() == DType::F64; }
  bool is_weight(size_t i) const { return i < weights.size() && weights[i]; }
};

// One kind of cause. Immutable.
struct Entry {
  std::string_view id;
  std::string_view text;  // What the target seems to do: "computes GELU by its tanh form".
  std::string_view advice;
  int cost = 1;                       // Of two that cannot be told apart, the one that costs less is named first.
  bool inside = false;                // Looked for in the expansion of an operator that it does not apply to as a whole.
  std::vector<std::string_view> ops;  // The operators it applies to; empty: any.
  // Every way in which it may apply here; empty if none.
  std::vector<Change> (*changes)(const Situation&) = nullptr;
};

// All of them, in a fixed order.
const std::vector<Entry>& all_entries();
bool applies_to(const Entry& entry, std::string_view op);

// Parts of the table.
void add_activation_causes(std::vector<Entry>& table);
void add_norm_causes(std::vector<Entry>& table);
void add_softmax_causes(std::vector<Entry>& table);
void add_mask_causes(std::vector<Entry>& table);
void add_operand_causes(std::vector<Entry>& table);
void add_window_causes(std::vector<Entry>& table);
void add_weight_causes(std::vector<Entry>& table);
void add_recurrent_causes(std::vector<Entry>& table);
void add_rotary_causes(std::vector<Entry>& table);
void add_quantise_causes(std::vector<Entry>& table);
void add_value_causes(std::vector<Entry>& table);
void add_format_causes(std::vector<Entry>& table);

// What rewrites are made of.
Change unchanged(const Situation& at);
Change with_attribute(const Situation& at, std::string key, Attribute value, std::string detail = {});
Change with_input(const Situation& at, size_t i, Data data, std::string detail = {});
Change with_result(const Situation& at, std::function<void(std::span<double>)> finish, std::string detail = {});
// The same tensor with each element replaced by rule(element); integers stay in range of their dtype.
Tensor mapped(const Tensor& tensor, const std::function<double(double)>& rule);
Tensor filled(const Tensor& like, double value);
// Its only element, if it has but one.
std::optional<double> only_element(const Tensor& tensor);
double greatest_magnitude(const Tensor& tensor);
// Places of the inputs that an operator adds to its result.
std::vector<size_t> bias_inputs(std::string_view op);

// Builds an edited copy of the expansion of `at`'s operator. `edit` gets each node with its inputs in the copy and returns what
// stands for its first output, or nothing to copy it as it is.
struct Copied {
  GraphBuilder& builder;
  const Graph& original;
  const Node& node;
  std::span<const ValueId> inputs;                 // In the copy.
  const std::function<ValueId(ValueId)>& copy_of;  // What stands in the copy for a value of the original.

  const Node* producer(ValueId value) const;  // In the original; null for constants.
};
// Empty if the operator has no expansion or nothing was edited.
std::optional<Change> with_edit(const Situation& at, const std::function<std::optional<ValueId>(const Copied&)>& edit,
                                std::string detail = {});

}  // namespace unmoor::causes
