#include "unmoor/workbench/judge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/noise/random.h"

namespace unmoor {
namespace {

Tensor normal(Shape shape, uint64_t seed, double scale = 1) {
  Tensor tensor(TensorType{DType::F32, std::move(shape)});
  const NoiseRandom random(seed, 0, 0);
  const auto values = tensor.writable_span<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(scale * random.normal(i));
  return tensor;
}

Tensor stored(const Tensor& tensor, DType dtype) {
  Tensor result(TensorType{dtype, tensor.shape()});
  store(result, std::span<const double>(doubles(tensor)));
  return result;
}

// One node in a graph of its own, with its exact results.
struct Alone {
  Graph graph;
  Region region{&graph, {}, {}, {}};
  std::vector<Data> exact;

  Alone(const std::string& op, const std::vector<Data>& in, Attributes attributes = {}, size_t outputs = 1) {
    Node node{"node", op, {}, {}, std::move(attributes), {}};
    for (size_t i = 0; i < in.size(); ++i) {
      node.inputs.push_back(graph.add_input(cat("input_", i), type_of(in[i])));
      region.given.emplace_back(node.inputs.back(), in[i]);
    }
    const std::vector<Type> types = types_of(node, in, outputs);
    for (size_t i = 0; i < outputs; ++i) {
      node.outputs.push_back(graph.add_value({cat("output_", i), types.at(i), std::nullopt, {}}));
      region.wanted.push_back(node.outputs.back());
    }
    region.nodes.push_back(graph.add_node(std::move(node)));
    exact = exact_results(region);
  }

  static std::vector<Type> types_of(Node node, const std::vector<Data>& in, size_t outputs) {
    node.outputs.assign(outputs, ValueId{0});
    return call_on(node, in).outputs;
  }

  Judgement judge(const Data& actual, size_t output = 0, const JudgeOptions& options = {}) const {
    std::vector<Data> all(exact.size());
    all[output] = actual;
    return judge_kernel(&region, graph.node(region.nodes[0]).op, exact, all, options).at(output);
  }
};

// A product in float32, one term after the other.
Tensor product(const Tensor& a, const Tensor& b) {
  Tensor y(TensorType{DType::F32, Shape{a.shape()[0], b.shape()[1]}});
  const auto rows = static_cast<size_t>(a.shape()[0]);
  const auto inner = static_cast<size_t>(a.shape()[1]);
  const auto columns = static_cast<size_t>(b.shape()[1]);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (size_t k = 0; k < inner; ++k) sum += a.span<float>()[i * inner + k] * b.span<float>()[k * columns + j];
      y.writable_span<float>()[i * columns + j] = sum;
    }
  }
  return y;
}

Tensor as_float(const Tensor& tensor) { return stored(tensor, DType::F32); }

// ONNX Runtime computes a sum of float16 values in float32, and of its own values before they were rounded: it leaves out a Cast
// and the one back.
TEST(Judge, a_16_bit_reference_may_use_its_values_before_they_are_rounded) {
  const Tensor a = normal({4000}, 5);
  Tensor b = normal({4000}, 6, 0.05);
  for (size_t i = 0; i < 4000; ++i) b.writable_span<float>()[i] -= a.span<float>()[i];
  const Alone sum("Add", {stored(a, DType::F16), stored(b, DType::F16)});
  Tensor unrounded(a.type());
  for (size_t i = 0; i < 4000; ++i) unrounded.writable_span<float>()[i] = a.span<float>()[i] + b.span<float>()[i];
  const std::vector<Data> reference{stored(unrounded, DType::F16)};
  const JudgeOptions both{.both_round = true};
  const auto judged = [&](const Tensor& actual) { return judge_kernel(&sum.region, "Add", reference, std::vector<Data>{actual}, both).at(0); };
  const Tensor honest = stored(sum.exact[0].tensor(), DType::F16);
  EXPECT_EQ(judged(honest).verdict, ValueVerdict::Explained) << judged(honest).note;
  Tensor wrong(honest.type());
  auto values = doubles(honest);
  for (double& value : values) value *= 1.05;
  store(wrong, std::span<const double>(values));
  EXPECT_EQ(judged(wrong).verdict, ValueVerdict::Differ);
}

TEST(Judge, a_sequential_float_product_is_explained_and_one_of_rounded_inputs_is_not) {
  const Tensor a = normal({24, 512}, 1);
  const Tensor b = normal({512, 32}, 2);
  const Alone node("MatMul", {a, b});
  const Judgement honest = node.judge(product(a, b), 0, {.always_floor = true});
  EXPECT_NE(honest.verdict, ValueVerdict::Differ);
  EXPECT_GT(*honest.metrics.excess_e, 0.05);
  EXPECT_LT(*honest.metrics.excess_e, 1.1);
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const Tensor wrong = product(as_float(stored(a, dtype)), as_float(stored(b, dtype)));
    EXPECT_EQ(node.judge(wrong).verdict, ValueVerdict::Differ) << name(dtype);
  }
}

