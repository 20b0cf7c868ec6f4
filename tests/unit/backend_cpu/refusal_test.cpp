#include <gtest/gtest.h>

#include "unmoor/base/error.h"
#include "tests/unit/backend_cpu/support.h"
#include "unmoor/ops/cases.h"

namespace unmoor::test {
namespace {

// Kernels that take the case, by name.
std::string takers(const std::string& text) {
  const auto device = open_cpu(1);
  const CaseGraph graph = build_case(parse_case(text));
  const OpCall call = call_for(graph.graph, graph.graph.nodes().back());
  std::string names;
  for (const Kernel& kernel : device->kernels().find(call.node.op)) {
    const Support support = kernel.supports(call);
    EXPECT_EQ(support.detail.empty(), static_cast<bool>(support)) << kernel.name << " for " << text;
    if (support) names += kernel.name + " ";
  }
  return names;
}

TEST(CpuRefusal, windows_that_would_need_planes_without_end) {
  EXPECT_EQ(takers("MaxPool f32[1,1,4] kernel_shape=[2000000000] pads=[1999999999,1999999999]"), "");
  EXPECT_EQ(takers("AveragePool f32[1,1,4,4] kernel_shape=[2,2] dilations=[1000000000,1000000000] pads=[1000000000,1000000000,0,0]"), "");
  EXPECT_EQ(takers("Conv f32[1,2,8]~small f32[2,1,2]~small group=2 dilations=[2000000000] pads=[1999999999,0]"), "");
  EXPECT_EQ(takers("Conv f32[1,3,8]~small f32[5,3,1]~small! pads=[2000000000,0] strides=[2000000000]"), "");
}

TEST(CpuRefusal, windows_of_usual_models_are_taken) {
  EXPECT_EQ(takers("Conv f32[1,2,16000]~small f32[2,1,3]~small group=2 dilations=[4096] pads=[8192,0]"), "cpu.conv.depthwise ");
  EXPECT_EQ(takers("Conv f32[1,4,4,4]~small f32[4,1,3,3]~small group=4 dilations=[24,24] pads=[24,24,24,24]"), "cpu.conv.depthwise ");
  EXPECT_EQ(takers("AveragePool f32[1,8,7,7] kernel_shape=[7,7]"), "cpu.averagepool.plane ");
  EXPECT_EQ(takers("Conv f32[1,3,224,224]~small f32[8,3,16,16]~small! strides=[16,16]"), "cpu.conv.indirect ");
}

TEST(CpuRefusal, a_bound_of_clip_that_is_no_single_element) {
  EXPECT_THROW(takers("Clip f32[3] f32[0]"), Error);  // Inference refuses it for everyone.
  EXPECT_THROW(takers("Clip f32[3] - f32[2]{1,2}"), Error);
}

TEST(CpuRefusal, an_empty_input_that_a_resize_would_read) { EXPECT_EQ(takers("Resize f32[1,1,0,4] - - i64[4]{1,1,3,3}"), ""); }

}  // namespace
}  // namespace unmoor::test
