#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <limits>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/backends/cpu/amx/amx.h"
#include "unmoor/backends/cpu/simd/split.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {
namespace {

using cpu::set_depth;
using cpu::set_rows;
using cpu::set_values;
using cpu::tile_values;

const float inf = std::numeric_limits<float>::infinity();

// Where a value of A, or of B, lies in a set; part 0 is the high one.
size_t place_of_a(size_t part, size_t row, size_t k) { return (2 * part + row / 16) * tile_values + row % 16 * 32 + k; }
size_t place_of_b(size_t part, size_t k, size_t column) { return (2 * part + column / 16) * tile_values + k / 2 * 32 + column % 16 * 2 + k % 2; }

// Numbers of all magnitudes that have parts, both signs, whole and not; the first are the edges.
std::vector<float> numbers_with_parts(size_t count) {
  std::vector<float> numbers{0, 1, -1, 0x1p-103F, -0x1.fffffep-103F, 0x1.fdfffep127F, 0x1.ff7ffep0F, 0x1.01p0F, 0x1.00ff8p0F, 0x1.fefefep50F};
  uint32_t state = 7;
  while (numbers.size() < count) {
    state = state * 1664525U + 1013904223U;
    const float number = std::bit_cast<float>(state ^ (state >> 15));
    if (cpu::first_unsplit(&number, 1) == 1 && number != 0) numbers.push_back(number);
  }
  return numbers;
}

TEST(CpuSplit, three_parts_are_nearest_and_add_up_to_the_number) {
  for_each_target([](const std::string& target) {
    const std::vector<float> b = numbers_with_parts(set_depth * set_rows);
    std::vector<uint16_t> set(set_values);
    cpu::split_loops().columns(b.data(), set_rows, set.data());
    for (size_t i = 0; i < b.size(); ++i) {
      double rest = static_cast<double>(b[i]);
      for (size_t part = 0; part < 3; ++part) {
        const uint16_t found = set[place_of_b(part, i / set_rows, i % set_rows)];
        ASSERT_EQ(found & 0x7fff, to_bf16(rest) & 0x7fff) << target << ", part " << part << " of " << b[i];
        ASSERT_TRUE((found & 0x7fff) == 0 || (found & 0x7f80) != 0) << target << ", part " << part << " of " << b[i] << " is denormal";
        rest -= static_cast<double>(from_bf16(found));
      }
      ASSERT_EQ(rest, 0) << target << ", " << b[i];
    }
    std::vector<float> joined(b.size());
    cpu::split_loops().join_columns(set.data(), joined.data());
    EXPECT_EQ(joined, b) << target;
  });
}

TEST(CpuSplit, numbers_without_parts_are_found) {
  for (const float bad : {0x1.fffffep-104F, -0x1p-126F, 0x1p-149F, -0x1p-140F, 0x1.ffp127F, -inf, inf, std::nanf(""), std::numeric_limits<float>::max()}) {
    for (const size_t at : std::initializer_list<size_t>{0, 4095, 4096, 9999}) {
      std::vector<float> numbers(10000, -0x1p-103F);
      numbers[at] = bad;
      EXPECT_EQ(cpu::first_unsplit(numbers.data(), numbers.size()), at) << bad;
      EXPECT_EQ(cpu::first_unsplit(numbers.data(), at), at) << bad;
    }
  }
  const std::vector<float> good{0, -0.0F, 0x1p-103F, 0x1.fefffep127F, -0x1.fefffep127F};
  EXPECT_EQ(cpu::first_unsplit(good.data(), good.size()), good.size());
}

TEST(CpuSplit, rows_lie_in_sets_and_what_is_missing_is_zero) {
  for_each_target([](const std::string& target) {
    constexpr size_t rows = 19;
    constexpr size_t k = 45;
    constexpr size_t step = 50;
    std::vector<float> a(rows * step, 99);
    for (size_t i = 0; i < rows * k; ++i) a[i / k * step + i % k] = static_cast<float>(1 + i % 100) + 0x1p-12F;
    std::vector<uint16_t> sets(2 * set_values, 0x4242);
    cpu::split_loops().rows(a.data(), step, rows, k, sets.data());
    for (size_t row = 0; row < set_rows; ++row) {
      for (size_t j = 0; j < 2 * set_depth; ++j) {
        const double number = row < rows && j < k ? static_cast<double>(a[row * step + j]) : 0;
        const auto* const set = sets.data() + j / set_depth * set_values;
        double found = 0;
        for (size_t part = 0; part < 3; ++part) found += static_cast<double>(from_bf16(set[place_of_a(part, row, j % set_depth)]));
        ASSERT_EQ(found, number) << target << ", row " << row << ", k " << j;
      }
    }
  });
}

TEST(CpuSplit, rows_that_are_not_for_bfloat16_are_marked_by_nan) {
  for_each_target([](const std::string& target) {
    const std::vector<std::pair<std::vector<float>, bool>> rows{{{0, 0, 0}, false},           {{0x1p-60F, 0x1p-149F, 0}, false}, {{0, 0x1.fffffep-61F, 0}, true},
                                                                {{1e-40F, 0, 0}, true},       {{1, 0, std::nanf("")}, true},     {{1, -inf, 0}, true},
                                                                {{0, 0x1.ffp127F, 0}, true}, {{0, 0x1.fefffep127F, 0}, false}, {{std::bit_cast<float>(0x7fffffffU), 0, 0}, true},
                                                                {{std::bit_cast<float>(0xff800001U), 0, 0}, true}};
    for (const auto& [row, marked] : rows) {
      std::vector<uint16_t> set(set_values);
      cpu::split_loops().rows(row.data(), 3, 1, 3, set.data());
      bool found = false;
      for (size_t i = 0; i < set_values; ++i) found = found || std::isnan(from_bf16(set[i]));
      EXPECT_EQ(found, marked) << target << ": " << row[0] << " " << row[1] << " " << row[2];
    }
  });
}

TEST(CpuSplit, sums_are_taken_and_what_is_not_finite_is_noticed) {
  for_each_target([](const std::string& target) {
    for (const size_t columns : std::initializer_list<size_t>{1, 7, 16, 23, 32}) {
      std::vector<float> sums(cpu::sum_values, std::nanf(""));
      for (size_t i = 0; i < 5 * columns; ++i) sums[i / columns * set_rows + i % columns] = static_cast<float>(i);
      std::vector<float> c(5 * 40, -1);
      EXPECT_TRUE(cpu::split_loops().take(sums.data(), 5, columns, c.data(), 40)) << target;
      for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], i % 40 < columns ? sums[i / 40 * set_rows + i % 40] : -1) << target;
      for (const float bad : {inf, -inf, std::nanf("")}) {
        sums[4 * set_rows + columns - 1] = bad;
        EXPECT_FALSE(cpu::split_loops().take(sums.data(), 5, columns, c.data(), 40)) << target << ", " << bad;
      }
    }
  });
}

