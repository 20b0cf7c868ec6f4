#include <gtest/gtest.h>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {
namespace {

struct ConvCase {
  int64_t n, c, h, w, out, kh, kw, stride, dilation, group;
  std::vector<int64_t> pads;
};

std::vector<double> convolved(const ConvCase& k, const Tensor& x, const Tensor& weights, const Tensor& bias, int64_t oh, int64_t ow) {
  std::vector<double> y;
  const int64_t per_group = k.c / k.group;
  for (int64_t n = 0; n < k.n; ++n) {
    for (int64_t o = 0; o < k.out; ++o) {
      for (int64_t p = 0; p < oh * ow; ++p) {
        double sum = bias.span<float>()[static_cast<size_t>(o)];
        for (int64_t i = 0; i < per_group * k.kh * k.kw; ++i) {
          const int64_t c = i / (k.kh * k.kw) + o / (k.out / k.group) * per_group;
          const int64_t row = p / ow * k.stride - k.pads[0] + i / k.kw % k.kh * k.dilation;
          const int64_t column = p % ow * k.stride - k.pads[1] + i % k.kw * k.dilation;
          if (row < 0 || row >= k.h || column < 0 || column >= k.w) continue;
          sum += static_cast<double>(x.span<float>()[static_cast<size_t>(((n * k.c + c) * k.h + row) * k.w + column)]) *
                 weights.span<float>()[static_cast<size_t>(o * per_group * k.kh * k.kw + i)];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(CpuConv, convolutions_agree_with_loops_in_double) {
  const std::vector<ConvCase> cases = {
      {1, 3, 5, 7, 4, 3, 3, 1, 1, 1, {1, 1, 1, 1}},    {1, 16, 9, 9, 24, 1, 1, 1, 1, 1, {0, 0, 0, 0}},  {2, 5, 11, 13, 7, 3, 3, 2, 1, 1, {1, 1, 1, 1}},
      {1, 3, 23, 19, 8, 7, 7, 2, 1, 1, {3, 3, 3, 3}},  {1, 6, 8, 8, 4, 3, 3, 1, 2, 2, {2, 2, 2, 2}},    {1, 8, 6, 6, 8, 1, 1, 2, 1, 1, {0, 0, 0, 0}},
      {1, 3, 12, 12, 5, 4, 4, 4, 1, 1, {0, 0, 0, 0}},  {1, 4, 7, 7, 6, 7, 7, 1, 1, 1, {0, 0, 0, 0}},    {1, 64, 14, 14, 48, 3, 3, 1, 1, 1, {1, 1, 1, 1}},
      {1, 12, 9, 17, 12, 3, 3, 1, 1, 12, {1, 1, 1, 1}}, {2, 5, 15, 16, 10, 5, 5, 2, 1, 5, {2, 2, 2, 2}}, {1, 7, 14, 14, 7, 7, 7, 1, 1, 7, {3, 3, 3, 3}},
      {1, 4, 10, 10, 4, 3, 3, 3, 2, 4, {0, 1, 2, 1}},  {1, 5, 9, 6, 4, 2, 3, 1, 1, 1, {0, 2, 1, 0}},    {1, 2, 3, 3, 2, 3, 3, 1, 1, 1, {4, 4, 4, 4}}};
  for_each_target([&](const std::string& target) {
    for (const size_t threads : std::initializer_list<size_t>{1, 2}) {
      const auto device = open_cpu(threads);
      for (size_t i = 0; i < cases.size(); ++i) {
        const ConvCase& k = cases[i];
        const int64_t oh = (k.h + k.pads[0] + k.pads[2] - (k.kh - 1) * k.dilation - 1) / k.stride + 1;
        const int64_t ow = (k.w + k.pads[1] + k.pads[3] - (k.kw - 1) * k.dilation - 1) / k.stride + 1;
        const Tensor x = random_floats({k.n, k.c, k.h, k.w}, 1);
        const Tensor weights = random_floats({k.out, k.c / k.group, k.kh, k.kw}, 2);
        const Tensor bias = random_floats({k.out}, 3);
        const Tensor residual = random_floats({k.n, k.out, oh, ow}, 4);
        const auto found = run_by_hand(*device, {.op = "unmoor:FusedConv",
                                                 .inputs = {x, weights, bias, residual},
                                                 .constant = {false, true, true, false},
                                                 .outputs = {{DType::F32, {k.n, k.out, oh, ow}}},
                                                 .attributes = {{"strides", std::vector<int64_t>{k.stride, k.stride}},
                                                                {"dilations", std::vector<int64_t>{k.dilation, k.dilation}},
                                                                {"pads", k.pads},
                                                                {"group", k.group},
                                                                {"activation", std::string("Relu")}}});
        std::vector<double> wanted = convolved(k, x, weights, bias, oh, ow);
        for (size_t j = 0; j < wanted.size(); ++j) wanted[j] = std::max(0.0, wanted[j] + residual.span<float>()[j]);
        ASSERT_EQ(found.size(), 1U);
        EXPECT_LT(relative_error(found[0], wanted), 2e-6) << "case " << i << ", " << target << ", threads " << threads;
      }
    }
  });
}

// Inputs whose contributions to all taps do not fit in one band.
TEST(CpuConv, large_transposed_convolutions_agree_with_the_reference) {
  const auto device = open_cpu(2);
  for (const char* const text : {"ConvTranspose f32[2,4,100,210]~small f32[4,16,4,4]~small! f32[16]~small! strides=[2,2] pads=[1,1,1,1]",
                                 "ConvTranspose f32[1,2,400000]~small f32[2,3,4]~small! - strides=[3]"}) {
    const CaseGraph graph = build_case(parse_case(text));
    const OpCall call = call_for(graph.graph, graph.graph.nodes().back());
    std::vector<Data> data{graph.inputs.at(0)};
    std::vector<Tensor> tensors{graph.inputs[0].tensor()};
    for (size_t i = 1; i < call.node.inputs.size(); ++i) {
      const Tensor* const constant = call.node.inputs[i] == no_value ? nullptr : graph.graph.constant_tensor(call.node.inputs[i]);
      data.push_back(constant == nullptr ? Data() : Data(*constant));
      tensors.push_back(constant == nullptr ? Tensor() : *constant);
    }
    Outputs wanted(1);
    run_reference(call, data, wanted);
    EXPECT_LT(relative_error(run_kernel(*device, call, tensors).at(0), doubles(wanted.all()[0].tensor())), 1e-6) << text;
  }
}

}  // namespace
}  // namespace unmoor::test
