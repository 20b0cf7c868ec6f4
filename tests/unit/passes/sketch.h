#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/evaluate.h"
#include "unmoor/base/error.h"
#include "unmoor/graph/text.h"
#include "unmoor/passes/pass.h"

namespace unmoor::test {

// A small graph, written line by line. Values are float32 unless told otherwise.
class Sketch {
 public:
  ValueId input(const std::string& name, Shape shape, DType dtype = DType::F32) { return graph.add_input(name, TensorType{dtype, shape}); }
  ValueId constant(Tensor tensor) { return graph.add_constant(cat("c", graph.values().size()), std::move(tensor)); }
  ValueId scalar(float value) { return constant(Tensor::scalar<float>(value)); }
  ValueId ints(const std::vector<int64_t>& values) {
    return constant(Tensor::from<int64_t>(Shape{static_cast<int64_t>(values.size())}, values));
  }
  // A constant of random numbers.
  ValueId weights(Shape shape, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> draw(low, high);
    Tensor tensor(TensorType{DType::F32, shape});
    for (float& number : tensor.writable_span<float>()) number = draw(random);
    return constant(std::move(tensor));
  }
  // Adds a node named as its operator and number; returns its first output, or no_value.
  ValueId node(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}, size_t outputs = 1) {
    Node made;
    made.name = cat(op, "_", graph.nodes().size());
    made.op = op;
    made.origin.name = made.name;
    made.origin.op = op;
    made.inputs = std::move(inputs);
    made.attributes = std::move(attributes);
    for (size_t i = 0; i < outputs; ++i) {
      Value value;
      value.name = value.origin.name = cat(made.name, ":", i);
      value.type = TensorType{DType::F32, Shape::of_unknown_rank()};
      made.outputs.push_back(graph.add_value(std::move(value)));
    }
    const ValueId first = made.outputs.empty() ? no_value : made.outputs[0];
    graph.add_node(std::move(made));
    return first;
  }
  Graph done(const std::vector<ValueId>& outputs) {
    for (const ValueId id : outputs) graph.mark_output(id, graph.value(id).name);
    return graph;
  }

  Graph graph;
  std::mt19937 random{7};
};

inline Tensor random_tensor(const TensorType& type, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw;
  Tensor tensor(type);
  std::vector<double> numbers(tensor.elements());
  for (double& number : numbers) number = type.dtype == DType::I64 ? std::round(draw(random)) : draw(random);
  store(tensor, numbers);
  return tensor;
}

inline std::vector<Data> random_inputs(const Graph& graph) {
  std::vector<Data> inputs;
  for (const ValueId id : graph.inputs()) {
    inputs.emplace_back(random_tensor(std::get<TensorType>(graph.value(id).type), static_cast<unsigned>(inputs.size()) + 1));
  }
  return inputs;
}

// Both graphs give the same on the same inputs, within `tolerance` of the largest number.
inline void expect_same(const Graph& before, const Graph& after, const std::vector<Data>& inputs, double tolerance = 1e-5) {
  const auto wanted = evaluate(before, inputs);
  const auto found = evaluate(after, inputs);
  ASSERT_EQ(wanted.size(), found.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(wanted[i].tensor().shape(), found[i].tensor().shape()) << to_text(after);
    const auto a = doubles(wanted[i].tensor());
    const auto b = doubles(found[i].tensor());
    double largest = 0;
    for (const double number : a) largest = std::max(largest, std::abs(number));
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], tolerance * largest) << "element " << k << "\n" << to_text(after);
  }
}

inline std::map<std::string, size_t> operators(const Graph& graph) {
  std::map<std::string, size_t> counts;
  for (const Node& node : graph.nodes()) ++counts[node.op];
  return counts;
}

using Counts = std::map<std::string, size_t>;

// Infers and optimises; checks that the result gives the same.
inline Graph optimized_and_checked(const Graph& graph, double tolerance = 1e-5) {
  const Graph inferred = with_shapes(graph, {});
  Graph result = optimized(inferred, {});
  expect_same(graph, result, random_inputs(inferred), tolerance);
  return result;
}

}  // namespace unmoor::test
