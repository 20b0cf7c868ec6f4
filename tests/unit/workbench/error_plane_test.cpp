#include "unmoor/workbench/error_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "unmoor/workbench/error_pattern.h"

namespace unmoor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> normal(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw;
  std::vector<double> out(count);
  for (double& each : out) each = draw(random);
  return out;
}

std::vector<double> sum(const std::vector<double>& a, const std::vector<double>& b, double factor) {
  std::vector<double> out = a;
  for (size_t i = 0; i < a.size(); ++i) out[i] += factor * b[i];
  return out;
}

TEST(ErrorPlane, NoiseIsRandom) {
  const auto exact = normal(64 * 96, 1);
  for (uint64_t seed = 2; seed < 60; ++seed) {
    const auto plane = error_plane(exact, sum(exact, normal(exact.size(), seed), 1e-6), Shape({64, 96}));
    ASSERT_TRUE(plane);
    EXPECT_FALSE(plane->systematic) << plane->pattern[0];
    EXPECT_THAT(plane->pattern[0], HasSubstr("neither place, value nor neighbours"));
  }
}

TEST(ErrorPlane, AnErrorByChannelLiesAlongItsAxis) {
  const Shape shape({2, 12, 10, 10});
  const auto exact = normal(2400, 1);
  const auto channels = normal(12, 5);
  auto found = sum(exact, normal(exact.size(), 2), 0.3);
  for (size_t i = 0; i < found.size(); ++i) found[i] += channels[i / 100 % 12];
  const auto plane = error_plane(exact, found, shape);
  ASSERT_TRUE(plane && plane->systematic);
  EXPECT_THAT(plane->axes[0], ElementsAre(0, 2, 3));
  EXPECT_THAT(plane->axes[1], ElementsAre(1));
  EXPECT_EQ(plane->rows, 128);  // Of 200.
  EXPECT_EQ(plane->columns, 12);
  EXPECT_THAT(plane->pattern[0], HasSubstr("along axis 1"));
  for (size_t c = 0; c < 12; ++c) EXPECT_NEAR(plane->column_mean[c], channels[c], 0.15);
}

TEST(ErrorPlane, AgreesWithThePatternOfNoiseRunsOnOneAnswer) {
  const Shape shape({2, 12, 10, 10});
  const auto exact = normal(2400, 1);
  const auto channels = normal(12, 5);
  auto by_channel = exact;
  for (size_t i = 0; i < by_channel.size(); ++i) by_channel[i] += channels[i / 100 % 12];
  const auto random = sum(exact, normal(exact.size(), 2), 0.3);

  auto plane = error_plane(exact, by_channel, shape).value();
  ErrorPattern pattern{{}, "random: it has no more pattern than rounding has"};
  agree(pattern, plane);
  EXPECT_THAT(pattern.fired, ElementsAre("plane"));
  EXPECT_THAT(pattern.text, testing::MatchesRegex("systematic: .*along axis 1"));

  plane = error_plane(exact, random, shape).value();
  pattern = {{"bias"}, "systematic: results are too high on the whole"};
  agree(pattern, plane);
  EXPECT_TRUE(plane.systematic);
  EXPECT_EQ(plane.pattern.at(0), "systematic: results are too high on the whole.");

  plane = error_plane(exact, random, shape).value();
  pattern = {{}, "random: it has no more pattern than rounding has"};
  agree(pattern, plane);
  EXPECT_FALSE(plane.systematic);
  EXPECT_TRUE(pattern.fired.empty());
}

TEST(ErrorPlane, WhatFollowsTheValueOneSignOrTheNeighbourIsSystematic) {
  const auto exact = normal(4096, 1);
  const Shape shape({64, 64});
  auto found = exact;
  for (double& each : found) each += 1e-3 * std::sin(3 * each);
  EXPECT_THAT(error_plane(exact, found, shape)->pattern[0], HasSubstr("follows the value"));
  found = normal(4096, 2);
  for (size_t i = 0; i < found.size(); ++i) found[i] = exact[i] + std::fabs(found[i]);
  EXPECT_THAT(error_plane(exact, found, shape)->pattern.back(), HasSubstr("100 % of the errors are positive"));
  double walk = 0;
  const auto steps = normal(4096, 3);
  for (size_t i = 0; i < found.size(); ++i) found[i] = exact[i] + (walk = 0.8 * walk + steps[i]);
  EXPECT_THAT(error_plane(exact, found, shape)->pattern.back(), HasSubstr("Neighbours agree"));
}

TEST(ErrorPlane, ACellShowsTheLargestErrorAndNothingIsCountedTwice) {
  std::vector<double> exact(1000 * 2000);
  auto found = exact;
  found[1500 * 1000 + 7] = -3;
  const auto plane = error_plane(exact, found, Shape({1000, 2000}));
  ASSERT_TRUE(plane);
  EXPECT_EQ(plane->rows * plane->columns, 128 * 256);
  EXPECT_EQ(std::ranges::count(plane->cells, int8_t{-127}), 1);
  EXPECT_EQ(std::ranges::count(plane->cells, int8_t{0}), 128 * 256 - 1);
  size_t elements = 0;
  for (const size_t each : plane->histogram) elements += each;
  EXPECT_EQ(elements, exact.size());
  EXPECT_EQ(plane->histogram[0], 1);
  const ErrorPlane small = shrunk(*plane, 500);
  EXPECT_LE(small.rows * small.columns, 500);
  EXPECT_EQ(small.cells.size(), small.rows * small.columns);
  EXPECT_EQ(std::ranges::count(small.cells, int8_t{-127}), 1);
}

TEST(ErrorPlane, WhatCannotBeDrawnIsNone) {
  const std::vector<double> exact(64);
  EXPECT_FALSE(error_plane(exact, exact, Shape({8, 8})));
  EXPECT_FALSE(error_plane(exact, exact, Shape({8, 9})));
  EXPECT_FALSE(error_plane({}, {}, Shape({0})));
  const std::vector<double> one{1};
  EXPECT_FALSE(error_plane(one, exact, Shape({})));
  auto found = exact;
  found[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(error_plane(exact, found, Shape({8, 8})));  // No finite error: the verdict tells the rest.
  found[4] = 2;
  EXPECT_EQ(error_plane(exact, found, Shape({64}))->rows, 1);
}

TEST(ErrorPlane, AnotherReasonMakesItSystematic) {
  const auto exact = normal(4096, 1);
  auto plane = *error_plane(exact, sum(exact, normal(4096, 2), 1e-3), Shape({64, 64}));
  ASSERT_FALSE(plane.systematic);
  add_reason(plane, "systematic: the border is off more than the inside.");
  EXPECT_TRUE(plane.systematic);
  EXPECT_THAT(plane.pattern, ElementsAre("systematic: the border is off more than the inside."));
}

TEST(ErrorPlane, JsonCarriesCellsAsBytes) {
  std::vector<double> exact(16);
  auto found = exact;
  found[0] = 1;
  found[1] = -1;
  const auto plane = plane_json(*error_plane(exact, found, Shape({1, 16})));
  EXPECT_EQ(plane["data"], "f4EAAAAAAAAAAAAAAAAAAA==");
  EXPECT_EQ(plane["hist"].size(), 33);
  EXPECT_EQ(plane["verdict"], "random");
}

}  // namespace
}  // namespace unmoor
