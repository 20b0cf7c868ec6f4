#include <chrono>
#include <cstring>
#include <numbers>

#include "tests/unit/passes/sketch.h"

// What a pass must leave alone, and what it must not make of it.
namespace unmoor::test {
namespace {

Tensor filled(DType dtype, Shape shape, double number) {
  Tensor tensor(TensorType{dtype, std::move(shape)});
  store(tensor, std::vector<double>(tensor.elements(), number));
  return tensor;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(FuseScale, a_constant_that_widens_one_channel_to_three_stays) {
  for (const auto* op : {"Mul", "Add", "Sub", "Div"}) {
    Sketch s;
    const ValueId grey = s.node("Relu", {s.input("x", {2, 1, 6, 6})});
    const ValueId colour = s.node(op, {grey, s.weights({1, 3, 1, 1}, 1, 2)});
    const Graph result = optimized_and_checked(s.done({s.node("Conv", {colour, s.weights({4, 3, 3, 3})})}));
    EXPECT_EQ(operators(result).count(op), 1U) << op;
  }
}

TEST(FuseScale, a_scale_of_unknown_channels_stays_until_they_are_known) {
  Sketch s;
  const ValueId x = s.node("Relu", {s.input("x", {2, 3, 6, 6})});
  const ValueId y = s.node("Conv", {s.node("Mul", {x, s.weights({3, 1, 1})}), s.weights({4, 3, 3, 3})});
  const Graph graph = s.done({y});
  const Graph early = preoptimized(graph, {});
  EXPECT_EQ(operators(early).count("Mul"), 1U);
  const Graph result = optimized(with_shapes(early, {}), {});
  EXPECT_EQ(operators(result), (Counts{{"Conv", 1}, {"Relu", 1}}));
  expect_same(graph, result, {random_tensor({DType::F32, {2, 3, 6, 6}}, 1)});
}

TEST(FuseScale, float16_weights_that_would_overflow_or_drown_stay) {
  // 100 * 1000 is more than float16 holds, 1e-4 * 1e-4 less than it holds with all digits.
  for (const auto& [weight, scale] : {std::pair(100.0, 1000.0), std::pair(1e-4, 1e-4)}) {
    Sketch s;
    const ValueId x = s.input("x", {1, 2, 4, 4}, DType::F16);
    const ValueId conv = s.node("Conv", {x, s.constant(filled(DType::F16, {3, 2, 1, 1}, weight))});
    const Graph graph = s.done({s.node("Mul", {conv, s.constant(filled(DType::F16, {1}, scale))})});
    const Graph result = optimized(with_shapes(graph, {}), {});
    EXPECT_EQ(operators(result), (Counts{{"Conv", 1}, {"Mul", 1}})) << weight;
  }
  Sketch s;
  const ValueId x = s.input("x", {1, 2, 4, 4}, DType::F16);
  const ValueId conv = s.node("Conv", {x, s.constant(filled(DType::F16, {3, 2, 1, 1}, 0.3))});
  const Graph graph = s.done({s.node("Mul", {conv, s.constant(filled(DType::F16, {1}, 0.5))})});
  EXPECT_EQ(operators(optimized(with_shapes(graph, {}), {})), (Counts{{"Conv", 1}}));
}

TEST(FuseScale, a_shift_before_a_float16_conv_stays) {
  for (const DType dtype : {DType::F16, DType::F32}) {
    Sketch s;
    const ValueId x = s.node("Relu", {s.input("x", {1, 2, 4, 4}, dtype)});
    const ValueId centred = s.node("Sub", {x, s.constant(filled(dtype, {2, 1, 1}, 127))});
    const Graph graph = s.done({s.node("Conv", {centred, s.constant(filled(dtype, {3, 2, 1, 1}, 0.37))})});
    EXPECT_EQ(operators(optimized(with_shapes(graph, {}), {})).count("Sub"), dtype == DType::F16 ? 1U : 0U);
  }
}

TEST(FuseScale, an_infinite_scale_of_a_normalization_stays) {
  Sketch s;
  const ValueId conv = s.node("Conv", {s.input("x", {1, 2, 4, 4}), s.weights({2, 2, 1, 1})});
  const ValueId zeros = s.constant(filled(DType::F32, {2}, 0));
  const ValueId y = s.node("BatchNormalization", {conv, s.weights({2}, 1, 2), s.weights({2}), zeros, zeros}, {{"epsilon", 0.0F}});
  EXPECT_EQ(operators(optimized(with_shapes(s.done({y}), {}), {})).count("BatchNormalization"), 1U);
}

TEST(FuseScale, a_long_chain_of_constants_ends_in_time) {
  Sketch s;
  ValueId y = s.node("Conv", {s.input("x", {1, 2, 4, 4}), s.weights({2, 2, 1, 1})});
  for (int i = 0; i < 10000; ++i) y = s.node(i % 2 == 0 ? "Mul" : "Add", {y, s.constant(filled(DType::F32, {1}, 1 + i % 3 * 0.01))});
  const auto start = std::chrono::steady_clock::now();
  optimized(with_shapes(s.done({y}), {}), {});
  EXPECT_LT(seconds_since(start), 60);
}

TEST(FuseMatMul, a_scale_that_no_float_holds_stays_in_float64) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    Sketch s;
    const ValueId x = s.input("x", {2, 3}, dtype);
    const ValueId product = s.node("MatMul", {x, s.constant(random_tensor({dtype, {3, 4}}, 5))});
    const Graph graph = s.done({s.node("Mul", {product, s.constant(filled(dtype, {}, 0.1))})});
    const Graph result = optimized_and_checked(graph, dtype == DType::F64 ? 1e-15 : 1e-6);
    EXPECT_EQ(operators(result).count("Mul"), dtype == DType::F64 ? 1U : 0U);
  }
}

TEST(FuseMatMul, scales_that_together_are_too_small_for_a_float_stay_apart) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3});
  ValueId y = s.node("MatMul", {x, s.constant(filled(DType::F32, {3, 4}, 1e30))});
  y = s.node("Mul", {s.node("Mul", {y, s.scalar(1e-30F)}), s.scalar(1e-30F)});
  optimized_and_checked(s.done({y}));
}

