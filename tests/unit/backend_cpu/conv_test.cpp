#include <gtest/gtest.h>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/ops/cases.h"
#include "unmoor/ops/window.h"
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

const std::vector<ConvCase>& conv_cases() {
  static const std::vector<ConvCase> cases = {
      {1, 3, 5, 7, 4, 3, 3, 1, 1, 1, {1, 1, 1, 1}},    {1, 16, 9, 9, 24, 1, 1, 1, 1, 1, {0, 0, 0, 0}},  {2, 5, 11, 13, 7, 3, 3, 2, 1, 1, {1, 1, 1, 1}},
      {1, 3, 23, 19, 8, 7, 7, 2, 1, 1, {3, 3, 3, 3}},  {1, 6, 8, 8, 4, 3, 3, 1, 2, 2, {2, 2, 2, 2}},    {1, 8, 6, 6, 8, 1, 1, 2, 1, 1, {0, 0, 0, 0}},
      {1, 3, 12, 12, 5, 4, 4, 4, 1, 1, {0, 0, 0, 0}},  {1, 4, 7, 7, 6, 7, 7, 1, 1, 1, {0, 0, 0, 0}},    {1, 64, 14, 14, 48, 3, 3, 1, 1, 1, {1, 1, 1, 1}},
      {1, 12, 9, 17, 12, 3, 3, 1, 1, 12, {1, 1, 1, 1}}, {2, 5, 15, 16, 10, 5, 5, 2, 1, 5, {2, 2, 2, 2}}, {1, 7, 14, 14, 7, 7, 7, 1, 1, 7, {3, 3, 3, 3}},
      {1, 4, 10, 10, 4, 3, 3, 3, 2, 4, {0, 1, 2, 1}},  {1, 5, 9, 6, 4, 2, 3, 1, 1, 1, {0, 2, 1, 0}},    {1, 2, 3, 3, 2, 3, 3, 1, 1, 1, {4, 4, 4, 4}},
      {1, 16, 16, 15, 33, 3, 3, 1, 1, 1, {1, 1, 1, 1}}, {2, 24, 13, 18, 16, 3, 3, 1, 1, 1, {0, 2, 1, 0}}, {1, 19, 20, 9, 24, 3, 3, 1, 1, 1, {1, 1, 1, 1}},
      {1, 48, 30, 31, 48, 1, 1, 1, 1, 3, {0, 0, 0, 0}},  {1, 40, 9, 33, 40, 3, 3, 1, 1, 40, {1, 1, 1, 1}}, {1, 21, 16, 29, 21, 5, 5, 1, 1, 21, {2, 2, 2, 2}},
      {1, 35, 12, 17, 35, 3, 3, 2, 1, 35, {1, 1, 1, 1}}, {1, 1024, 3, 3, 24, 1, 1, 1, 1, 1, {0, 0, 0, 0}}};
  return cases;
}

struct Layout {
  const char* name;
  const char* winograd;
  double tolerance;
};

Tensor in_layout(const Layout& layout, const Tensor& tensor) {
  if (std::string_view(layout.name) == "NCHW") return tensor;
  Tensor moved(TensorType{DType::F32, channels_last_shape(tensor.shape())});
  store(moved, moved_last(doubles(tensor), tensor.shape()));
  return moved;
}

TEST(CpuConv, convolutions_agree_with_loops_in_double) {
  const std::vector<ConvCase>& cases = conv_cases();
  // Winograd's points lose some digits.
  const std::vector<Layout> layouts{{"NCHW", "on", 2e-6}, {"NHWC", "off", 2e-6}, {"NHWC", "on", 2e-5}};
  for_each_target([&](const std::string& target) {
    for (const size_t threads : std::initializer_list<size_t>{1, 2}) {
      const auto device = open_cpu(threads);
      for (size_t i = 0; i < cases.size() * layouts.size(); ++i) {
        const ConvCase& k = cases[i / layouts.size()];
        const Layout& layout = layouts[i % layouts.size()];
        const bool last = std::string_view(layout.name) == "NHWC";
        if (last && k.group > 1 && (k.group != k.c || k.out != k.c)) continue;  // Refused: too few outputs a group.
        device->set_option("winograd", layout.winograd);
        const int64_t oh = (k.h + k.pads[0] + k.pads[2] - (k.kh - 1) * k.dilation - 1) / k.stride + 1;
        const int64_t ow = (k.w + k.pads[1] + k.pads[3] - (k.kw - 1) * k.dilation - 1) / k.stride + 1;
        const Tensor x = random_floats({k.n, k.c, k.h, k.w}, 1);
        const Tensor weights = random_floats({k.out, k.c / k.group, k.kh, k.kw}, 2);
        const Tensor bias = random_floats({k.out}, 3);
        const Tensor residual = random_floats({k.n, k.out, oh, ow}, 4);
        const Tensor moved_residual = in_layout(layout, residual);
        const auto found = run_by_hand(*device, {.op = "unmoor:FusedConv",
                                                 .inputs = {in_layout(layout, x), weights, bias, moved_residual},
                                                 .constant = {false, true, true, false},
                                                 .outputs = {moved_residual.type()},
                                                 .attributes = {{"strides", std::vector<int64_t>{k.stride, k.stride}},
                                                                {"dilations", std::vector<int64_t>{k.dilation, k.dilation}},
                                                                {"pads", k.pads},
                                                                {"group", k.group},
                                                                {"layout", std::string(layout.name)},
                                                                {"activation", std::string("Relu")}}});
        std::vector<double> wanted = convolved(k, x, weights, bias, oh, ow);
        for (size_t j = 0; j < wanted.size(); ++j) wanted[j] = std::max(0.0, wanted[j] + residual.span<float>()[j]);
        if (last) wanted = moved_last(wanted, residual.shape());
        ASSERT_EQ(found.size(), 1U);
        EXPECT_LT(relative_error(found[0], wanted), layout.tolerance)
            << "case " << i / layouts.size() << ", " << layout.name << ", winograd " << layout.winograd << ", " << target << ", threads " << threads;
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
