#include "unmoor/workbench/noise/fast_rounding.h"

#include <gtest/gtest.h>

#include "unmoor/workbench/noise/random.h"

namespace unmoor {
namespace {

TEST(FastRounding, gives_the_bits_of_stochastic_rounding_at_every_size) {
  const NoiseRandom random(3, 1, 4);
  for (const DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    const Grid grid = grid_of(dtype);
    const FastRounding fast(grid);
    std::vector<double> values{0.0, -0.0, grid.lowest, grid.largest, grid.smallest(), grid.smallest() / 3, std::nan(""), INFINITY, -INFINITY, 5e-324};
    for (const double end : {grid.lowest, grid.largest, 1.0}) {
      for (const double factor : {1 - 0x1p-52, 1 + 0x1p-52, 1 - 1e-9, 1 + 1e-9, 0.75, 1.999}) values.insert(values.end(), {end * factor, -end * factor});
    }
    for (size_t i = 0; i < 20000; ++i) values.push_back(std::ldexp(random.around(2 * i), static_cast<int>(random.bits(2 * i + 1) % 330) - 165));
    for (size_t i = 0; i < values.size(); ++i) {
      for (const uint64_t bits : {uint64_t{0}, ~uint64_t{0}, random.bits(i)}) {
        EXPECT_EQ(std::bit_cast<uint64_t>(fast(values[i], bits)), std::bit_cast<uint64_t>(stochastically_rounded(grid, values[i], bits))) << values[i];
      }
    }
  }
}

}  // namespace
}  // namespace unmoor