TEST(Judge, one_element_that_is_off_is_found) {
  const Tensor a = normal({24, 64}, 1);
  const Tensor b = normal({64, 32}, 2);
  const Alone node("MatMul", {a, b});
  Tensor actual = product(a, b);
  actual.writable_span<float>()[77] += 1e-4F * 8;
  EXPECT_EQ(node.judge(actual).verdict, ValueVerdict::Differ);
}

TEST(Judge, sixteen_bits_with_sums_in_sixteen_bits_are_named) {
  const Tensor a = stored(normal({16, 512}, 1), DType::F16);
  const Tensor b = stored(normal({512, 16}, 2), DType::F16);
  const Alone node("MatMul", {a, b});
  const Tensor exact = node.exact[0].tensor();
  EXPECT_EQ(node.judge(stored(exact, DType::F16)).verdict, ValueVerdict::Match);
  Tensor narrow(TensorType{DType::F16, exact.shape()});
  std::vector<double> sums(exact.elements());
  const auto x = doubles(a);
  const auto w = doubles(b);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 16; ++j) {
      for (size_t k = 0; k < 512; ++k)
        sums[i * 16 + j] = rounded(DType::F16, sums[i * 16 + j] + rounded(DType::F16, x[i * 512 + k] * w[k * 16 + j]));
    }
  }
  store(narrow, std::span<const double>(sums));
  const Judgement found = node.judge(narrow);
  EXPECT_EQ(found.verdict, ValueVerdict::Suspicious);
  EXPECT_EQ(found.note, "16-bit arithmetic inside explains it");
}

