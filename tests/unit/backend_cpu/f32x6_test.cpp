#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/unit/backend_cpu/check_case.h"
#include "tests/unit/backend_cpu/support.h"
#include "unmoor/backends/cpu/amx/amx.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {
namespace {

// Kernels multiply by the portable tiles while it lives.
struct PortableTiles {
  explicit PortableTiles(bool any_size = true) { cpu::use_tiles_for_tests(&cpu::portable_tiles(), any_size); }
  ~PortableTiles() { cpu::use_tiles_for_tests(nullptr); }
  PortableTiles(const PortableTiles&) = delete;
  PortableTiles& operator=(const PortableTiles&) = delete;
};

// An operator on tensors; the second one is constant.
struct Product {
  std::string op = "MatMul";
  std::vector<Tensor> inputs;
  Shape result;
  Attributes attributes = {};

  template <class Use>
  auto with_call(const Use& use) const {
    Node node{op, op, {}, {ValueId{100}}, attributes, {}};
    std::vector<std::optional<Type>> types;
    std::vector<const Tensor*> constants;
    for (size_t i = 0; i < inputs.size(); ++i) {
      node.inputs.push_back(inputs[i] ? ValueId{static_cast<uint32_t>(i)} : no_value);
      types.push_back(inputs[i] ? std::optional<Type>(inputs[i].type()) : std::nullopt);
      constants.push_back(i == 1 ? &inputs[i] : nullptr);
    }
    return use(OpCall{node, types, {TensorType{DType::F32, result}}, constants});
  }
};

const Kernel& kernel_named(Device& device, const std::string& op, const std::string& name) {
  const auto kernels = device.kernels().find(op);
  const auto found = std::ranges::find(kernels, name, &Kernel::name);
  if (found == kernels.end()) throw std::runtime_error("no kernel " + name);
  return *found;
}

Tensor run_by(Device& device, const Product& product, const std::string& name) {
  return product.with_call([&](const OpCall& call) {
    const Kernel& kernel = kernel_named(device, product.op, name);
    const Support support = kernel.supports(call);
    EXPECT_TRUE(support) << name << ": " << support.detail;
    return support ? run_kernel(device, call, product.inputs, &kernel).at(0) : Tensor();
  });
}

std::string refusal_of(Device& device, const Product& product, const std::string& name) {
  return product.with_call([&](const OpCall& call) { return kernel_named(device, product.op, name).supports(call).detail; });
}

std::vector<double> reference_of(const Product& product) {
  return product.with_call([&](const OpCall& call) {
    std::vector<Data> data;
    for (const Tensor& input : product.inputs) data.push_back(input ? Data(input) : Data());
    Outputs wanted(1);
    run_reference(call, data, wanted);
    return doubles(wanted.all()[0].tensor());
  });
}

TEST(CpuF32x6, products_of_all_sizes_and_ends_agree_with_the_reference) {
  const PortableTiles portable;
  const std::vector<std::array<int64_t, 3>> sizes{{1, 1, 1}, {33, 31, 65}, {31, 70, 33}, {64, 32, 32}, {5, 33, 300}};
  for_each_target([&](const std::string& target) {
    const auto device = open_cpu(2);
    for (const auto& [m, n, k] : sizes) {
      const Tensor a = random_floats({m, k}, 1);
      const std::vector<Product> products{
          {.inputs = {a, random_floats({k, n}, 2)}, .result = {m, n}},
          {.op = "Gemm", .inputs = {a, random_floats({n, k}, 2), random_floats({m, 1}, 3)}, .result = {m, n},
           .attributes = {{"transB", int64_t{1}}, {"alpha", 0.5F}, {"beta", 3.0F}}},
          {.op = "unmoor:FusedMatMul", .inputs = {a, random_floats({k, n}, 2), random_floats({n}, 3), random_floats({m, n}, 4)}, .result = {m, n},
           .attributes = {{"activation", std::string("Relu")}}},
          {.op = "unmoor:FusedMatMul", .inputs = {a, random_floats({k, n}, 2), random_floats({m, n}, 3)}, .result = {m, n},
           .attributes = {{"activation", std::string("Gelu")}}}};
      for (const Product& product : products) {
        const std::string name = product.op == "Gemm" ? "cpu.gemm.f32x6" : "cpu.matmul.f32x6";
        EXPECT_LT(relative_error(run_by(*device, product, name), reference_of(product)), 2e-6)  // As the other kernels; Gelu alone has 1e-6.
            << product.op << ", " << m << " x " << k << " x " << n << ", " << target;
      }
    }
  });
}

// More rows than are worked on at once, in pieces that several threads share.
TEST(CpuF32x6, many_rows_in_slabs_agree_with_the_other_kernel) {
  const PortableTiles portable;
  const Product product{.inputs = {random_floats({3, 411, 40}, 1), random_floats({40, 70}, 2)}, .result = {3, 411, 70}};
  for (const size_t threads : std::initializer_list<size_t>{1, 3}) {
    const auto device = open_cpu(threads);
    EXPECT_LT(relative_error(run_by(*device, product, "cpu.matmul.f32x6"), doubles(run_by(*device, product, "cpu.matmul.packed"))), 5e-7);
  }
}

TEST(CpuF32x6, convolutions_in_place_and_gathered_agree_with_the_reference) {
  const PortableTiles portable;
  struct Sizes {
    int64_t n, c, h, w, out, kernel, stride, pad, dilation;
  };
  const std::vector<Sizes> cases{{2, 24, 5, 7, 40, 1, 1, 0, 1}, {1, 5, 9, 8, 33, 3, 1, 1, 1}, {2, 7, 11, 9, 6, 3, 2, 1, 1}, {1, 6, 9, 9, 3, 3, 1, 2, 2}, {1, 40, 6, 6, 8, 1, 2, 0, 1}};
  for_each_target([&](const std::string& target) {
    const auto device = open_cpu(2);
    for (const Sizes& s : cases) {
      const int64_t h = (s.h + 2 * s.pad - (s.kernel - 1) * s.dilation - 1) / s.stride + 1;
      const int64_t w = (s.w + 2 * s.pad - (s.kernel - 1) * s.dilation - 1) / s.stride + 1;
      const Product product{.op = "unmoor:FusedConv",
                            .inputs = {random_floats({s.n, s.h, s.w, s.c}, 1), random_floats({s.out, s.c, s.kernel, s.kernel}, 2), random_floats({s.out}, 3),
                                       random_floats({s.n, h, w, s.out}, 4)},
                            .result = {s.n, h, w, s.out},
                            .attributes = {{"strides", std::vector<int64_t>{s.stride, s.stride}},
                                           {"dilations", std::vector<int64_t>{s.dilation, s.dilation}},
                                           {"pads", std::vector<int64_t>{s.pad, s.pad, s.pad, s.pad}},
                                           {"layout", std::string("NHWC")},
                                           {"activation", std::string("Relu")}}};
      EXPECT_LT(relative_error(run_by(*device, product, "cpu.conv.f32x6"), reference_of(product)), 1e-6)
          << s.c << " channels, kernel " << s.kernel << ", stride " << s.stride << ", " << target;
    }
  });
}

TEST(CpuF32x6, every_case_of_its_operators_agrees_with_the_reference) {
  const PortableTiles portable;
  Count count;
  const auto device = open_cpu(2);
  for (const char* const name : {"MatMul", "Gemm", "unmoor:FusedMatMul", "Conv", "unmoor:FusedConv"}) {
    const Op* const op = all_ops().find(name);
    ASSERT_NE(op, nullptr);
    for (const Case& one : cases_of(*op, {DType::F32})) check_case(*device, *op, one, "portable tiles", count);
  }
  for (const char* const kernel : {"cpu.matmul.f32x6", "cpu.gemm.f32x6", "cpu.conv.f32x6"}) EXPECT_TRUE(count.kernels.contains(kernel)) << kernel;
}

using Draw = std::function<float(size_t row, size_t column, float uniform)>;

Tensor drawn(Shape shape, uint32_t seed, const Draw& draw) {
  Tensor tensor = random_floats(std::move(shape), seed);
  const auto columns = static_cast<size_t>(tensor.shape()[1]);
  const auto values = tensor.writable_span<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = draw(i / columns, i % columns, values[i]);
  return tensor;
}

// Root of the mean square of errors, each by the sum of its products' magnitudes: what float32 arithmetic is judged by.
double error_of(const Tensor& found, const Tensor& a, const Tensor& b) {
  const auto m = static_cast<size_t>(a.shape()[0]);
  const auto k = static_cast<size_t>(a.shape()[1]);
  const auto n = static_cast<size_t>(b.shape()[1]);
  double sum = 0;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double exact = 0;
      double magnitude = 0;
      for (size_t l = 0; l < k; ++l) {
        const double term = static_cast<double>(a.span<float>()[i * k + l]) * static_cast<double>(b.span<float>()[l * n + j]);
        exact += term;
        magnitude += std::abs(term);
      }
      const double error = magnitude == 0 ? 0 : (static_cast<double>(found.span<float>()[i * n + j]) - exact) / magnitude;
      sum += error * error;
    }
  }
  return std::sqrt(sum / static_cast<double>(m * n));
}

