#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "unmoor/passes/rewrite.h"

namespace unmoor {

// What passes ask of the nodes they match. An attribute of another type counts as absent.
int64_t integer_of(const Node& node, std::string_view key, int64_t otherwise);
double real_of(const Node& node, std::string_view key, double otherwise);
std::string text_of(const Node& node, std::string_view key, std::string_view otherwise);
std::vector<int64_t> integers_of(const Node& node, std::string_view key);
ValueId input_of(const Node& node, size_t i);  // no_value where it is absent.
ValueId output_of(const Node& node);                 // Its first output; no_value if it has none.
size_t output_count(const Node& node);         // Those that are wanted.

// The one element of a constant of a numeric type, whatever its rank.
std::optional<double> scalar_of(const Rewriter& r, ValueId id);
// True if the value is a constant of one element that equals `wanted` as near as its dtype can hold it.
bool is_scalar(const Rewriter& r, ValueId id, double wanted);
// True if the numbers agree as near as a constant of this dtype can hold `wanted`, written with seven digits (ten in float64).
bool is_near(DType dtype, double found, double wanted);
// The elements of a constant integer tensor.
std::optional<std::vector<int64_t>> integers_of(const Rewriter& r, ValueId id);

// The one node that uses the value, if it gives something; else no_node.
NodeId only_follower(const Rewriter& r, ValueId id);
// The number as an attribute of a node that computes in `dtype`: empty if a float cannot hold it, in float64 if not exactly.
std::optional<float> attribute_number(DType dtype, double number);

// The other operand of a node with two inputs, if one is such a scalar.
ValueId operand_beside(const Rewriter& r, const Node& node, double scalar);

// A value as a product: `coefficient` times the leaves. Looks through Mul and through Div by a scalar; below the root only where the
// product is used once.
struct Product {
  double coefficient = 1;
  std::vector<ValueId> leaves;
  std::vector<NodeId> nodes;  // Those looked through, the root first.
};
Product product_of(const Rewriter& r, NodeId root);

bool is_float_tensor(const Rewriter& r, ValueId id);
// A constant of the given dtype from numbers.
Tensor make_tensor(DType dtype, Shape shape, const std::vector<double>& values);

}  // namespace unmoor
