#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/backend_cpu/support.h"

namespace unmoor::test {
namespace {

struct Sizes {
  int64_t m, n, k;
};

// act(A B + bias) with B [k,n] or transposed, in double.
std::vector<double> product(const Sizes& s, bool transposed, const Tensor& a, const Tensor& b, const Tensor& bias, bool relu) {
  std::vector<double> c(static_cast<size_t>(s.m * s.n));
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  const auto x = a.span<float>();
  const auto w = b.span<float>();
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = bias ? bias.span<float>()[at(j)] : 0;
      for (int64_t l = 0; l < s.k; ++l) {
        sum += static_cast<double>(x[at(i * s.k + l)]) * w[at(transposed ? j * s.k + l : l * s.n + j)];
      }
      c[at(i * s.n + j)] = relu ? std::max(sum, 0.0) : sum;
    }
  }
  return c;
}

TEST(CpuMatMul, products_of_every_way_agree_with_loops_in_double) {
  const std::vector<Sizes> sizes = {{1, 1, 1},   {1, 200, 33}, {2, 97, 64},   {3, 49, 7},    {4, 192, 300},
                                    {5, 50, 21}, {7, 48, 256}, {128, 64, 64}, {61, 131, 523}, {197, 30, 9}};
  // The same for every target: by size and whether B is transposed.
  std::vector<std::vector<double>> wanted;
  for (const Sizes& s : sizes) {
    for (const bool transposed : {false, true}) {
      const Tensor b = random_floats(transposed ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2);
      wanted.push_back(product(s, transposed, random_floats({s.m, s.k}, 1), b, random_floats({s.n}, 3), true));
    }
  }
  for_each_target([&](const std::string& target) {
    for (const size_t threads : std::initializer_list<size_t>{1, 2}) {
      const auto device = open_cpu(threads);
      for (size_t i = 0; i < sizes.size(); ++i) {
        const Sizes& s = sizes[i];
        for (const int variant : {0, 1, 2, 3}) {
          const bool transposed = (variant & 1) != 0;
          const bool constant = (variant & 2) != 0;
          const Tensor a = random_floats({s.m, s.k}, 1);
          const Tensor b = random_floats(transposed ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2);
          const Tensor bias = random_floats({s.n}, 3);
          const auto found = run_by_hand(*device, {.op = "unmoor:FusedMatMul",
                                                   .inputs = {a, b, bias},
                                                   .constant = {false, constant, constant},
                                                   .outputs = {{DType::F32, {s.m, s.n}}},
                                                   .attributes = {{"transB", int64_t{transposed}}, {"activation", std::string("Relu")}}});
          ASSERT_EQ(found.size(), 1U);
          EXPECT_LT(relative_error(found[0], wanted[2 * i + (transposed ? 1 : 0)]), 2e-6)
              << target << ", threads " << threads << ", " << s.m << " x " << s.n << " x " << s.k << ", variant " << variant;
        }
      }
    }
  });
}

}  // namespace
}  // namespace unmoor::test