TEST(FuseMatMul, any_flag_that_is_not_zero_transposes) {
  Sketch s;
  const ValueId turned = s.node("Transpose", {s.input("b", {4, 3})}, {{"perm", std::vector<int64_t>{1, 0}}});
  const ValueId y = s.node("Gemm", {s.input("a", {2, 4}), turned}, {{"transB", int64_t{5}}});  // Turned back again.
  EXPECT_EQ(operators(optimized_and_checked(s.done({y}))).count("Transpose"), 0U);
}

// x * 0.5 * (1 + erf(x * factor)).
Graph gelu_like(DType dtype, double half, double factor) {
  Sketch s;
  const ValueId x = s.input("x", {3, 40}, dtype);
  const auto number = [&](double value) { return s.constant(filled(dtype, {}, value)); };
  const ValueId erf = s.node("Erf", {s.node("Mul", {x, number(factor)})});
  return s.done({s.node("Mul", {s.node("Mul", {x, number(half)}), s.node("Add", {erf, number(1)})})});
}

size_t gelus(const Graph& graph) { return operators(optimized(with_shapes(graph, {}), {})).count("Gelu"); }

TEST(Raise, what_is_only_nearly_gelu_stays) {
  const double exact = 1 / std::numbers::sqrt2;
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) EXPECT_EQ(gelus(gelu_like(dtype, 0.5, exact)), 1U);
  EXPECT_EQ(gelus(gelu_like(DType::F32, 0.50004, exact)), 0U);
  EXPECT_EQ(gelus(gelu_like(DType::F32, 0.5, 0.70715)), 0U);
  EXPECT_EQ(gelus(gelu_like(DType::F16, 0.501, exact)), 0U);
  EXPECT_EQ(gelus(gelu_like(DType::F64, 0.5, static_cast<double>(static_cast<float>(exact)))), 0U);  // float64 knows better.
}

TEST(Raise, a_power_of_nearly_two_is_no_square) {
  Sketch s;
  const ValueId x = s.input("x", {2, 5, 16});
  const ValueId axes = s.ints({-1});
  const ValueId centred = s.node("Sub", {x, s.node("ReduceMean", {x, axes})});
  const ValueId square = s.node("Pow", {centred, s.scalar(2.0001F)});  // NaN of what is negative.
  const ValueId deviation = s.node("Sqrt", {s.node("Add", {s.node("ReduceMean", {square, axes}), s.scalar(1e-5F)})});
  const Graph graph = with_shapes(s.done({s.node("Div", {centred, deviation})}), {});
  EXPECT_EQ(operators(optimized(graph, {})).count("LayerNormalization"), 0U);
}

TEST(Raise, layer_normalization_does_not_lose_a_dimension_that_a_constant_adds) {
  for (int where = 0; where < 3; ++where) {
    Sketch s;
    const auto number = [&](double value, bool wide) {
      return s.constant(filled(DType::F32, wide ? Shape{1, 1, 1} : Shape(), value));
    };
    const ValueId x = s.input("x", {2, 16});
    const ValueId axes = s.ints({-1});
    const ValueId centred = s.node("Sub", {x, s.node("ReduceMean", {x, axes})});
    const ValueId square = s.node("Pow", {centred, number(2, where == 0)});
    const ValueId mean = s.node("ReduceMean", {square, axes});
    const ValueId deviation = s.node("Sqrt", {s.node("Add", {mean, number(1e-5, where == 1)})});
    const ValueId y = s.node("Mul", {centred, s.node("Div", {number(1, where == 2), deviation})});
    const Graph result = optimized_and_checked(s.done({y}), 1e-4);
    EXPECT_EQ(operators(result).count("LayerNormalization"), 0U) << where;
  }
}

