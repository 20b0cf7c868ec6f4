#include "unmoor/workbench/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/workbench/fake_runner.h"

namespace unmoor {
namespace {

using test::FakeRunner;

const NamedData inputs{{"a_state", Tensor(TensorType{DType::F32, {2, 1}})}, {"z_image", Tensor(TensorType{DType::F32, {8, 3}})}};

BenchResult benched(double seconds, const std::vector<double>& milliseconds, std::vector<FakeRunner*>* made = nullptr, size_t fallback = 0) {
  size_t next = 0;
  const auto open = [&](const std::string& device) {
    auto runner = std::make_unique<FakeRunner>(device);
    runner->declared = {{"z_image", TensorType{}, "", ""}, {"a_state", TensorType{}, "", ""}};
    runner->milliseconds = milliseconds.at(next++);
    runner->planned.fallback_nodes = fallback;
    if (made != nullptr) made->push_back(runner.get());
    return runner;
  };
  std::vector<std::string> devices;
  for (size_t i = 0; i < milliseconds.size(); ++i) devices.push_back(cat("device", i));
  return bench(devices, open, inputs, {.seconds = seconds, .threads = 1});
}

TEST(Bench, the_batch_is_that_of_the_models_first_input) { EXPECT_EQ(benched(0.1, {1}).runs.at(0).batch, 8U); }

TEST(Bench, a_slow_model_runs_six_times_and_a_fast_one_in_fifteen_rounds) {
  EXPECT_EQ(benched(1, {60000}).runs.at(0).warm.size(), 6U);
  EXPECT_EQ(benched(1, {1}).runs.at(0).warm.size(), 15U);
  EXPECT_EQ(benched(1, {100}).runs.at(0).warm.size(), 10U);
}

TEST(Bench, a_ratio_is_of_the_first_to_the_second) {
  const BenchResult result = benched(1, {2, 1});
  ASSERT_EQ(result.ratios.size(), 1U);
  EXPECT_EQ(result.ratios[0].a, "device0");
  EXPECT_DOUBLE_EQ(result.ratios[0].median, 2);
  EXPECT_DOUBLE_EQ(result.ratios[0].low, 2);
  EXPECT_DOUBLE_EQ(result.ratios[0].high, 2);
}

TEST(Bench, what_fell_back_is_in_the_result_and_a_warning) {
  const BenchResult result = benched(0.1, {1}, nullptr, 3);
  EXPECT_EQ(result.to_json().at("runs").at(0).at("fallback_nodes"), 3);
  EXPECT_THAT(result.warnings, testing::Contains(testing::HasSubstr("3 nodes of device0 fell back")));
}

TEST(Bench, percentiles_are_those_of_the_nearest_rank) {
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({1, 2, 3, 4}, 0.5), 2);
  EXPECT_EQ(percentile({5}, 0.99), 5);
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 0.9), 90);
  EXPECT_EQ(percentile(hundred, 0.99), 99);
  EXPECT_EQ(percentile(hundred, 0), 1);
  EXPECT_EQ(percentile(hundred, 1), 100);
}

TEST(Bench, the_range_of_a_median_leaves_out_what_may_lie_beside_it) {
  // The largest k with 2 P(B <= k) <= 0.05 for a binomial B of n and 1/2, from its sums.
  for (const auto& [count, out] : {std::pair<size_t, size_t>{1, 0}, {5, 0}, {6, 0}, {8, 0}, {9, 1}, {11, 1}, {12, 2}, {15, 3}, {100, 39}}) {
    EXPECT_EQ(outside_of_range(count), out) << count;
  }
}

}  // namespace
}  // namespace unmoor