TEST(CpuF32x6, errors_are_not_above_those_of_fma) {
  const PortableTiles portable;
  const auto device = open_cpu(2);
  const Draw plain = [](size_t, size_t, float u) { return u; };
  const Draw wide = [](size_t row, size_t column, float u) { return std::ldexp(u, static_cast<int>((row * 7 + column * 13) % 61) - 30); };
  const Draw positive = [](size_t, size_t, float u) { return std::abs(u) + 1; };
  const Draw cancelling = [](size_t row, size_t column, float u) { return ((row + column) % 2 == 0 ? 1000.0F : -1000.0F) + u; };
  const Draw with_denormals = [](size_t, size_t column, float u) { return column % 3 == 0 ? u * 1e-39F : u; };
  const std::vector<std::pair<Draw, Draw>> draws{{plain, plain}, {positive, positive}, {cancelling, positive}, {wide, plain}, {plain, wide}, {wide, wide}, {with_denormals, plain}};
  for (size_t i = 0; i < draws.size(); ++i) {
    const Product product{.inputs = {drawn({37, 384}, 1, draws[i].first), drawn({384, 40}, 2, draws[i].second)}, .result = {37, 40}};
    const double six = error_of(run_by(*device, product, "cpu.matmul.f32x6"), product.inputs[0], product.inputs[1]);
    const double fma = error_of(run_by(*device, product, "cpu.matmul.packed"), product.inputs[0], product.inputs[1]);
    EXPECT_LE(six, fma) << "inputs " << i;
    RecordProperty(cat("inputs_", i), cat(six, " by six products, ", fma, " by fma"));
  }
}

