#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/base/error.h"
#include "unmoor/ops/cases.h"
#include "unmoor/passes/in_float32.h"
#include "unmoor/passes/infer.h"
#include "unmoor/runtime/session.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

Data converted(const Data& data, const Type& to) {
  const DType dtype = std::get<TensorType>(to).dtype;
  if (!data.is_tensor() || data.tensor().dtype() == dtype) return data;
  Tensor result(TensorType{dtype, data.tensor().shape()});
  store(result, doubles(data.tensor()));
  return result;
}

// A graph of the call alone.
struct Alone {
  Graph graph;
  std::vector<Data> inputs;
};

// The case's call in float32, on the case's values.
Alone in_float32(const CaseGraph& made, const Float32Call& wide) {
  Alone alone;
  Node node = wide.node;
  size_t given = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == no_value) continue;
    const Value& value = made.graph.value(node.inputs[i]);
    const Data data = converted(value.constant ? *value.constant : made.inputs.at(given), *wide.call.inputs[i]);
    if (value.constant) {
      node.inputs[i] = alone.graph.add_constant(cat("c", i), data.tensor());
    } else {
      ++given;
      node.inputs[i] = alone.graph.add_input(cat("x", i), *wide.call.inputs[i]);
      alone.inputs.push_back(data);
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == no_value) continue;
    Value value;
    value.name = cat("y", i);
    value.type = wide.call.outputs[i];
    node.outputs[i] = alone.graph.add_value(std::move(value));
  }
  const auto outputs = node.outputs;
  alone.graph.add_node(std::move(node));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != no_value) alone.graph.mark_output(outputs[i], cat("y", i));
  }
  return alone;
}

std::shared_ptr<const Plan> planned(const Graph& graph, const std::shared_ptr<Device>& cpu) {
  return make_plan(with_shapes(graph, {}), {cpu}, {});
}

// Signs of zero included; NaNs are all the same.
bool same_numbers(const Tensor& a, const Tensor& b) {
  const auto same = [](double x, double y) { return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y)); };
  return a.type() == b.type() && std::ranges::equal(doubles(a), doubles(b), same);
}

TEST(Float32, a_16_bit_operator_gives_the_float32_result_rounded_once) {
  const std::shared_ptr<Device> cpu = make_cpu_backend()->open(0);
  size_t count = 0;
  for (const auto& [name, op] : all_ops().all()) {
    for (const Case& a_case : cases_of(op, {DType::F16, DType::BF16})) {
      const CaseGraph made = build_case(a_case);
      const auto wide = made.graph.nodes().empty() ? nullptr : in_float32(call_for(made.graph, made.graph.nodes()[0]));
      if (wide == nullptr || !std::ranges::all_of(wide->call.outputs, is_known)) continue;
      const auto plan = planned(made.graph, cpu);
      if (plan->placements.size() < 2 || plan->placements.back().kernel != "cpu.cast.loop") continue;
      const Alone alone = in_float32(made, *wide);
      const auto alone_plan = planned(alone.graph, cpu);
      // The node must have stayed whole in both: parts may round otherwise.
      if (alone_plan->placements.empty()) continue;
      const auto kernel = alone_plan->placements.at(0).kernel;
      if (std::ranges::none_of(plan->placements, [&](const Placement& each) { return each.kernel == kernel; })) continue;
      ++count;
      const auto expected = Session(alone_plan).run_in_order(alone.inputs);
      const auto actual = Session(plan).run_in_order(made.inputs);
      ASSERT_EQ(expected.size(), actual.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        const Tensor rounded = converted(expected[i], actual[i].tensor().type()).tensor();
        EXPECT_TRUE(same_numbers(rounded, actual[i].tensor())) << a_case.text << ": output " << i;
      }
    }
  }
  EXPECT_GT(count, 500U);
}

}  // namespace
}  // namespace unmoor