TEST(Judge, moved_bits_are_exact_and_keep_the_sign_of_zero) {
  const Tensor x = Tensor::from<float>({2, 2}, {1, -0.0F, 3, 4});
  const Alone node("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}});
  EXPECT_EQ(node.judge(Tensor::from<float>({2, 2}, {1, 3, -0.0F, 4})).verdict, ValueVerdict::Match);
  EXPECT_EQ(node.judge(Tensor::from<float>({2, 2}, {1, 3, 0, 4})).verdict, ValueVerdict::Differ);
  EXPECT_EQ(node.judge(Tensor::from<float>({2, 2}, {1, std::nextafter(3.0F, 4.0F), -0.0F, 4})).verdict, ValueVerdict::Differ);
}

TEST(Judge, other_places_of_equal_values_are_a_match) {
  const Tensor x = Tensor::from<float>({2, 4}, {1, 5, 5, 2, 7, 0, 1, 2});
  const Alone node("ArgMax", {x}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  EXPECT_EQ(node.judge(Tensor::from<int64_t>({2}, {1, 0})).verdict, ValueVerdict::Match);
  EXPECT_EQ(node.judge(Tensor::from<int64_t>({2}, {2, 0})).verdict, ValueVerdict::Match);
  EXPECT_EQ(node.judge(Tensor::from<int64_t>({2}, {3, 0})).verdict, ValueVerdict::Differ);
  EXPECT_EQ(node.judge(Tensor::from<int64_t>({2}, {9, 0})).verdict, ValueVerdict::Differ) << "out of range";
  const Alone top("TopK", {x, Tensor::from<int64_t>({1}, {2})}, {}, 2);
  EXPECT_EQ(top.judge(Tensor::from<int64_t>({2, 2}, {2, 1, 0, 3}), 1).verdict, ValueVerdict::Match);
  EXPECT_EQ(top.judge(Tensor::from<int64_t>({2, 2}, {1, 3, 0, 3}), 1).verdict, ValueVerdict::Differ);
}

TEST(Judge, what_the_specification_leaves_open_is_undefined) {
  const Tensor x = Tensor::from<float>({3}, {1.5F, -2, 300});
  const Alone cast("Cast", {x}, {{"to", int64_t{2}}});
  Tensor actual = cast.exact[0].tensor().clone();
  EXPECT_EQ(cast.judge(actual).verdict, ValueVerdict::Match);
  actual.writable_span<uint8_t>()[1] ^= 5;
  EXPECT_EQ(cast.judge(actual).verdict, ValueVerdict::Undefined);
  actual.writable_span<uint8_t>()[0] = 9;
  EXPECT_EQ(cast.judge(actual).verdict, ValueVerdict::Differ);
  const Alone scatter("ScatterElements", {Tensor::from<float>({3}, {0, 0, 0}), Tensor::from<int64_t>({3}, {1, 1, 2}),
                                          Tensor::from<float>({3}, {4, 5, 6})});
  EXPECT_EQ(scatter.judge(Tensor::from<float>({3}, {0, 4, 6})).verdict, ValueVerdict::Undefined);
  EXPECT_EQ(scatter.judge(Tensor::from<float>({3}, {0, 5, 7})).verdict, ValueVerdict::Differ);
}

TEST(Judge, infinities_and_nan_are_classes_of_their_own) {
  const Tensor x = Tensor::from<float>({3}, {0, 1, -1});
  const Alone node("Log", {x});
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(node.judge(Tensor::from<float>({3}, {-infinity, 0, nan})).verdict, ValueVerdict::Match);
  EXPECT_EQ(node.judge(Tensor::from<float>({3}, {infinity, 0, nan})).verdict, ValueVerdict::Differ);
  EXPECT_EQ(node.judge(Tensor::from<float>({3}, {-infinity, 0, 0})).verdict, ValueVerdict::Differ);
  EXPECT_EQ(node.judge(Tensor::from<float>({2}, {-infinity, 0})).metrics.problem.empty(), false);
}

TEST(Judge, a_mask_hides_no_error_beside_it) {
  Tensor scores = normal({8, 64}, 3);
  Tensor mask(TensorType{DType::F32, Shape{8, 64}});
  for (size_t i = 0; i < mask.elements(); ++i) mask.writable_span<float>()[i] = i % 3 == 0 ? -1e9F : 0;
  const Alone node("Add", {scores, mask});
  Tensor actual = as_float(node.exact[0].tensor());
  EXPECT_EQ(node.judge(actual).verdict, ValueVerdict::Match);
  actual.writable_span<float>()[1] *= 1.001F;
  EXPECT_EQ(node.judge(actual).verdict, ValueVerdict::Differ);
}

TEST(Judge, a_given_tolerance_decides_alone) {
  const Tensor x = Tensor::from<float>({2}, {1, 2});
  const Alone node("Relu", {x});
  const Tensor off = Tensor::from<float>({2}, {1.01F, 2});
  EXPECT_EQ(node.judge(off).verdict, ValueVerdict::Differ);
  EXPECT_EQ(node.judge(off, 0, {.tolerance = Tolerance{0.1, 0, false}}).verdict, ValueVerdict::Match);
}

TEST(Judge, a_few_large_negative_values_are_no_mask) {
  Tensor x = normal({8, 64}, 3);
  for (const size_t i : {3U, 70U}) x.writable_span<float>()[i] = -2e4F;
  const Tensor w = normal({8, 64}, 4);
  const Alone node("Mul", {x, w});
  Tensor actual = as_float(node.exact[0].tensor());
  EXPECT_EQ(node.judge(actual, 0, {.always_floor = true}).verdict, ValueVerdict::Match);
  actual.writable_span<float>()[3] *= 1 + 1e-5F;
  EXPECT_EQ(node.judge(actual).verdict, ValueVerdict::Differ);
}

TEST(Judge, an_honest_power_of_a_negative_base_is_explained) {
  Tensor base = normal({4, 256}, 5, 2);
  Tensor exponent(TensorType{DType::F32, Shape{4, 256}});
  for (size_t i = 0; i < 1024; ++i) exponent.writable_span<float>()[i] = i % 2 == 0 ? 3 : 5;
  const Alone node("Pow", {base, exponent});
  Tensor actual = as_float(node.exact[0].tensor());
  const NoiseRandom random(6, 0, 0);
  for (size_t i = 0; i < 1024; ++i) actual.writable_span<float>()[i] *= 1 + static_cast<float>(2 * random.around(i)) * 0x1p-23F;
  EXPECT_EQ(node.judge(actual).verdict, ValueVerdict::Explained);
  for (float& value : actual.writable_span<float>()) value *= 1 + 5e-6F;
  EXPECT_EQ(node.judge(actual).verdict, ValueVerdict::Differ);
}

TEST(Judge, an_inverse_transform_is_off_by_no_more_than_its_terms) {
  const Alone node("DFT", {normal({2, 256, 2}, 7)}, {{"inverse", int64_t{1}}});
  Tensor actual = as_float(node.exact[0].tensor());
  EXPECT_EQ(node.judge(actual, 0, {.always_floor = true}).verdict, ValueVerdict::Match);
  for (float& value : actual.writable_span<float>()) value *= 1 + 2e-5F;
  EXPECT_EQ(node.judge(actual).verdict, ValueVerdict::Differ);
}

TEST(Judge, tied_picks_are_none_twice_and_boxes_those_that_are_kept) {
  const Tensor x = Tensor::from<float>({2, 4}, {1, 5, 5, 2, 7, 0, 1, 2});
  const Alone top("TopK", {x, Tensor::from<int64_t>({1}, {2})}, {}, 2);
  EXPECT_EQ(top.judge(Tensor::from<int64_t>({2, 2}, {2, 2, 0, 3}), 1).verdict, ValueVerdict::Differ) << "one place twice";
  const Alone unsorted("TopK", {x, Tensor::from<int64_t>({1}, {2})}, {{"sorted", int64_t{0}}}, 2);
  EXPECT_EQ(unsorted.judge(Tensor::from<int64_t>({2, 2}, {1, 2, 3, 0}), 1).verdict, ValueVerdict::Match);
  EXPECT_EQ(unsorted.judge(Tensor::from<float>({2, 2}, {5, 5, 2, 7}), 0).verdict, ValueVerdict::Match);
  EXPECT_EQ(top.judge(Tensor::from<float>({2, 2}, {5, 5, 2, 7}), 0).verdict, ValueVerdict::Differ);
  // Boxes 0, 1 and 2 have one score; 0 and 1 overlap, 2 lies elsewhere, 3 is a worse one that overlaps 2.
  const Tensor boxes = Tensor::from<float>({1, 4, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9F, 5, 5, 6, 6, 5, 5, 6, 5.9F});
  const Tensor scores = Tensor::from<float>({1, 1, 4}, {0.5F, 0.5F, 0.5F, 0.25F});
  const Alone kept("NonMaxSuppression", {boxes, scores, Tensor::from<int64_t>({1}, {4}), Tensor::from<float>({1}, {0.5F})});
  ASSERT_EQ(kept.exact[0].tensor().shape(), (Shape{2, 3}));
  EXPECT_EQ(kept.judge(Tensor::from<int64_t>({2, 3}, {0, 0, 1, 0, 0, 2})).verdict, ValueVerdict::Match);
  EXPECT_EQ(kept.judge(Tensor::from<int64_t>({2, 3}, {0, 0, 2, 0, 0, 0})).verdict, ValueVerdict::Match);
  EXPECT_EQ(kept.judge(Tensor::from<int64_t>({2, 3}, {0, 0, 0, 0, 0, 1})).verdict, ValueVerdict::Differ) << "they overlap";
  EXPECT_EQ(kept.judge(Tensor::from<int64_t>({2, 3}, {0, 0, 0, 0, 0, 3})).verdict, ValueVerdict::Differ) << "a worse box";
}

// A product, then truncated to integers: the product is not seen.
TEST(Judge, integers_that_rounding_before_them_decides_may_fall_either_way) {
  Graph graph;
  Region region{&graph, {}, {}, {}};
  Tensor x(TensorType{DType::F32, Shape{100}});
  for (size_t i = 0; i < 100; ++i) x.writable_span<float>()[i] = static_cast<float>(i) * 0.1F;
  const Tensor ten = Tensor::from<float>({1}, {10});
  const ValueId in = graph.add_input("x", x.type());
  const ValueId factor = graph.add_input("ten", ten.type());
  region.given = {{in, x}, {factor, ten}};
  const ValueId product = graph.add_value({"product", x.type(), std::nullopt, {}});
  const ValueId whole = graph.add_value({"whole", TensorType{DType::I64, Shape{100}}, std::nullopt, {}});
  region.nodes.push_back(graph.add_node({"mul", "Mul", {in, factor}, {product}, {}, {}}));
  region.nodes.push_back(graph.add_node({"cast", "Cast", {product}, {whole}, {{"to", int64_t{7}}}, {}}));
  region.wanted = {whole};
  const std::vector<Data> exact = exact_results(region);
  Tensor actual(TensorType{DType::I64, Shape{100}});
  size_t off = 0;
  for (size_t i = 0; i < 100; ++i) {
    actual.writable_span<int64_t>()[i] = static_cast<int64_t>(x.span<float>()[i] * 10.0F);
    if (actual.span<int64_t>()[i] != exact[0].tensor().span<int64_t>()[i]) ++off;
  }
  ASSERT_GT(off, 3U) << "what float32 rounds up to a whole number";
  const auto judged = [&](const Tensor& found) { return judge_kernel(&region, "Cast", exact, std::vector<Data>{found}, {}).at(0).verdict; };
  EXPECT_EQ(judged(actual), ValueVerdict::Explained);
  Tensor wrong = actual.clone();
  wrong.writable_span<int64_t>()[35] += 3;
  EXPECT_EQ(judged(wrong), ValueVerdict::Differ);
}

}  // namespace
}  // namespace unmoor
