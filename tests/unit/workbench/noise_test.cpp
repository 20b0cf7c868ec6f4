#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/noise/excess.h"
#include "unmoor/workbench/noise/floor.h"
#include "unmoor/workbench/noise/integers.h"
#include "unmoor/workbench/noise/sums.h"

namespace unmoor {
namespace {

constexpr double float_unit = 0x1p-24;

TEST(Noise, random_numbers_depend_on_their_place_alone) {
  const NoiseRandom random(1, 2, 3);
  EXPECT_EQ(random.bits(5), NoiseRandom(1, 2, 3).bits(5));
  EXPECT_NE(random.bits(5), NoiseRandom(1, 3, 3).bits(5));
  EXPECT_NE(random.bits(5), NoiseRandom(2, 2, 3).bits(5));
  double mean = 0, square = 0, unit = 0;
  constexpr size_t count = 100000;
  for (size_t i = 0; i < count; ++i) {
    mean += random.normal(i) / count;
    square += random.normal(i) * random.normal(i) / count;
    unit += random.unit(i) / count;
  }
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.02);
  EXPECT_NEAR(unit, 0.5, 0.005);
}

TEST(Noise, stochastic_rounding_gives_a_neighbour_with_the_right_mean) {
  const NoiseRandom random(7, 0, 0);
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const Grid grid = grid_of(dtype);
    // A normal number, one of the denormal range, and a negative one.
    for (const double value : {1.0 + 0.3 * grid.unit(), 2.3 * grid.smallest(), -3.7, 0.4 * grid.smallest()}) {
      double mean = 0;
      double step = 0;
      constexpr size_t count = 20000;
      for (size_t i = 0; i < count; ++i) {
        const double made = stochastically_rounded(grid, value, random.bits(i));
        EXPECT_EQ(rounded(dtype, made), made) << "is on the grid";
        step = std::max(step, std::fabs(made - value));
        mean += made / count;
      }
      EXPECT_NEAR(mean, value, 0.02 * step + 1e-300);
      EXPECT_LE(step, std::max(2 * grid.unit() * std::fabs(value), grid.smallest()));
    }
    for (const double exact : {0.0, -2.0, grid.smallest(), grid.largest})
      EXPECT_EQ(stochastically_rounded(grid, exact, ~uint64_t{0}), exact);
  }
  EXPECT_EQ(stochastically_rounded(grid_of(DType::F16), 65519, ~uint64_t{0}), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(stochastically_rounded(grid_of(DType::F16), std::nan(""), 1)));
}

// A sum of products in float32, one after the other.
double sequential(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    volatile float product = a[i] * b[i];
    sum = sum + product;
  }
  return static_cast<double>(sum);
}

TEST(Noise, the_closed_form_of_a_sum_is_just_above_a_sequential_float_sum) {
  const NoiseRandom random(3, 0, 0);
  for (const size_t n : {size_t{64}, size_t{1024}, size_t{8192}}) {
    for (const bool positive : {false, true}) {
      double errors = 0, variances = 0;
      size_t at = 0;
      for (int trial = 0; trial < 200; ++trial) {
        std::vector<float> a(n), b(n);
        double y = 0, squares = 0;
        for (size_t i = 0; i < n; ++i) {
          a[i] = static_cast<float>(positive ? random.unit(at++) : random.normal(at++));
          b[i] = static_cast<float>(positive ? random.unit(at++) : random.normal(at++));
          const double product = static_cast<double>(a[i]) * static_cast<double>(b[i]);
          y += product;
          squares += product * product;
        }
        errors += std::pow(sequential(a, b) - y, 2);
        variances += sum_variance(y, squares, static_cast<double>(n), float_unit);
      }
      const double ratio = std::sqrt(errors / variances);
      EXPECT_GT(ratio, 0.5) << n << positive;
      EXPECT_LT(ratio, 1) << n << positive;
    }
  }
}

// A case's exact results in a dtype against what `change` makes of them.
struct CaseFloor {
  std::vector<NoiseFloor> floors;
  std::vector<Data> stored;  // The exact results rounded once to the dtype.
  const Node* node = nullptr;
  CaseGraph made;

  CaseFloor(const Case& each, DType dtype) : made(build_case(each)) {
    node = &made.graph.nodes().at(0);
    std::vector<Data> in;
    size_t next = 0;
    for (const ValueId id : node->inputs) {
      if (id == no_value)
        in.emplace_back();
      else if (made.graph.value(id).constant)
        in.push_back(*made.graph.value(id).constant);
      else
        in.push_back(made.inputs.at(next++));
    }
    floors = noise_floor(*node, in, std::vector<DType>(node->outputs.size(), dtype), {});
  }
};

bool is_random(const Case& each) {
  return each.op.starts_with("Random") || each.op == "Bernoulli" || each.op == "Multinomial" || each.op == "Dropout";
}

Sampled integer_runs(const std::vector<int64_t>& exact, const std::vector<std::vector<int64_t>>& runs) {
  const Shape shape{static_cast<int64_t>(exact.size())};
  Sampled sampled{Tensor::from<int64_t>(shape, exact)};
  for (const auto& run : runs) sampled.copies.emplace_back(run.empty() ? Data() : Data(Tensor::from<int64_t>(shape, run)));
  return sampled;
}

IntegerAnswer explained_integers(const Sampled& sampled, const std::vector<int64_t>& found, bool places) {
  return explain_integers(sampled, found, places);
}