// The sum at row 0, column 0 of sets whose high parts are `a` in row 0 and `b` in column 0; 32 of them are a step.
float dot(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<uint16_t> a_sets(2 * set_values);
  std::vector<uint16_t> b_sets(2 * set_values);
  for (size_t k = 0; k < a.size(); ++k) a_sets[k / 32 * set_values + place_of_a(0, 0, k % 32)] = to_bf16(static_cast<double>(a[k]));
  for (size_t k = 0; k < b.size(); ++k) b_sets[k / 32 * set_values + place_of_b(0, k % 32, 0)] = to_bf16(static_cast<double>(b[k]));
  std::vector<float> sums(cpu::sum_values, 99);
  const cpu::ConfiguredTiles configured(cpu::portable_tiles());
  cpu::portable_tiles().multiply({.a = a_sets.data(), .b = b_sets.data(), .sums = sums.data(), .blocks = 1, .steps = 2});
  return sums[0];
}

std::vector<float> in_second_step(float first, std::vector<float> second) {
  second.insert(second.begin(), 32, 0);
  second[0] = first;
  return second;
}

// Sums of 25 bits tell in which order they were made.
TEST(CpuTiles, portable_ones_add_as_the_manual_says) {
  const std::vector<float> ones(64, 1);
  EXPECT_EQ(dot({0x1p24F, 1, 0, 1}, ones), 0x1p24F + 2);                  // Odd places apart from even ones.
  EXPECT_EQ(dot({0x1p24F, 0, 1, 0, 1}, ones), 0x1p24F);                   // Even places one after the other.
  EXPECT_EQ(dot(in_second_step(0x1p24F, {1, 1}), ones), 0x1p24F + 2);     // Both before what was there.
  EXPECT_EQ(dot(in_second_step(0x1p24F, {1, 0, 2}), ones), 0x1p24F + 4);  // To nearest, ties to even.
  EXPECT_EQ(dot({0x1p-133F}, {0x1p120F}), 0);                             // A denormal is zero.
  EXPECT_EQ(dot({0x1p120F}, {-0x1p-127F}), 0);
  EXPECT_EQ(dot({0x1p-64F}, {0x1p-63F}), 0);
  EXPECT_EQ(dot({0x1p-63F}, {0x1p-63F}), 0x1p-126F);
  EXPECT_TRUE(std::isnan(dot({std::nanf("")}, {0})));
  EXPECT_EQ(dot({0x1p127F}, {2}), inf);
}