// Rows that bfloat16 cannot hold are as the other kernel gives them, bit for bit; others are not touched by them.
TEST(CpuF32x6, rows_of_unusual_numbers_are_those_of_fma) {
  const PortableTiles portable;
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const std::vector<float> unusual{inf, -inf, nan, 3.4e38F, -3.4e38F, 0x1p-126F, 1e-40F, 1e-45F};
  for (const size_t threads : std::initializer_list<size_t>{1, 2}) {
    const auto device = open_cpu(threads);
    for (size_t i = 0; i < unusual.size(); ++i) {
      const bool all = std::abs(unusual[i]) < 1e-30F;  // Small numbers are unusual where there is nothing else in a row.
      const Draw draw = [&](size_t row, size_t column, float u) { return row == 35 && (all || column == 50) ? unusual[i] * (all ? u + 2 : 1) : u; };
      const Product product{.op = "unmoor:FusedMatMul",
                            .inputs = {drawn({70, 100}, 1, draw), random_floats({100, 45}, 2), random_floats({45}, 3), random_floats({70, 45}, 4)},
                            .result = {70, 45},
                            .attributes = {{"activation", std::string("Relu")}}};
      const Tensor found = run_by(*device, product, "cpu.matmul.f32x6");
      const Tensor wanted = run_by(*device, product, "cpu.matmul.packed");
      for (size_t j = 0; j < 45; ++j) {
        const float x = found.span<float>()[35 * 45 + j];
        const float y = wanted.span<float>()[35 * 45 + j];
        EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << unusual[i] << ": " << x << ", not " << y;
      }
      for (size_t j = 0; j < 45; ++j) EXPECT_NEAR(found.span<float>()[2 * 45 + j], wanted.span<float>()[2 * 45 + j], 1e-5);
    }
  }
}

TEST(CpuF32x6, products_that_overflow_are_those_of_fma) {
  const PortableTiles portable;
  const auto device = open_cpu(1);
  const Draw large = [](size_t row, size_t, float u) { return row == 3 ? u * 1e30F : u; };
  const Product product{.inputs = {drawn({40, 64}, 1, large), drawn({64, 33}, 2, [](size_t, size_t, float u) { return u * 1e10F; })}, .result = {40, 33}};
  EXPECT_LT(relative_error(run_by(*device, product, "cpu.matmul.f32x6"), doubles(run_by(*device, product, "cpu.matmul.packed"))), 1e-6);
}