TEST(NoiseIntegers, what_the_runs_do_not_agree_on_may_be_what_one_of_them_has) {
  const Sampled sampled = integer_runs({3, 9}, {{3, 9}, {5, 9}, {3, 9}, {3, 9}});
  EXPECT_EQ(explained_integers(sampled, {5, 9}, true), IntegerAnswer::Explained);
  EXPECT_EQ(explained_integers(sampled, {4, 9}, false), IntegerAnswer::Explained) << "a step between";
  EXPECT_EQ(explained_integers(sampled, {4, 9}, true), IntegerAnswer::Wrong) << "a place between is any place";
  EXPECT_EQ(explained_integers(sampled, {77, 9}, false), IntegerAnswer::Wrong) << "though the runs do not agree";
}

TEST(NoiseIntegers, where_the_runs_agree_as_many_may_differ_as_in_one_run_alone) {
  const Sampled sampled = integer_runs({1, 2, 3, 4, 5}, {{1, 2, 3, 4, 6}, {1, 3, 3, 4, 5}, {1, 2, 3, 4, 5}});
  EXPECT_EQ(explained_integers(sampled, {2, 2, 3, 4, 5}, false), IntegerAnswer::Explained) << "a tie that no run met";
  EXPECT_EQ(explained_integers(sampled, {2, 2, 4, 4, 5}, false), IntegerAnswer::Wrong);
  EXPECT_EQ(explained_integers(sampled, {5, 2, 3, 4, 5}, false), IntegerAnswer::Wrong) << "further than any step";
  const Sampled still = integer_runs({1, 2}, {{1, 2}, {1, 2}});
  EXPECT_EQ(explained_integers(still, {1, 2}, false), IntegerAnswer::Explained);
  EXPECT_EQ(explained_integers(still, {1, 3}, false), IntegerAnswer::Wrong);
}

TEST(NoiseIntegers, a_run_that_failed_explains_nothing) {
  EXPECT_EQ(explained_integers(integer_runs({1, 2}, {{}, {1, 2}}), {1, 3}, false), IntegerAnswer::Wrong);
  EXPECT_EQ(explained_integers(integer_runs({1, 2}, {{}, {}}), {1, 3}, false), IntegerAnswer::Unknown);
}

TEST(Noise, functions_keep_to_their_domain) {
  for (const std::string text : {"Acos f32[4]{1,-1,0.5,0}", "Asin f32[4]{1,-1,0.5,0.25}", "Acosh f32[3]{1,1,2}", "Pow f32[2]{-2,-3} f32[2]{3,5}"}) {
    const CaseFloor floor(parse_case(text), DType::F32);
    for (const double spread : floor.floors.at(0).spread) {
      EXPECT_TRUE(std::isfinite(spread)) << text;
    }
    EXPECT_GT(floor.floors[0].spread.back(), 0) << text;
  }
}

TEST(Noise, where_no_run_is_finite_the_spread_is_not_known) {
  const double nan = std::nan("");
  const auto made = [](std::vector<double> values) { return Data(Tensor::from<double>({2}, values)); };
  const std::vector<double> spread = spread_of({made({1, 2}), {made({nan, 2}), made({nan, 3})}});
  EXPECT_TRUE(std::isinf(spread[0]));
  EXPECT_GT(spread[1], 0);
  const std::vector<double> exact{1, 2}, actual{9, 2};
  EXPECT_EQ(excess(exact, spread, actual, DType::F32).unknown, 1U);
}

TEST(Noise, every_operator_with_floating_results_has_a_floor_or_says_why_not) {
  std::set<std::string> without;
  size_t with = 0;
  for (const auto& [name, op] : all_ops().all()) {
    for (const Case& each : cases_of(op, {DType::F32})) {
      if (is_random(each)) continue;
      try {
        const CaseFloor floor(each, DType::F32);
        for (const NoiseFloor& output : floor.floors) {
          if (!output.exact.is_tensor() || output.exact.tensor().dtype() != DType::F64 || output.spread.empty()) continue;
          ++with;
          const auto exact = output.exact.tensor().span<double>();
          std::vector<double> stored(exact.begin(), exact.end());
          for (double& value : stored) value = rounded(DType::F32, value);
          const Excess found = excess(exact, output.spread, stored, DType::F32);
          EXPECT_EQ(explained(found, DType::F32, false), Explained::Yes)
              << each.op << " " << each.text << " E " << found.e << " P " << found.p;
        }
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::Unsupported) ADD_FAILURE() << each.text << ": " << error.what();
        without.insert(name);
      }
    }
  }
  EXPECT_GT(with, 1500U);
  const std::set<std::string> known{"AffineGrid",
                                    "BitCast",
                                    "CumProd",
                                    "Det",
                                    "GRU",
                                    "LRN",
                                    "LSTM",
                                    "LpPool",
                                    "MelWeightMatrix",
                                    "RNN",
                                    "Resize",
                                    "ai.onnx.ml:Binarizer",
                                    "ai.onnx.ml:LinearClassifier",
                                    "ai.onnx.ml:LinearRegressor",
                                    "ai.onnx.ml:OneHotEncoder",
                                    "ai.onnx.ml:SVMClassifier",
                                    "ai.onnx.ml:SVMRegressor",
                                    "ai.onnx.preview:FlexAttention",
                                    "com.microsoft:DynamicQuantizeLSTM",
                                    "com.microsoft:GroupQueryAttention",
                                    "com.microsoft:Inverse",
                                    "com.microsoft:MoE",
                                    "com.microsoft:QMoE"};
  EXPECT_EQ(without, known) << "tests/project/precision_test.py holds docs/precision.md to this list";
}

}  // namespace
}  // namespace unmoor
