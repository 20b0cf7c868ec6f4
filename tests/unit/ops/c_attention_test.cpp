#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/cases.h"
#include "unmoor/ops/compose.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/run_graph.h"
#include "unmoor/tensor/convert.h"

// What attention operators do at the edges, and what they refuse. ONNX's node tests and ONNX Runtime's kernels cover the middle.
namespace unmoor {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Data> run(const std::string& text) {
  const CaseGraph built = build_case(parse_case(text));
  return run_graph(built.graph, built.inputs);
}

std::vector<double> result(const std::string& text, size_t output = 0) { return doubles(run(text).at(output).tensor()); }

std::string refusal(const std::string& text) {
  try {
    run(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Attention, a_query_that_sees_nothing_gives_zeros) {
  const std::string inputs = "f32[1,1,2,2]~small f32[1,1,3,2]~small f32[1,1,3,2]~small ";
  const auto y = result("Attention " + inputs + "bool[2,3]{0,0,0,1,1,1}");
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_NE(y[2], 0);
  EXPECT_THAT(result("Attention " + inputs + "bool[2,3]{0,0,0,0,0,0} qk_matmul_output_mode=3 outputs=4", 3), Each(0));
  EXPECT_THAT(result("Attention " + inputs + "- - - i64[1]{0} is_causal=1"), Each(0));
}

// ONNX's evaluator makes a causal mask of one row from a mask of one row; its function, which is the operator's meaning, one for
// every query.
TEST(Attention, a_mask_of_one_row_counts_for_every_query) {
  const std::string inputs = "Attention f32[1,1,2,1]{0,0} f32[1,1,2,1]{0,0} f32[1,1,2,1]{1,3} ";
  EXPECT_THAT(result(inputs + "f32[1,2]{0,0} is_causal=1"), ElementsAre(1, 2));
  EXPECT_THAT(result(inputs + "f32[2]{0,0} is_causal=1"), ElementsAre(1, 2));
}

// The text says that mode 0 is the product itself; ONNX's evaluator gives the capped one.
TEST(Attention, the_product_shown_is_not_capped) {
  const std::string inputs = "Attention f32[1,1,1,1]{3} f32[1,1,1,1]{2} f32[1,1,1,1]{1} scale=1.0 softcap=1.0 outputs=4 ";
  EXPECT_THAT(result(inputs + "qk_matmul_output_mode=0", 3), ElementsAre(6));
  EXPECT_THAT(result(inputs + "qk_matmul_output_mode=1", 3),
              ElementsAre(static_cast<double>(static_cast<float>(std::tanh(6.0)))));
}

TEST(Attention, a_short_mask_shuts_out_the_keys_behind_it) {
  EXPECT_THAT(result("Attention f32[1,1,1,1]{0} f32[1,1,3,1]{0,0,0} f32[1,1,3,1]{1,3,99} f32[2]{0,0}"), ElementsAre(2));
  EXPECT_THAT(result("Attention f32[1,1,1,1]{0} f32[1,1,3,1]{0,0,0} f32[1,1,3,1]{7,3,99} f32[1]{0}"), ElementsAre(7));
}

TEST(Attention, refuses_what_does_not_fit) {
  const std::string rows = "Attention f32[1,2,8] f32[1,3,8] f32[1,3,8] ";
  EXPECT_THAT(refusal(rows), HasSubstr("q_num_heads"));
  EXPECT_THAT(refusal(rows + "q_num_heads=3 kv_num_heads=2"), HasSubstr("does not divide into 3 heads"));
  EXPECT_THAT(refusal(rows + "q_num_heads=0 kv_num_heads=2"), HasSubstr("q_num_heads is 0"));
  EXPECT_THAT(refusal(rows + "q_num_heads=-9223372036854775808 kv_num_heads=2"), HasSubstr("not 1 or more"));
  const std::string heads = "Attention f32[1,2,2,4] f32[1,2,3,4] f32[1,2,3,4] ";
  EXPECT_THAT(refusal("Attention f32[1,3,2,4] f32[1,2,3,4] f32[1,2,3,4]"), HasSubstr("no multiple"));
  EXPECT_THAT(refusal("Attention f32[1,0,2,4] f32[1,0,3,4] f32[1,0,3,4]"), HasSubstr("no heads"));
  EXPECT_THAT(refusal("Attention f32[1,2,2,4] f32[1,2,3,5] f32[1,2,3,4]"), HasSubstr("the size of a key is 4"));
  EXPECT_THAT(refusal("Attention f32[1,2,2,4] f32[2,3,4] f32[2,3,4]"), HasSubstr("dimensions"));
  EXPECT_THAT(refusal("Attention f32[1,2,2,4] f16[1,2,3,4] f32[1,2,3,4]"), HasSubstr("K float16"));
  EXPECT_THAT(refusal(heads + "bool[2,4]"), HasSubstr("does not broadcast"));
  EXPECT_THAT(refusal(heads + "bool[3,3]"), HasSubstr("does not broadcast"));
  EXPECT_THAT(refusal(heads + "bool[]"), HasSubstr("does not broadcast"));
  EXPECT_THAT(refusal(heads + "- f32[1,2,1,4]"), HasSubstr("go together"));
  EXPECT_THAT(refusal(heads + "- f32[1,2,1,4] f32[1,2,1,4] i64[1]"), HasSubstr("both"));
  EXPECT_THAT(refusal(heads + "left_window_size=-2"), HasSubstr("left_window_size is -2"));
  EXPECT_THAT(refusal(heads + "softmax_precision=7"), HasSubstr("softmax_precision is 7"));
  EXPECT_THAT(refusal(heads + "softcap=-1"), HasSubstr("softcap"));
  EXPECT_THAT(refusal(heads + "qk_matmul_output_mode=4"), HasSubstr("not 0 to 3"));
}

// Empty tensors may have a huge dimension; outputs may be far larger than inputs.
TEST(Attention, sizes_without_elements_cost_nothing) {
  EXPECT_EQ(result("Attention f32[1,268435456,0,4] f32[1,1,2,4] f32[1,1,2,4]").size(), 0U);
  EXPECT_EQ(result("Attention f32[1,1,1,0] f32[1,1,268435456,0] f32[1,1,268435456,0]").size(), 0U);
  EXPECT_EQ(result("CausalConvWithState f32[268435456,1,0] f32[1,1,3]").size(), 0U);
  EXPECT_EQ(result("RotaryEmbedding f32[268435456,1,1,0] f32[3,0] f32[3,0] i64[1,1]{0}").size(), 0U);
  EXPECT_EQ(result("LinearAttention f32[268435456,1,0] f32[268435456,1,0] f32[268435456,1,0] update_rule=linear q_num_heads=1 "
                   "kv_num_heads=1")
                .size(),
            0U);
  EXPECT_THAT(refusal("Attention f32[1,1,4000000,1] f32[1,1,1,1] f32[1,1,1,4000000]"), HasSubstr("memory"));
  EXPECT_THAT(
      refusal(
          "LinearAttention f32[1,1,0] f32[1,1,0] f32[1,1,1] update_rule=linear q_num_heads=4611686018427387904 kv_num_heads=1"),
      HasSubstr("more than 2^58 elements"));
}

TEST(Rotary, refuses_places_outside_of_the_table) {
  EXPECT_THAT(refusal("RotaryEmbedding f32[1,1,1,4] f32[3,2] f32[3,2] i64[1,1]{3}"), HasSubstr("position 3 is outside of the 3"));
  EXPECT_THAT(refusal("RotaryEmbedding f32[1,1,1,4] f32[3,2] f32[3,2] i64[1,1]{-4}"), HasSubstr("position -4"));
  EXPECT_THAT(refusal("RotaryEmbedding f32[1,1,1,5] f32[3,2] f32[3,2] i64[1,1]{0}"), HasSubstr("in pairs"));
  EXPECT_THAT(refusal("RotaryEmbedding f32[1,1,1,4] f32[3,1] f32[3,2] i64[1,1]{0}"), HasSubstr("angles are wanted"));
  EXPECT_THAT(refusal("RotaryEmbedding f32[1,1,8] f32[3,2] f32[3,2] i64[1,1]{0}"), HasSubstr("num_heads"));
  EXPECT_THAT(refusal("RotaryEmbedding f32[1,1,1,4] f32[3,2] f32[3,2] i64[1,1]{0} rotary_embedding_dim=6"),
              HasSubstr("6 elements"));
}

TEST(LinearAttention, refuses_gates_that_its_rule_lacks) {
  const std::string rows = "LinearAttention f32[1,2,4] f32[1,2,4] f32[1,2,4] ";
  EXPECT_THAT(refusal(rows + "q_num_heads=2 kv_num_heads=2"), HasSubstr("needs decay and needs beta"));
  EXPECT_THAT(refusal(rows + "- f32[1,2,2] update_rule=linear q_num_heads=2 kv_num_heads=2"), HasSubstr("forbids decay"));
  EXPECT_THAT(refusal(rows + "- f32[1,2,3] update_rule=gated q_num_heads=2 kv_num_heads=2"),
              HasSubstr("last dimension must be 2 or 4"));
  EXPECT_THAT(refusal(rows + "update_rule=linear q_num_heads=2 kv_num_heads=0"), HasSubstr("kv_num_heads 0"));
}

TEST(GroupQuery, refuses_lengths_that_do_not_fit_its_cache) {
  const auto with = [](const std::string& lengths) {
    return refusal("com.microsoft:GroupQueryAttention f32[1,2,16] f32[1,2,8] f32[1,2,8] f32[1,1,4,8] f32[1,1,4,8] " + lengths +
                   " num_heads=2 kv_num_heads=1 outputs=3");
  };
  EXPECT_EQ(with("i32[1]{3} i32[]{4}"), "");
  EXPECT_THAT(with("i32[1]{7} i32[]{8}"), HasSubstr("batch 0 has 8 keys"));
  EXPECT_THAT(with("i32[1]{4} i32[]{4}"), HasSubstr("batch 0 has 5 keys"));
  EXPECT_THAT(with("i32[1]{-1} i32[]{4}"), HasSubstr("batch 0 has 0 keys"));
  EXPECT_THAT(with("i32[1]{3} i32[]{1}"), HasSubstr("less than the 2 queries"));
  EXPECT_THAT(with("i32[1]{3} i32[]{0}"), HasSubstr("not one number of 1 or more"));
  EXPECT_THAT(with("i32[2]{3,3} i32[]{4}"), HasSubstr("batch"));
  EXPECT_THAT(with("i32[1]{3} i32[]{4} - - - - - - - - - i32[1]{3}"), HasSubstr("3 queries"));
}

// A body that adds a captured tensor and a constant of its own.
TEST(FlexAttention, its_graphs_may_use_what_lies_outside) {
  Graph body;
  const ValueId x = body.add_input("scores", TensorType{DType::F32, Shape::of_unknown_rank()});
  const ValueId captured = body.add_input("bias", TensorType{DType::F32, Shape{2}});
  const ValueId half = body.add_constant("half", Tensor::scalar(0.5F));
  const auto add = [&body](const char* name, ValueId a, ValueId b) {
    Node node;
    node.op = "Add";
    node.inputs = {a, b};
    node.outputs = {body.add_value({name, TensorType{DType::F32, Shape::of_unknown_rank()}, {}, {}})};
    const ValueId out = node.outputs[0];
    body.add_node(std::move(node));
    return out;
  };
  body.mark_output(add("y", add("sum", x, captured), half), "y");

  CaseGraph built = build_case(parse_case("ai.onnx.preview:FlexAttention f32[1,1,1,1]{0} f32[1,1,2,1]{0,0} f32[1,1,2,1]{1,3}"));
  Graph graph;
  Node node = built.graph.node(NodeId{0});
  for (ValueId& id : node.inputs) id = graph.add_constant("in", *built.graph.value(id).constant);
  node.inputs.push_back(graph.add_constant("bias", Tensor::from<float>({2}, {0, -100})));
  node.attributes["score_mod"] = std::make_shared<const Graph>(std::move(body));
  node.attributes["captures"] = int64_t{1};
  node.outputs = {graph.add_value({"y", TensorType{DType::F32, Shape::of_unknown_rank()}, {}, {}})};
  graph.mark_output(node.outputs[0], "y");
  graph.add_node(std::move(node));
  EXPECT_THAT(doubles(run_graph(graph, {}).at(0).tensor()), ElementsAre(1));
}

TEST(FlexAttention, refuses_graphs_that_change_the_shape) {
  const std::string inputs = "ai.onnx.preview:FlexAttention f32[1,1,2,2] f32[1,1,3,2] f32[1,1,3,2] ";
  EXPECT_THAT(refusal(inputs + "score_mod=graph[GlobalAveragePool]"), HasSubstr("score_mod gives"));
  EXPECT_THAT(refusal(inputs + "prob_mod=graph[Not]"), HasSubstr("cannot be"));
  EXPECT_THAT(refusal(inputs + "captures=1"), HasSubstr("captured"));
}

TEST(Inverse, refuses_a_matrix_without_one) {
  EXPECT_THAT(result("com.microsoft:Inverse f32[2,2]{0,2,4,0}"), ElementsAre(0, 0.25, 0.5, 0));
  EXPECT_THAT(refusal("com.microsoft:Inverse f32[2,2,2]{1,0,0,1,1,2,2,4}"), HasSubstr("matrix 1 has no inverse"));
  EXPECT_THAT(refusal("com.microsoft:Inverse f32[2,3]"), HasSubstr("rows and columns"));
}

TEST(CropAndResize, refuses_images_that_are_not_there) {
  EXPECT_THAT(refusal("com.microsoft:CropAndResize f32[1,1,2,2] f32[1,4] i32[1]{1} i32[2]{2,2}"), HasSubstr("1 for 1 images"));
  EXPECT_THAT(refusal("com.microsoft:CropAndResize f32[1,1,2,2] f32[1,4] i32[1]{0} i32[2]{0,2}"), HasSubstr("1 or more"));
}

// Rounding each step of the expansion to float32 left errors of several units.
TEST(Attention, references_made_of_expansions_round_once) {
  const std::string tail = "i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} num_heads=2";
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    const CaseGraph built = build_case(parse_case(cat("com.microsoft:PackedMultiHeadAttention ", dtype, "[7,8]~small ", dtype, "[7,8]~small ", dtype,
                                                      "[7,8]~small - ", tail)));
    std::vector<Data> wide = built.inputs;
    for (size_t i = 0; i < 3; ++i) wide[i] = as_float64(built.inputs[i].tensor());
    const OpCall narrow_call = with_data(call_for(built.graph, built.graph.node(NodeId{0})), {});
    const auto answer = [&](const std::vector<Data>& given) {
      std::vector<Data> in{given[0], given[1], given[2], Data(), given.size() > 3 ? given[3] : Data(), given.size() > 4 ? given[4] : Data()};
      for (size_t i = 4; i < 6; ++i) {
        if (narrow_call.constants[i] != nullptr) in[i] = *narrow_call.constants[i];
      }
      const OpCall call = with_data(narrow_call, in);
      Outputs out(1);
      run_reference(call, in, out);
      return out.all()[0].tensor();
    };
    const Tensor stored = answer(built.inputs);
    Tensor rounded(stored.type());
    store(rounded, doubles(answer(wide)));
    EXPECT_EQ(doubles(stored), doubles(rounded)) << dtype;
  }
}

}  // namespace
}  // namespace unmoor
