#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "tests/unit/backend_cpu/support.h"
#include "tests/unit/ops/one_call.h"
#include "unmoor/backends/cpu/cpu.h"

namespace unmoor::test {
namespace {

const DoubleProduct& fast() {
  static const Float64Help help = float64_help(std::make_shared<ThreadPool>(2));
  return help.product;
}

// Numbers in [-1, 1).
std::vector<double> numbers(size_t count, uint32_t seed) {
  std::vector<double> result(count);
  for (double& value : result) {
    seed = seed * 1664525U + 1013904223U;
    value = seed / 2147483648.0 - 1;
  }
  return result;
}

void check_product(size_t m, size_t n, size_t k) {
  const std::vector<double> a = numbers(m * k, 1);
  const std::vector<double> b = numbers(k * n, 2);
  std::vector<double> wanted(m * n, 0.5);
  std::vector<double> found = wanted;
  add_product(a.data(), b.data(), wanted.data(), m, n, k);
  fast()(a.data(), b.data(), found.data(), m, n, k);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], wanted[i], 1e-15 * static_cast<double>(k + 1)) << m << "x" << n << "x" << k;
}

TEST(DoubleProducts, agree_with_the_plain_loops_at_every_edge) {
  for_each_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const size_t m : {1, 5, 6, 7, 13, 64, 200}) {
      for (const size_t n : {1, 7, 8, 9, 33, 130}) {
        for (const size_t k : {1, 3, 255, 256, 257, 600}) check_product(m, n, k);
      }
    }
  });
}

TEST(DoubleProducts, spread_nan_and_infinity_as_the_plain_loops) {
  std::vector<double> a = numbers(size_t{40} * 30, 3);
  const std::vector<double> b = numbers(size_t{30} * 50, 4);
  a[35] = std::numeric_limits<double>::infinity();
  a[700] = std::nan("");
  std::vector<double> wanted(size_t{40} * 50);
  std::vector<double> found = wanted;
  add_product(a.data(), b.data(), wanted.data(), 40, 50, 30);
  fast()(a.data(), b.data(), found.data(), 40, 50, 30);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(std::isnan(found[i]), std::isnan(wanted[i]));
    if (std::isinf(wanted[i])) EXPECT_EQ(found[i], wanted[i]);
  }
}

TEST(DoubleProducts, give_every_case_of_products_and_convolutions_what_the_plain_loops_give) {
  size_t large = 0;
  const Float64Help counted{[&large](const double* a, const double* b, double* c, size_t m, size_t n, size_t k) {
                              ++large;
                              fast()(a, b, c, m, n, k);
                            },
                            nullptr};
  for (const char* name : {"MatMul", "Gemm", "unmoor:FusedMatMul", "Conv", "unmoor:FusedConv", "ConvTranspose"}) {
    for (const Case& one : cases_of(*all_ops().find(name), {DType::F64})) {
      SCOPED_TRACE(one.text);
      const std::vector<Data> wanted = run(one.text);
      const Float64Scope scope(counted);
      EXPECT_LT(relative_error(run(one.text).at(0).tensor(), doubles(wanted.at(0).tensor())), 1e-14);
    }
  }
  EXPECT_GT(large, 10U);
}

TEST(DoubleProducts, last_as_long_as_their_scope_and_on_their_thread) {
  EXPECT_EQ(fast_product(100, 100, 100), nullptr);
  {
    const Float64Help help{fast(), nullptr};
    const Float64Scope scope(help);
    EXPECT_EQ(fast_product(100, 100, 100), &help.product);
    EXPECT_EQ(Float64Scope::current(), &help);
    EXPECT_EQ(fast_product(2, 2, 2), nullptr);  // Not worth it.
    std::thread([] { EXPECT_EQ(fast_product(100, 100, 100), nullptr); }).join();
  }
  EXPECT_EQ(fast_product(100, 100, 100), nullptr);
}

}  // namespace
}  // namespace unmoor::test
