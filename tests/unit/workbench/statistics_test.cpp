#include "unmoor/workbench/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

Tensor normal(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw;
  Tensor tensor(TensorType{DType::F32, {static_cast<int64_t>(count)}});
  for (float& each : tensor.writable_span<float>()) each = static_cast<float>(draw(random));
  return tensor;
}

TEST(Statistics, tell_the_size_of_a_difference_that_nobody_stored) {
  double worst = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Tensor a = normal(5000, seed);
    Tensor b = a.clone();
    std::mt19937 random(seed + 100);
    std::normal_distribution<double> draw(0, 1e-4);
    double squares = 0;
    for (float& each : b.writable_span<float>()) {
      const float moved = each + static_cast<float>(draw(random));
      squares += std::pow(static_cast<double>(moved) - static_cast<double>(each), 2);
      each = moved;
    }
    const double found = estimated_distance(value_statistics(a), value_statistics(b));
    worst = std::max(worst, std::fabs(found / std::sqrt(squares / 5000) - 1));
  }
  EXPECT_LT(worst, 0.25);  // 6 % is one deviation.
  EXPECT_GT(worst, 0.01);
}

TEST(Statistics, one_element_alone_is_seen_exactly) {
  const Tensor a = normal(1000, 1);
  Tensor b = a.clone();
  b.writable_span<float>()[123] += 0.5F;
  const double moved = static_cast<double>(b.span<float>()[123]) - static_cast<double>(a.span<float>()[123]);
  EXPECT_NEAR(estimated_distance(value_statistics(a), value_statistics(b)), moved / std::sqrt(1000), 1e-12);
}

TEST(Statistics, count_what_is_not_finite_and_leave_it_out) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto found = value_statistics(Tensor::from<float>({6}, {1.0F, inf, -inf, inf, std::nanf(""), 3.0F}));
  EXPECT_EQ(found.nan, 1U);
  EXPECT_EQ(found.positive_infinite, 2U);
  EXPECT_EQ(found.negative_infinite, 1U);
  EXPECT_EQ(found.low, 1);
  EXPECT_EQ(found.high, 3);
  EXPECT_EQ(found.mean, 2);
}

TEST(Statistics, the_hash_is_of_all_bits) {
  EXPECT_EQ(value_statistics(normal(10, 1)).hash, value_statistics(normal(10, 1)).hash);
  EXPECT_NE(value_statistics(Tensor::scalar<float>(0.0F)).hash, value_statistics(Tensor::scalar<float>(-0.0F)).hash);
  EXPECT_NE(value_statistics(Tensor::of_strings({2}, {"ab", "c"})).hash, value_statistics(Tensor::of_strings({2}, {"a", "bc"})).hash);
}

TEST(Statistics, are_read_as_they_were_written) {
  const ValueStatistics wrote = value_statistics(normal(50, 2));
  const ValueStatistics read = statistics_from(nlohmann::json::parse(statistics_json(wrote).dump()));
  EXPECT_EQ(read.sketch, wrote.sketch);
  EXPECT_EQ(read.hash, wrote.hash);
  EXPECT_EQ(read.type, wrote.type);
  EXPECT_EQ(read.rms, wrote.rms);
}

TEST(Statistics, broken_ones_are_refused) {
  const nlohmann::json whole = statistics_json(value_statistics(normal(5, 3)));
  for (const auto& [key, value] : whole.items()) {
    nlohmann::json broken = whole;
    broken.erase(key);
    EXPECT_THROW((void)statistics_from(broken), Error) << key;
    broken[key] = nlohmann::json::object();
    EXPECT_THROW((void)statistics_from(broken), Error) << key;
  }
  nlohmann::json vast = whole;
  vast["shape"] = std::vector<int64_t>(3, int64_t{1} << 39);
  EXPECT_THROW((void)statistics_from(vast), Error);
}

}  // namespace
}  // namespace unmoor
