#include "unmoor/workbench/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/arithmetic.h"
#include "unmoor/workbench/causes/region_cause.h"
#include "unmoor/workbench/error_pattern.h"
#include "unmoor/workbench/noise/random.h"

namespace unmoor {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

Tensor normal(Shape shape, uint64_t seed) {
  Tensor tensor(TensorType{DType::F32, std::move(shape)});
  const NoiseRandom random(seed, 0, 0);
  const auto values = tensor.writable_span<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
  return tensor;
}

// A product of matrices, as a node of a graph, and a kernel of it that rounds what it reads.
struct Product {
  Graph graph;
  Region region{&graph, {}, {}, {}};

  Product() {
    const Tensor a = normal({24, 64}, 1), b = normal({64, 32}, 2);
    const ValueId x = graph.add_input("a", a.type()), w = graph.add_input("b", b.type());
    region.given = {{x, a}, {w, b}};
    region.wanted = {graph.add_value({"y", TensorType{DType::F32, Shape{24, 32}}, std::nullopt, {}})};
    region.nodes.push_back(graph.add_node({"product", "MatMul", {x, w}, {region.wanted[0]}, {}, {}}));
  }

  static std::vector<Data> rounded_product(const std::vector<std::pair<ValueId, Data>>& given, const causes::Format& format) {
    const std::vector<double> a = rounded_values(given.at(0).second.tensor(), format);
    const std::vector<double> b = rounded_values(given.at(1).second.tensor(), format);
    std::vector<double> y(24 * 32);
    for (size_t i = 0; i < 24; ++i) {
      for (size_t j = 0; j < 32; ++j) {
        for (size_t k = 0; k < 64; ++k) y[i * 32 + j] += a[i * 64 + k] * b[k * 32 + j];
      }
    }
    Tensor result(TensorType{DType::F32, Shape{24, 32}});
    store(result, std::span<const double>(y));
    return {result};
  }
  static std::vector<double> rounded_values(const Tensor& tensor, const causes::Format& format) {
    std::vector<double> values = doubles(tensor);
    for (double& value : values) value = causes::on_grid(format, value);
    return values;
  }
};

TEST(Finding, generated_inputs_tell_apart_what_recorded_ones_cannot) {
  const Product product;
  const auto run = [](const auto& given) { return Product::rounded_product(given, causes::tf32_format); };
  RegionCause found = region_cause(product.region, 0, nullptr, run(product.region.given).at(0));
  ASSERT_TRUE(found.cause);
  std::vector<std::string> ids = found.cause->also;
  ids.push_back(found.cause->id);
  ASSERT_THAT(ids, testing::IsSupersetOf({"inputs-tf32", "inputs-float16"})) << "one significand";
  EXPECT_THAT(break_tie(*found.cause, product.region, 0, run, 1), HasSubstr("inputs-float16"));
  EXPECT_EQ(found.cause->id, "inputs-tf32");
  EXPECT_THAT(found.cause->also, testing::Not(Contains("inputs-float16")));
}

TEST(Finding, a_kernel_that_refuses_generated_inputs_leaves_the_tie) {
  const Product product;
  RegionCause found = region_cause(product.region, 0, nullptr, Product::rounded_product(product.region.given, causes::tf32_format).at(0));
  ASSERT_TRUE(found.cause);
  const auto also = found.cause->also;
  const RunAgain refuses = [](const auto&) -> std::vector<Data> { fail(ErrorKind::Unsupported, "not these"); };
  EXPECT_EQ(break_tie(*found.cause, product.region, 0, refuses, 1), "");
  EXPECT_EQ(found.cause->also, also);
}

TEST(Finding, a_target_that_is_right_has_no_cause_but_a_wrong_reference) {
  const Product product;
  const RegionCause found = region_cause(product.region, 0, nullptr, Product::rounded_product(product.region.given, causes::float32_format).at(0));
  EXPECT_FALSE(found.cause);
  EXPECT_THAT(found.note, HasSubstr("the reference does not"));
  EXPECT_FALSE(found.searched) << "it costs nothing of what may be searched";
}

TEST(Finding, a_steady_error_is_systematic_and_rounding_is_not) {
  const Product product;
  Tensor values = Product::rounded_product(product.region.given, causes::float32_format).at(0).tensor();
  const auto random = error_pattern(product.region, 0, values, 1);
  ASSERT_TRUE(random);
  EXPECT_THAT(random->text, StartsWith("random"));
  for (float& value : values.writable_span<float>()) value += 1e-4F;
  const auto steady = error_pattern(product.region, 0, values, 1);
  ASSERT_TRUE(steady);
  EXPECT_THAT(steady->fired, Contains("bias"));
  EXPECT_THAT(steady->text, HasSubstr("too high on the whole"));
}

TEST(Finding, a_region_of_several_nodes_cannot_be_replayed_as_one) {
  Product product;
  const ValueId z = product.graph.add_value({"z", TensorType{DType::F32, Shape{24, 32}}, std::nullopt, {}});
  product.region.nodes.push_back(product.graph.add_node({"relu", "Relu", {product.region.wanted[0]}, {z}, {}, {}}));
  product.region.wanted = {z};
  try {
    (void)write_replay(product.region, DType::F32, {"nowhere", "cpu", ""});
    FAIL() << "it was written";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("2 nodes"));
  }
  EXPECT_FALSE(std::filesystem::exists("nowhere"));
}

}  // namespace
}  // namespace unmoor
