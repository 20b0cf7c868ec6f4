#include <gtest/gtest.h>

#include "unmoor/base/error.h"
#include "unmoor/backends/gpu/kernels.h"
#include "unmoor/ops/cases.h"

namespace unmoor::gpu {
namespace {

// Kernels that take the call, by name; every refusal has a reason. Needs no device.
std::string takers(const OpCall& call) {
  const KernelTable table = make_kernels("paper", {.float64 = true, .largest_allocation = size_t{1} << 30});
  std::string names;
  for (const Kernel& kernel : table.find(call.node.op)) {
    const Support support = kernel.supports(call);
    EXPECT_EQ(support.detail.empty(), static_cast<bool>(support)) << kernel.name;
    if (support) names += kernel.name + " ";
  }
  return names;
}

std::string takers(const std::string& text) {
  const CaseGraph graph = build_case(parse_case(text));
  return takers(call_for(graph.graph, graph.graph.nodes().back()));
}

// By types alone, for what is too large to make.
std::string takers(const std::string& op, const TensorType& in, const TensorType& out, Attributes attributes = {}) {
  const Node node{"n", op, {ValueId{0}}, {ValueId{1}}, std::move(attributes), {}};
  return takers(OpCall{node, {in}, {out}, {nullptr}});
}

TEST(GpuRefusal, windows_of_more_taps_than_a_work_item_should_walk) {
  EXPECT_EQ(takers("MaxPool f32[1,1,4] kernel_shape=[2000000000] pads=[1999999999,1999999999]"), "");
  EXPECT_EQ(takers("MaxPool f32[1,1,40] kernel_shape=[30]"), "paper.max_pool ");
}

TEST(GpuRefusal, padding_that_32_bits_do_not_reach) {
  EXPECT_EQ(takers("Conv f32[1,3,8]~small f32[5,3,1]~small! pads=[2000000000,2000000000] strides=[2000000000]"), "");
}

TEST(GpuRefusal, an_axis_whose_places_a_float32_does_not_count) {
  const TensorType in{DType::F32, {1, 1, 20'000'000}};
  const TensorType out{DType::F32, {1, 1, 10'000'000}};
  EXPECT_EQ(takers("Resize", in, out), "");
  EXPECT_EQ(takers("Resize", {DType::F32, {1, 1, 2'000'000}}, out), "paper.resize ");
}

TEST(GpuRefusal, an_empty_input_that_a_resize_would_read) { EXPECT_EQ(takers("Resize f32[1,1,0,4] - - i64[4]{1,1,3,3}"), ""); }

TEST(GpuRefusal, more_rows_than_work_groups) {
  const TensorType rows{DType::F32, {1'900'000'000, 1}};
  EXPECT_EQ(takers("Softmax", rows, rows), "");
  const TensorType fewer{DType::F32, {900'000'000, 2}};
  EXPECT_EQ(takers("Softmax", fewer, fewer), "paper.softmax ");
}

TEST(GpuRefusal, a_dropout_that_trains) {
  EXPECT_EQ(takers("Dropout f32[8] f32[]{0.5} bool[]{1}"), "");
  EXPECT_EQ(takers("Dropout f32[8] f32[]{0.5} bool[]"), "");
  EXPECT_EQ(takers("Dropout f32[8] f32[]{0.5} bool[]{0}"), "paper.copy ");
}

TEST(GpuRefusal, a_bound_of_clip_that_is_no_scalar) {
  EXPECT_THROW(takers("Clip f32[3] f32[0]"), Error);  // Inference refuses it for everyone.
  EXPECT_EQ(takers("Clip f32[] f32[1]{0}"), "");
  EXPECT_EQ(takers("Clip f32[3] f32[]{0}"), "paper.clip ");
}

}  // namespace
}  // namespace unmoor::gpu
