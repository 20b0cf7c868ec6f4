#include <gtest/gtest.h>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {
namespace {

constexpr const char* inverted = "unmoor:InvertedResidual";

const Kernel& kernel_of(const Device& device) { return device.kernels().find(inverted)[0]; }

// A case with what the reference makes of it.
struct Answered {
  std::string text;
  CaseGraph graph;
  std::vector<Tensor> inputs = {};  // As in the call; empty where one is absent.
  std::vector<double> wanted = {};

  OpCall call() const { return call_for(graph.graph, graph.graph.nodes().back()); }
};

Answered answered(const Case& a_case) {
  Answered result{a_case.text, build_case(a_case)};
  const OpCall call = result.call();
  std::vector<Data> data;
  size_t given = 0;
  for (const ValueId id : call.node.inputs) {
    const Tensor* const constant = id == no_value ? nullptr : result.graph.graph.constant_tensor(id);
    result.inputs.push_back(constant != nullptr ? *constant
                            : id == no_value    ? Tensor()
                                                : result.graph.inputs.at(given++).tensor());
    data.push_back(result.inputs.back() ? Data(result.inputs.back()) : Data());
  }
  Outputs outputs(1);
  run_reference(call, data, outputs);
  result.wanted = doubles(outputs.all()[0].tensor());
  return result;
}

// What the kernel says of a case, apart from images being too small to gain.
bool is_possible(const OpCall& call) {
  const Support support = kernel_of(*open_cpu(1)).supports(call);
  return support || support.detail.find("which the cache holds") != std::string::npos;
}

// Images of more rows than a band, of several bands a piece, of fewer rows than threads.
const std::vector<std::string>& more_cases() {
  static const std::vector<std::string> cases{
      "f32[1,40,57,16]~small f32[96,16,1,1]~small! f32[96]~small! f32[96,1,3,3]~small! f32[96]~small! f32[24,96,1,1]~small! "
      "f32[24]~small! "
      "pads=[1,1,1,1] strides=[1,1],[2,2] expand_activation=Clip expand_activation_params=[0,6] depthwise_activation=Clip "
      "depthwise_activation_params=[0,6]",
      "f32[3,21,14,20]~small f32[120,20,1,1]~small! f32[120]~small! f32[120,1,5,5]~small! f32[120]~small! f32[20,120,1,1]~small! "
      "f32[20]~small! "
      "f32[3,21,14,20]~small pads=[2,2,2,2] expand_activation=Relu depthwise_activation=HardSwish",
      "f32[2,14,14,96]~small f32[256,96,1,1]~small! f32[256]~small! f32[256,1,3,3]~small! f32[256]~small! f32[96,256,1,1]~small! "
      "f32[96]~small! "
      "f32[2,14,14,96]~small pads=[1,1,1,1] expand_activation=Relu depthwise_activation=Relu",
      "f32[2,50,33,40]~small - - f32[40,1,3,3]~small! f32[40]~small! f32[56,40,1,1]~small! f32[56]~small! pads=[1,1,1,1] "
      "strides=[1,1],[2,2] "
      "depthwise_activation=Relu activation=Relu",
      "f32[1,7,7,160]~small f32[960,160,1,1]~small! f32[960]~small! f32[960,1,3,3]~small! f32[960]~small! "
      "f32[160,960,1,1]~small! "
      "f32[160]~small! f32[1,7,7,160]~small pads=[1,1,1,1] expand_activation=Relu depthwise_activation=Relu",
      "f32[1,17,17,4]~small f32[19,4,1,1]~small! - f32[19,1,2,2]~small! - f32[3,19,1,1]~small! - strides=[5,4] pads=[0,1,2,0]"};
  return cases;
}

TEST(CpuInvertedResidual, agrees_with_the_reference_on_every_target) {
  Op more = *all_ops().find(inverted);
  more.cases.insert(more.cases.end(), more_cases().begin(), more_cases().end());
  std::vector<Answered> cases;
  for (const Case& a_case : cases_of(more, {DType::F32})) {
    Answered answer = answered(a_case);
    if (is_possible(answer.call())) cases.push_back(std::move(answer));
  }
  EXPECT_GE(cases.size(), 30U);
  for_each_target([&](const std::string& target) {
    for (const size_t threads : std::initializer_list<size_t>{1, 2, 3}) {
      const auto device = open_cpu(threads);
      for (const Answered& answer : cases) {
        const Tensor found = run_kernel(*device, answer.call(), answer.inputs, &kernel_of(*device)).at(0);
        EXPECT_LT(relative_error(found, answer.wanted), 1e-6) << answer.text << ", " << target << ", threads " << threads;
      }
    }
  });
}

std::string refusal(const std::string& text) {
  const auto device = open_cpu(1);
  const CaseGraph graph = build_case(parse_case(text));
  const Support support = kernel_of(*device).supports(call_for(graph.graph, graph.graph.nodes().back()));
  return support ? "" : std::string(name(support.reason));
}

TEST(CpuInvertedResidual, sizes_that_do_not_fit_or_do_not_gain_are_refused) {
  const std::string small =
      "unmoor:InvertedResidual f32[1,56,56,24] f32[144,24,1,1]! - f32[144,1,3,3]! - f32[24,144,1,1]! pads=[1,1,1,1]";
  EXPECT_EQ(refusal(small), "");
  EXPECT_EQ(
      refusal("unmoor:InvertedResidual f32[1,28,28,32] f32[192,32,1,1]! - f32[192,1,3,3]! - f32[32,192,1,1]! pads=[1,1,1,1]"),
      "size");
  EXPECT_EQ(refusal("unmoor:InvertedResidual f32[1,4,512,16] f32[96,16,1,1]! - f32[96,1,3,3]! - f32[24,96,1,1]! pads=[1,1,1,1]"),
            "size");
  EXPECT_EQ(refusal("unmoor:InvertedResidual f32[1,4,4,4] f32[8,4,1,1]! - f32[8,1,3,3]! - f32[4,8,1,1]! pads=[0,2000000000,0,0]"),
            "size");
  EXPECT_EQ(refusal("unmoor:InvertedResidual f32[1,4,4,4] f32[8,4,1,1]! - f32[8,1,3,3]! - f32[4,8,1,1]! dilations=[1000000000,1] "
                    "pads=[2000000000,0,0,0]"),
            "size");
  EXPECT_EQ(refusal("unmoor:InvertedResidual f32[1,4,4,4] - - f32[4,1,65,1]! - f32[4,4,1,1]! pads=[64,0,0,0]"), "size");
  EXPECT_EQ(refusal("unmoor:InvertedResidual f32[1,4,4,4] f32[8,4,1,1] - f32[8,1,3,3]! - f32[4,8,1,1]!"), "dynamic");
}

}  // namespace
}  // namespace unmoor::test