TEST(CpuTiles, the_check_takes_true_ones_and_says_what_is_wrong_with_others) {
  EXPECT_EQ(cpu::check_tiles(cpu::portable_tiles()), "");
  using Multiply = void (*)(const cpu::TilePart&);
  const std::array<Multiply, 5> wrong{
      [](const cpu::TilePart& part) { (void)part; },
      [](const cpu::TilePart& part) {  // Leaves the last step out.
        cpu::TilePart one = part;
        --one.steps;
        cpu::portable_tiles().multiply(one);
      },
      [](const cpu::TilePart& part) {  // One bit.
        cpu::portable_tiles().multiply(part);
        part.sums[777] = std::nextafter(part.sums[777], inf);
      },
      [](const cpu::TilePart& part) {  // Rows that change places.
        cpu::portable_tiles().multiply(part);
        std::swap_ranges(part.sums, part.sums + set_rows, part.sums + set_rows);
      },
      [](const cpu::TilePart& part) {  // Without the low parts.
        std::vector<uint16_t> a(part.a, part.a + 2 * set_values);
        std::fill(a.begin() + 4 * tile_values, a.begin() + 6 * tile_values, uint16_t{0});
        cpu::TilePart one = part;
        one.a = a.data();
        cpu::portable_tiles().multiply(one);
      }};
  for (const Multiply multiply : wrong) {
    const cpu::TileLoops loops{"wrong", cpu::portable_tiles().configure, multiply, cpu::portable_tiles().release};
    const std::string difference = cpu::check_tiles(loops);
    EXPECT_NE(difference.find("of a product is"), std::string::npos) << difference;
  }
}

TEST(CpuTiles, every_reason_against_amx_is_told) {
  const cpu::AmxFacts good{.built = true, .has_tile = true, .has_bf16 = true, .has_avx512 = true, .saved_state = 0x602e7, .permission = 0};
  EXPECT_EQ(cpu::amx_refusal(good), "");
  const auto refusal = [&](const auto& change) {
    cpu::AmxFacts facts = good;
    change(facts);
    return cpu::amx_refusal(facts);
  };
  EXPECT_EQ(refusal([](auto& facts) { facts.built = false; }), "this program was built without AMX");
  EXPECT_EQ(refusal([](auto& facts) { facts.has_tile = false; }), "this processor has no AMX");
  EXPECT_EQ(refusal([](auto& facts) { facts.has_bf16 = false; }), "this processor has no AMX");
  EXPECT_EQ(refusal([](auto& facts) { facts.has_avx512 = false; }), "this processor has AMX without AVX-512");
  for (const uint64_t state : {uint64_t{0}, uint64_t{0x2e7}, uint64_t{0x202e7}, uint64_t{0x402e7}}) {
    EXPECT_NE(refusal([&](auto& facts) { facts.saved_state = state; }).find("XCR0"), std::string::npos);
  }
  EXPECT_NE(refusal([](auto& facts) { facts.permission = EINVAL; }).find("Linux 5.16"), std::string::npos);
  EXPECT_NE(refusal([](auto& facts) { facts.permission = EPERM; }).find("refuses AMX to this process: Operation not permitted"), std::string::npos);
}

// On whatever machine: tiles that work, or a reason.
TEST(CpuTiles, here_they_work_or_there_is_a_reason) {
  const cpu::TileChoice here = cpu::tiles();
  EXPECT_EQ(here.loops == nullptr, !here.refusal.empty());
  if (here.loops != nullptr) {
    EXPECT_EQ(cpu::check_tiles(*here.loops), "");
  }
  EXPECT_NE(here.loops, &cpu::portable_tiles());
}

}  // namespace
}  // namespace unmoor::test
