#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/backends/cpu/simd/attention.h"

namespace unmoor::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

cpu::RunningSoftmax weigh(std::vector<float>& scores, float scale, const std::vector<float>& bias = {}) {
  cpu::RunningSoftmax running{-infinity, 0};
  cpu::ScoreRow row{scores.data(), scores.size(), scale};
  if (!bias.empty()) row.bias = bias.data();
  cpu::attention_loops().weigh(row, running);
  return running;
}

TEST(AttentionWeights, are_powers_of_e_relative_to_the_greatest) {
  for_each_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const size_t count : {size_t{1}, size_t{7}, size_t{16}, size_t{61}}) {
      const Tensor drawn = random_floats(Shape{static_cast<int64_t>(count)}, 3);
      for (const bool has_bias : {false, true}) {
        std::vector<float> scores;
        for (const float value : drawn.span<float>()) scores.push_back(value * 90);
        const std::vector<float> products = scores;
        const std::vector<float> bias(has_bias ? count : 0, 0.25F);
        const cpu::RunningSoftmax running = weigh(scores, 0.5F, bias);
        double sum = 0;
        for (size_t i = 0; i < count; ++i) {
          const double score = 0.5 * products[i] + (has_bias ? 0.25 : 0);
          const double wanted = std::exp(score - running.top);
          // The distance to the top is rounded once itself and once as a power of two; the rest is the function's own.
          const double relative = 2 * 0x1p-24 * std::fabs(score - running.top) + 4e-7;
          EXPECT_NEAR(scores[i], wanted, wanted * relative + 1e-37) << i;
          sum += wanted;
        }
        EXPECT_NEAR(running.sum, sum, 1e-6 * sum);
      }
    }
  });
}

TEST(AttentionWeights, of_scores_at_the_ends_of_float32) {
  for_each_target([](const std::string& target) {
    SCOPED_TRACE(target);
    // A mask of the lowest number over all keys hides nothing.
    std::vector<float> scores(20, 1.0F);
    cpu::RunningSoftmax running = weigh(scores, 1, std::vector<float>(20, -std::numeric_limits<float>::max()));
    EXPECT_EQ(scores, std::vector<float>(20, 1.0F));
    EXPECT_EQ(running.sum, 20);
    std::vector<float> large(20, 1e38F);
    large[4] = 3e38F;
    running = weigh(large, 1);
    EXPECT_EQ(running.sum, 1);
    std::vector<float> hidden(20, -infinity);
    EXPECT_EQ(weigh(hidden, 1).sum, 0);
    EXPECT_EQ(hidden, std::vector<float>(20, 0.0F));
    std::vector<float> half{0, -infinity, 0, -200};
    EXPECT_EQ(weigh(half, 1).sum, 2);
    EXPECT_EQ(half, (std::vector<float>{1, 0, 1, 0}));
    for (const size_t at : {size_t{0}, size_t{19}}) {
      std::vector<float> broken(20, 1.0F);
      broken[at] = std::numeric_limits<float>::signaling_NaN();
      EXPECT_TRUE(std::isnan(weigh(broken, 1).sum));
    }
  });
}

}  // namespace
}  // namespace unmoor::test