TEST(CpuF32x6, refuses_what_is_not_for_it_and_says_why) {
  const auto device = open_cpu(1);
  const auto product = [](int64_t m, int64_t k, int64_t n) { return Product{.inputs = {random_floats({m, k}, 1), random_floats({k, n}, 2)}, .result = {m, n}}; };
  const auto refusal = [&](const Product& one) { return refusal_of(*device, one, "cpu.matmul.f32x6"); };
  if (const cpu::TileChoice here = cpu::tiles(); here.loops == nullptr) {
    EXPECT_EQ(refusal(product(128, 128, 128)), here.refusal);
  }
  const PortableTiles portable(false);
  EXPECT_EQ(refusal(product(128, 128, 128)), "");
  EXPECT_EQ(refusal(product(64, 128, 128)), "64 rows, not over 64");
  EXPECT_EQ(refusal(product(128, 63, 128)), "weights of 63 x 128, not 64 x 64");
  EXPECT_EQ(refusal(product(128, 128, 32)), "weights of 128 x 32, not 64 x 64");
  EXPECT_EQ(refusal(product(65, 65, 128)), "65 x 65 x 128 fills less than 3/4 of its tiles");
  EXPECT_EQ(refusal({.inputs = {random_floats({2, 70, 64}, 1), random_floats({2, 64, 64}, 2)}, .result = {2, 70, 64}}), "2 products, not one");
  EXPECT_EQ(refusal_of(*device, {.op = "Gemm", .inputs = {random_floats({64, 128}, 1), random_floats({64, 64}, 2)}, .result = {128, 64}, .attributes = {{"transA", int64_t{1}}}},
                       "cpu.gemm.f32x6"),
            "transA");
  for (const float bad : {1e-39F, 1e-32F, 3.4e38F, std::numeric_limits<float>::infinity()}) {
    Product one = product(128, 64, 64);
    one.inputs[1].writable_span<float>()[77] = bad;
    EXPECT_EQ(refusal(one), cat("weight 77 is ", bad, ": parts of bfloat16 hold 0 and magnitudes from 1e-31 to 3.39e38"));
    EXPECT_EQ(refusal_of(*device, one, "cpu.matmul.packed"), "");
  }
}

TEST(CpuF32x6, is_asked_first_and_two_options_switch_it_off) {
  const auto device = make_cpu_backend()->open(0);
  const auto first = [&](const char* op) { return device->kernels().find(op)[0].name; };
  EXPECT_EQ(first("MatMul"), "cpu.matmul.f32x6");
  EXPECT_EQ(first("Gemm"), "cpu.gemm.f32x6");
  for (const char* const key : {"amx", "exact"}) {
    device->set_option(key, key == std::string("amx") ? "off" : "on");
    for (const auto& [op, kernels] : device->kernels().all()) {
      for (const Kernel& kernel : kernels) EXPECT_EQ(kernel.name.find("f32x6"), std::string::npos) << kernel.name;
    }
    device->set_option(key, key == std::string("amx") ? "on" : "off");
    EXPECT_EQ(first("unmoor:FusedMatMul"), "cpu.matmul.f32x6");
  }
  device->set_option("winograd", "off");
  EXPECT_NO_THROW((void)kernel_named(*device, "Conv", "cpu.conv.f32x6"));
  EXPECT_THROW(device->set_option("amx", "2"), Error);
  const std::string amx = device->info().versions.at("amx");
  EXPECT_TRUE(amx == "on" || amx == "off: " + cpu::tiles().refusal) << amx;
}

TEST(CpuF32x6, weights_are_packed_once_for_all_shapes) {
  const PortableTiles portable;
  const auto device = open_cpu(2);
  const Tensor weights = random_floats({70, 40}, 1);
  std::vector<Prepared> prepared;
  for (const int64_t m : {3, 70}) {
    const Product product{.inputs = {random_floats({m, 70}, 1), weights}, .result = {m, 40}};
    prepared.push_back(product.with_call([&](const OpCall& call) { return kernel_named(*device, "MatMul", "cpu.matmul.f32x6").prepare(call, *device); }));
    EXPECT_EQ(cpu::machine_of(*device).weights().bytes(), 2U * 3 * cpu::set_values * 2);
  }
}

}  // namespace
}  // namespace unmoor::test
