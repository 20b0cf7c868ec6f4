#include "unmoor/workbench/reproduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/workbench/one_node.h"
#include "unmoor/backends/reference/reference.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/workbench/onnx_tests.h"

namespace unmoor {
namespace {

using test::OneNode;
using testing::HasSubstr;

std::vector<Data> results(const OneNode& one) {
  Outputs out(one.call.node.outputs.size());
  run_reference(one.call, one.inputs, out);
  return out.all();
}

std::string replayed(const std::string& folder) {
  const auto backend = make_reference_backend();
  const OnnxTestResult result = run_onnx_test(folder, {backend->open(0)});
  return result.verdict == "passed" ? "passed" : result.verdict + ": " + result.detail;
}

TEST(Reproduction, a_node_replays_with_its_weights_in_the_model) {
  const TemporaryFolder folder;
  const OneNode conv("Conv f32[1,3,8,8]~small f32[4,3,3,3]~small! - pads=[1,1,1,1]");
  write_reproduction(conv.call, conv.inputs, results(conv), folder.path() + "/conv", "cpu");
  EXPECT_EQ(replayed(folder.path() + "/conv"), "passed");
  const Model model = read_onnx(folder.path() + "/conv/model.onnx");
  EXPECT_EQ(model.graph.nodes().size(), 1U);
  EXPECT_EQ(model.graph.inputs().size(), 1U);
  EXPECT_THAT(read_file(folder.path() + "/conv/README.md"), HasSubstr("unmoor conformance --onnx-tests . --on cpu"));
}

TEST(Reproduction, a_fused_operator_is_written_as_the_standard_ones) {
  const TemporaryFolder folder;
  const OneNode fused("unmoor:FusedMatMul f32[3,4]~small f32[4,5]~small! f32[5]~small! activation=Gelu");
  write_reproduction(fused.call, fused.inputs, results(fused), folder.path() + "/fused", "cpu");
  EXPECT_EQ(replayed(folder.path() + "/fused"), "passed");
  const Model model = read_onnx(folder.path() + "/fused/model.onnx");
  for (const Node& node : model.graph.nodes()) EXPECT_FALSE(node.op.starts_with("unmoor:")) << node.op;
}

TEST(Reproduction, several_outputs_and_integers_replay) {
  const TemporaryFolder folder;
  const OneNode top("TopK f32[3,9] i64[1]{2} outputs=2");
  write_reproduction(top.call, top.inputs, results(top), folder.path() + "/top", "cpu");
  EXPECT_EQ(replayed(folder.path() + "/top"), "passed");
}

TEST(Reproduction, wrong_outputs_fail_when_replayed) {
  const TemporaryFolder folder;
  const OneNode gelu("Gelu f32[4,9]~small");
  write_reproduction(gelu.call, gelu.inputs, std::vector<Data>{gelu.as_if("Gelu f32[4,9]~small approximate=tanh")},
                     folder.path() + "/gelu", "cpu");
  EXPECT_THAT(replayed(folder.path() + "/gelu"), HasSubstr("failed"));
}

TEST(Reproduction, a_file_that_lacks_the_node_is_no_reason_to_fail) {
  const TemporaryFolder folder;
  const OneNode gelu("Gelu f32[4,9]~small");
  write_onnx(gelu.built.graph, folder.path() + "/model.onnx");
  const Reproduction made = write_reproduction(gelu.call, gelu.inputs, results(gelu), folder.path() + "/gelu", "cpu",
                                               FileNode{folder.path() + "/model.onnx", {}});
  EXPECT_FALSE(made.as_in_file);
  EXPECT_THAT(made.why_not, HasSubstr("has no node"));
  EXPECT_EQ(replayed(folder.path() + "/gelu"), "passed");
}

TEST(Reproduction, a_folder_with_something_in_it_is_refused) {
  const TemporaryFolder folder;
  write_file(folder.path() + "/mine.txt", "mine");
  const OneNode gelu("Gelu f32[4,9]~small");
  EXPECT_THROW(write_reproduction(gelu.call, gelu.inputs, results(gelu), folder.path(), "cpu"), Error);
  EXPECT_EQ(read_file(folder.path() + "/mine.txt"), "mine");
}

}  // namespace
}  // namespace unmoor