std::vector<int64_t> numbers_of(std::string_view bytes) {
  std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Two nodes whose attributes, written one after the other without their lengths, are the same bytes.
TEST(Clean, attributes_that_spell_out_other_attributes_are_not_the_same) {
  Sketch s;
  const ValueId x = s.input("x", {2});
  const ValueId one = s.node("acme:Magic", {x}, {{"a", numbers_of(") bb:0=5) c:3=zz")}, {"c", std::vector<int64_t>{}}});
  const ValueId two =
      s.node("acme:Magic", {x}, {{"a", std::vector<int64_t>{}}, {"bb", int64_t{5}}, {"c", numbers_of("zz) c:3=")}});
  EXPECT_EQ(optimized(with_shapes(s.done({s.node("acme:Join", {one, two})}), {}), {}).nodes().size(), 3U);
}

TEST(Clean, resize_by_one_is_removed_but_not_a_crop) {
  const auto resize = [](Attributes attributes, float scale) {
    Sketch s;
    const ValueId x = s.input("x", {1, 2, 4, 4});
    const ValueId scales = s.constant(Tensor::from<float>({4}, {1, 1, 1, scale}));
    return optimized_and_checked(s.done({s.node("Relu", {s.node("Resize", {x, no_value, scales}, std::move(attributes))})}));
  };
  EXPECT_EQ(operators(resize({}, 1)).count("Resize"), 0U);
  EXPECT_EQ(operators(resize({{"mode", std::string("cubic")}}, 1)).count("Resize"), 1U);
  EXPECT_EQ(operators(resize({}, 1.2F)).count("Resize"), 1U);  // Still four pixels, but not the same ones.
}

TEST(Clean, a_value_used_very_often_costs_no_more_each_time) {
  Sketch s;
  const ValueId x = s.input("x", {1});
  for (int i = 0; i < 200000; ++i) s.node("acme:Dead", {x, x});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(optimized(with_shapes(s.done({s.node("Relu", {x})}), {}), {}).nodes().size(), 1U);
  EXPECT_LT(seconds_since(start), 30);
}

TEST(Clean, many_constant_nodes_of_much_work_end_in_time) {
  Sketch s;
  const ValueId x = s.input("x", {1});
  const ValueId big = s.weights({1024, 1024});
  std::vector<ValueId> sums{x};
  for (int i = 0; i < 3000; ++i) {
    sums.push_back(s.node("ReduceSum", {big}, {{"keepdims", int64_t{0}}, {"noop_with_empty_axes", int64_t{0}}, {"acme", int64_t{i}}}));
  }
  const auto start = std::chrono::steady_clock::now();
  const Graph result = with_shapes(s.done({s.node("Sum", sums)}), {});
  EXPECT_LT(seconds_since(start), 120);
  EXPECT_GT(operators(result).count("ReduceSum"), 0U);  // What could be paid for is folded; the rest runs later.
  EXPECT_LT(operators(result).count("ReduceSum"), 3000U);
}

TEST(Passes, a_node_without_outputs_harms_no_pass) {
  for (const auto* op : {"Relu", "Mul", "Add", "BatchNormalization"}) {
    for (const auto* maker : {"Conv", "MatMul", "Div"}) {
      Sketch s;
      const ValueId x = s.input("x", {1, 2, 4, 4});
      const ValueId other = std::string_view(maker) == "Conv" ? s.weights({2, 2, 1, 1}) : s.weights({4, 4});
      const ValueId made = s.node(maker, {x, other});
      std::vector<ValueId> inputs{made};
      if (std::string_view(op) != "Relu") inputs.push_back(s.scalar(3));
      s.node(op, inputs, {}, 0);
      const Graph graph = s.done({s.node("Exp", {x})});
      for (const Pass& pass : all_passes()) EXPECT_EQ(pass.run(graph).outputs().size(), 1U) << pass.name;
    }
  }
}

TEST(Widened, an_empty_sequence_is_one_of_float64) {
  Sketch s;
  const Graph wide = with_shapes(widened(s.done({s.node("SequenceEmpty", {})})), {});
  EXPECT_NE(to_text(wide.value(wide.outputs()[0]).type).find("float64"), std::string::npos) << to_text(wide);
}

}  // namespace
}  // namespace unmoor::test
