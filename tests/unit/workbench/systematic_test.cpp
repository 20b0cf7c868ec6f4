#include "unmoor/workbench/systematic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace unmoor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<double> noise(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

struct Planes {
  Shape shape{2, 3, 16, 20};
  std::vector<double> values = noise(1920, 1);
  std::vector<std::vector<double>> runs = [] {
    std::vector<std::vector<double>> all;
    for (uint32_t run = 0; run < 8; ++run) all.push_back(noise(1920, 100 + run));
    return all;
  }();

  std::vector<std::string> fired(const std::vector<double>& z) const { return find_systematic(z, values, shape, runs)->fired; }
};

TEST(Systematic, noise_alone_fires_nothing) {
  const Planes at;
  for (uint32_t seed = 20; seed < 40; ++seed) EXPECT_THAT(at.fired(noise(1920, seed)), IsEmpty());
}

TEST(Systematic, each_effect_fires_by_its_name) {
  const Planes at;
  std::vector<double> z = noise(1920, 3);
  std::vector<double> biased = z;
  for (double& value : biased) value += 1;
  EXPECT_THAT(at.fired(biased), ElementsAre("bias"));
  std::vector<double> shrunk = z;
  for (size_t i = 0; i < z.size(); ++i) shrunk[i] -= at.values[i] > 0 ? 1 : -1;
  EXPECT_THAT(at.fired(shrunk), ElementsAre("shrink"));
  EXPECT_LT(effects_of(shrunk, at.values, at.shape)->shrink, 0) << "towards zero";
  std::vector<double> wave = z;
  for (size_t i = 0; i < z.size(); ++i) wave[i] += 2 * std::sin(2 * std::numbers::pi * static_cast<double>(i % 20) / 10);
  EXPECT_THAT(at.fired(wave), ElementsAre("smooth"));
  std::vector<double> bordered = z;
  for (size_t i = 0; i < z.size(); ++i) {
    const size_t row = i / 20 % 16;
    const size_t column = i % 20;
    if (row == 0 || row == 15 || column == 0 || column == 19) bordered[i] *= 4;
  }
  EXPECT_THAT(at.fired(bordered), ElementsAre("edge"));
}

TEST(Systematic, small_planes_have_no_edge_and_short_axes_no_neighbours) {
  const std::vector<double> z = noise(2 * 3 * 4 * 5, 9);
  const auto effects = effects_of(z, z, Shape{2, 3, 4, 5});
  EXPECT_FALSE(effects->edge);
  EXPECT_FALSE(effects->smooth);
}

TEST(Systematic, nothing_is_said_of_equal_values_nor_by_fewer_than_four_runs) {
  const Planes at;
  EXPECT_FALSE(find_systematic(std::vector<double>(1920, 0.0), at.values, at.shape, at.runs));
  EXPECT_FALSE(find_systematic({}, {}, Shape{0}, at.runs));
  const std::vector<double> biased(1920, 1.0);
  EXPECT_THAT(find_systematic(biased, at.values, at.shape, std::span(at.runs).first(3))->fired, IsEmpty());
  EXPECT_THAT(at.fired(biased), Contains("bias"));
}

TEST(Systematic, one_outlier_or_infinity_does_not_decide) {
  const Planes at;
  std::vector<double> z = noise(1920, 4);
  z[7] = 1e30;
  z[8] = std::numeric_limits<double>::infinity();
  z[9] = std::nan("");
  EXPECT_THAT(at.fired(z), IsEmpty());
}

}  // namespace
}  // namespace unmoor
