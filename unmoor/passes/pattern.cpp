#include "unmoor/passes/pattern.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

template <class T>
const T* attribute_of(const Node& node, std::string_view key) {
  const auto found = node.attributes.find(key);
  return found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second);
}

bool is_number(DType dtype) { return is_float(dtype) || is_integer(dtype) || dtype == DType::Bool; }

}  // namespace

int64_t integer_of(const Node& node, std::string_view key, int64_t otherwise) {
  const auto* held = attribute_of<int64_t>(node, key);
  return held == nullptr ? otherwise : *held;
}

double real_of(const Node& node, std::string_view key, double otherwise) {
  const auto* held = attribute_of<float>(node, key);
  return held == nullptr ? otherwise : static_cast<double>(*held);
}

std::string text_of(const Node& node, std::string_view key, std::string_view otherwise) {
  const auto* held = attribute_of<std::string>(node, key);
  return held == nullptr ? std::string(otherwise) : *held;
}

std::vector<int64_t> integers_of(const Node& node, std::string_view key) {
  const auto* held = attribute_of<std::vector<int64_t>>(node, key);
  return held == nullptr ? std::vector<int64_t>() : *held;
}

ValueId input_of(const Node& node, size_t i) { return i < node.inputs.size() ? node.inputs[i] : no_value; }

ValueId output_of(const Node& node) { return node.outputs.empty() ? no_value : node.outputs[0]; }

size_t output_count(const Node& node) {
  return node.outputs.size() - static_cast<size_t>(std::ranges::count(node.outputs, no_value));
}

std::optional<double> scalar_of(const Rewriter& r, ValueId id) {
  const Tensor* tensor = r.constant(id);
  if (tensor == nullptr || !is_number(tensor->dtype()) || tensor->elements() != 1) return std::nullopt;
  return doubles(*tensor)[0];
}

bool is_near(DType dtype, double found, double wanted) {
  // Half a unit in the last place of the 16-bit floats, and some room.
  const double tolerance = dtype == DType::F64    ? 1e-10
                           : dtype == DType::F32  ? 3e-6
                           : dtype == DType::F16  ? 6e-4
                           : dtype == DType::BF16 ? 4.5e-3
                                                  : 0;
  return std::abs(found - wanted) <= tolerance * std::abs(wanted);
}

bool is_scalar(const Rewriter& r, ValueId id, double wanted) {
  const auto found = scalar_of(r, id);
  return found && is_near(r.constant(id)->dtype(), *found, wanted);
}

std::optional<std::vector<int64_t>> integers_of(const Rewriter& r, ValueId id) {
  const Tensor* tensor = r.constant(id);
  if (tensor == nullptr || !is_integer(tensor->dtype())) return std::nullopt;
  return integers(*tensor);
}

NodeId only_follower(const Rewriter& r, ValueId id) {
  const NodeId user = r.only_user(id);
  return user != no_node && output_of(r.node(user)) != no_value ? user : no_node;
}

std::optional<float> attribute_number(DType dtype, double number) {
  if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return std::nullopt;
  const auto held = static_cast<float>(number);
  const bool lost = dtype == DType::F64 ? static_cast<double>(held) != number : number != 0 && !std::isnormal(held);
  return lost ? std::nullopt : std::optional(held);
}

ValueId operand_beside(const Rewriter& r, const Node& node, double scalar) {
  if (node.inputs.size() != 2) return no_value;
  if (is_scalar(r, node.inputs[1], scalar)) return node.inputs[0];
  return is_scalar(r, node.inputs[0], scalar) ? node.inputs[1] : no_value;
}

Product product_of(const Rewriter& r, NodeId root) {
  constexpr size_t most = 8;  // Deeper products are no pattern.
  Product product;
  std::vector<NodeId> open{root};
  const auto take = [&](ValueId value, NodeId user) {
    const NodeId made = r.maker(value);
    const bool inside = made != no_node && (r.node(made).op == "Mul" || r.node(made).op == "Div") && r.only_user(value) == user &&
                        product.nodes.size() + open.size() < most &&
                        (r.node(made).op == "Mul" || scalar_of(r, input_of(r.node(made), 1)).value_or(0) != 0);
    if (inside) {
      open.push_back(made);
    } else if (const auto scalar = scalar_of(r, value)) {
      product.coefficient *= *scalar;
    } else {
      product.leaves.push_back(value);
    }
  };
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    const Node& node = r.node(id);
    product.nodes.push_back(id);
    if (node.op == "Mul") {
      take(input_of(node, 0), id);
      take(input_of(node, 1), id);
    } else if (const auto divisor = scalar_of(r, input_of(node, 1)); node.op == "Div" && divisor.value_or(0) != 0) {
      product.coefficient /= *divisor;
      take(input_of(node, 0), id);
    } else {
      product.leaves.push_back(output_of(node));
    }
  }
  return product;
}

bool is_float_tensor(const Rewriter& r, ValueId id) {
  const TensorType* type = r.tensor_type(id);
  return type != nullptr && is_float(type->dtype);
}

Tensor make_tensor(DType dtype, Shape shape, const std::vector<double>& values) {
  Tensor tensor(TensorType{dtype, std::move(shape)});
  store(tensor, values);
  return tensor;
}

}  // namespace unmoor
