#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"

// What once went wrong: shapes and attributes at the limits of their types, and values where a rule changes.
namespace unmoor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t huge = int64_t{1} << 40;  // Of an axis beside one of 0: no data, but as many loops.

struct Made {
  CaseGraph built;
  std::vector<Data> in;
};

Made make(const std::string& text) {
  Made made{build_case(parse_case(text)), {}};
  const Graph& graph = made.built.graph;
  size_t next = 0;
  for (const ValueId id : graph.node(NodeId{0}).inputs) {
    if (id == no_value) {
      made.in.emplace_back();
    } else {
      made.in.push_back(graph.value(id).constant ? *graph.value(id).constant : made.built.inputs.at(next++));
    }
  }
  return made;
}

Tensor run(const std::string& text) {
  const Made made = make(text);
  const OpCall call = call_for(made.built.graph, made.built.graph.node(NodeId{0}));
  Outputs out(call.node.outputs.size());
  run_reference(call, made.in, out);
  return out.all().at(0).tensor();
}

std::vector<double> result(const std::string& text) { return doubles(run(text)); }

std::string refusal(const std::string& text) {
  try {
    run(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string wide(const char* format) {
  std::string text = format;
  for (size_t at = text.find('#'); at != std::string::npos; at = text.find('#')) text.replace(at, 1, std::to_string(huge));
  return text;
}

TEST(EmptyTensors, take_no_time_however_long_their_other_axes_are) {
  EXPECT_EQ(run(wide("Gather f32[#,3,0] i64[2]{0,1} axis=1")).shape(), (Shape{huge, 2, 0}));
  EXPECT_EQ(run(wide("GatherND f32[#,0] i64[#,0] batch_dims=1")).shape(), (Shape{huge, 0}));
  EXPECT_EQ(run(wide("ScatterND f32[0,4] i64[#,0] f32[#,0,4]")).shape(), (Shape{0, 4}));
  EXPECT_EQ(run(wide("Softmax f32[#,3,0] axis=1")).shape(), (Shape{huge, 3, 0}));
  EXPECT_EQ(run(wide("Softmax f32[0,#]")).shape(), (Shape{0, huge}));
  EXPECT_EQ(run(wide("TopK f32[0,#] i64[1]{2}")).shape(), (Shape{0, 2}));
  EXPECT_EQ(run(wide("CumSum f32[#,3,0] i64[]{1}")).shape(), (Shape{huge, 3, 0}));
  EXPECT_EQ(run(wide("Concat f32[#,3,0] f32[#,2,0] axis=1")).shape(), (Shape{huge, 5, 0}));
  EXPECT_EQ(run(wide("Split f32[#,4,0] axis=1 outputs=2")).shape(), (Shape{huge, 2, 0}));
  EXPECT_EQ(run(wide("Compress f32[#,3,0] bool[3]{1,0,1} axis=1")).shape(), (Shape{huge, 2, 0}));
  EXPECT_EQ(run(wide("Pad f32[0,3] i64[4]{0,#,0,#}")).shape(), (Shape{0, 3 + 2 * huge}));
  EXPECT_EQ(run(wide("NonMaxSuppression f32[#,0,4] f32[#,1,0] i64[]{1}")).shape(), (Shape{0, 3}));
  EXPECT_EQ(run(wide("Multinomial f32[#,0] sample_size=0")).shape(), (Shape{huge, 0}));
  EXPECT_EQ(run("GridSample f32[1,0,0,2] f32[1,1,1,2] padding_mode=border").shape(), (Shape{1, 0, 1, 1}));
  EXPECT_THAT(refusal(wide("SplitToSequence f32[#,0] i64[]{1}")), HasSubstr("parts"));
}

TEST(Sizes, that_overflow_are_refused) {
  constexpr const char* most = "4611686018427387904";  // 2^62
  EXPECT_THAT(refusal(cat("Concat f32[0,", most, "] f32[0,", most, "] axis=1")), HasSubstr("more than"));
  EXPECT_THAT(refusal("ConvTranspose f32[0,1,4611686018427387904] f32[1,1,3] strides=[8]"), HasSubstr("more than 2^58 elements"));
  EXPECT_THAT(refusal("ConvTranspose f32[1,0,4] f32[0,4294967296,1] group=4294967296"), HasSubstr("group has the value"));
  EXPECT_THAT(refusal("ConvTranspose f32[1,1,4] f32[1,1,3] auto_pad=SAME"), HasSubstr("auto_pad is 'SAME'"));
  EXPECT_THAT(refusal("Resize f32[1,4] - - i64[2]{281474976710656,1} keep_aspect_ratio_policy=not_smaller"), HasSubstr("elements long"));
  EXPECT_THAT(refusal("ReverseSequence f32[2,2] i64[2]{1,1} time_axis=9223372036854775807 batch_axis=1"), HasSubstr("time_axis"));
  EXPECT_THAT(refusal("RoiAlign f32[1,1,4,4] f32[1,4]{0,0,4,4} i64[1]{0} sampling_ratio=4000000000"), HasSubstr("sampling_ratio"));
  EXPECT_THAT(refusal("RoiAlign f32[1,1,4,4] f32[1,4]{0,0,4,4} i64[1]{0} output_height=65536 sampling_ratio=65536"), HasSubstr("along an axis"));
  EXPECT_THAT(refusal("STFT f32[1,8,1] i64[]{1} f32[0]"), HasSubstr("0 samples"));
  EXPECT_THAT(refusal("STFT f32[8] i64[]{1} f32[2]"), HasSubstr("rank 3, or 2 of a real signal"));
  EXPECT_THAT(refusal("STFT f32[1,1,8,1] i64[]{1} f32[2]"), HasSubstr("rank 3, or 2 of a real signal"));
}

TEST(RanksAndDtypes, that_an_operator_does_not_have_are_refused) {
  EXPECT_THAT(refusal("GRU f32[1,2,4] f64[1,9,4] f32[1,9,3] hidden_size=3"), HasSubstr("input 1 is float64, not float32"));
  EXPECT_THAT(refusal("com.microsoft:DecoderMaskedMultiHeadAttention f32[] num_heads=2"), HasSubstr("rank 3 was expected"));
}

TEST(Range, reaches_its_last_number_without_overflow) {
  EXPECT_THAT(integers(run("Range i64[]{-8000000000000000000} i64[]{9000000000000000000} i64[]{6000000000000000000}")),
              ElementsAre(-8000000000000000000, -2000000000000000000, 4000000000000000000));
  EXPECT_THAT(refusal("Range i64[]{0} i32[]{4} i64[]{1}"), HasSubstr("int32, not int64"));
}

TEST(Gemm, scales_integers_in_double_and_truncates_once) {
  EXPECT_THAT(result("Gemm i32[1,1]{1} i32[1,1]{1} i32[1]{1} alpha=0.5 beta=0.5"), ElementsAre(1));
  EXPECT_THAT(result("Gemm i32[1,1]{-3} i32[1,1]{1} alpha=0.5"), ElementsAre(-1));
  EXPECT_THAT(integers(run("Gemm i64[1,1]{4000000000000000000} i64[1,1]{1} alpha=1e10")), ElementsAre(INT64_MAX));
}

TEST(Window, longer_than_its_input_is_walked_in_no_time) {
  EXPECT_THAT(result("AveragePool f32[1,1,2]{3,5} kernel_shape=[2147483647] pads=[2147483646,2147483646] strides=[2147483647]"),
              ElementsAre(3, 5));
  const std::string pool = "AveragePool f64[1,1,4]{1,2,3,4} kernel_shape=[3] dilations=[2] pads=[2,2]";
  EXPECT_THAT(result(pool), ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(result(cat(pool, " count_include_pad=1")), ElementsAre(4.0 / 3, 2, 4.0 / 3, 2));
}

TEST(Hardmax, takes_nan_for_the_greatest) {
  EXPECT_THAT(result("Hardmax f32[4]{1,nan,3,nan}"), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(result("Hardmax f32[2]{-inf,-inf}"), ElementsAre(1, 0));
}

TEST(Clip, has_nan_bounds_win) {
  EXPECT_TRUE(std::isnan(result("Clip f32[1]{1} f32[]{nan} f32[]{3}").at(0)));
  EXPECT_EQ(run("Clip f32[1]{1} f32[1,1]{0}").shape(), (Shape{1}));
  EXPECT_THAT(refusal("Clip f32[1]{1} f32[2]{0,1}"), HasSubstr("one element was expected"));
}

TEST(Cast, of_text_takes_one_sign) {
  EXPECT_THAT(result("Cast string[2]{+5,-5} to=f32"), ElementsAre(5, -5));
  EXPECT_THAT(refusal("Cast string[1]{+-5} to=f32"), HasSubstr("'+-5' is no float32"));
  EXPECT_THAT(refusal("Cast string[1]{+-5} to=i32"), HasSubstr("'+-5' is no int32"));
  EXPECT_THAT(refusal("Cast f32[1]{0} to=f8e8m0 round_mode=sideways"), HasSubstr("round_mode is 'sideways'"));
}

TEST(Cast, to_text_writes_the_shortest_digits_of_the_dtype) {
  EXPECT_THAT(run("Cast f16[3]{0.1,65504,2} to=string").strings(), ElementsAre("0.1", "65500", "2"));
  EXPECT_THAT(run("Cast bf16[1]{0.1} to=string").strings(), ElementsAre("0.1"));
  EXPECT_THAT(run("Cast f32[1]{0.1} to=string").strings(), ElementsAre("0.1"));
}

TEST(Resize, of_one_element_follows_the_text_of_onnx) {
  EXPECT_THAT(result("Resize f32[4]{1,2,3,4} - - i64[1]{1} mode=cubic coordinate_transformation_mode=pytorch_half_pixel"), ElementsAre(1));
  EXPECT_THAT(result("Resize f32[3]{1,2,4} f32[2]{0,1} - i64[1]{1} mode=linear coordinate_transformation_mode=tf_crop_and_resize"),
              ElementsAre(2));
  std::string count = "0";  // 49 elements: a 49th times 49 is not 1 in floating point.
  for (int i = 1; i < 49; ++i) count += cat(",", i);
  EXPECT_THAT(result(cat("Resize f32[49]{", count, "} f32[2]{0,1} - i64[1]{1} mode=linear coordinate_transformation_mode=tf_crop_and_resize")),
              ElementsAre(24));
  EXPECT_THAT(result(cat("Resize f32[49]{", count, "} - - i64[1]{1} mode=linear coordinate_transformation_mode=pytorch_half_pixel")),
              ElementsAre(0));
}

TEST(RoiAlign, averages_a_region_far_larger_than_the_plane) {
  EXPECT_NEAR(result("RoiAlign f32[1,1,2,2]{1,1,1,1} f32[1,4]{0,0,50000,50000} i64[1]{0} "
                     "coordinate_transformation_mode=output_half_pixel")
                  .at(0),
              2.0 * 2.0 / 50000 / 50000, 1e-12);
  EXPECT_THAT(refusal("RoiAlign f32[1,1,2,2] f32[1,4]{0,0,1,1} i64[1]{0} mode=sum"), HasSubstr("mode is 'sum'"));
  EXPECT_THAT(refusal("RoiAlign f32[1,1,2,2] f32[1,5] i64[1]{0}"), HasSubstr("corners of a region"));
}

TEST(DFT, of_a_long_signal_finds_its_tone) {
  constexpr int64_t length = 3000;  // Longer than what is done by the definition.
  Node node;
  node.op = "DFT";
  node.attributes = {{"onesided", int64_t{1}}};
  node.outputs = {ValueId{0}};
  std::vector<double> values;
  for (int64_t n = 0; n < length; ++n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(length);
    values.push_back(3 * std::cos(7 * angle) + std::sin(1000 * angle));
  }
  Tensor signal({DType::F64, Shape{1, length, 1}});
  store(signal, std::span<const double>(values));
  const std::vector<Data> in{signal};
  OpCall call{node, {Type(signal.type())}, {}, {nullptr}};
  call.outputs = infer_outputs(call);
  Outputs out(1);
  run_reference(call, in, out);
  const auto spectrum = doubles(out.all()[0].tensor());
  ASSERT_EQ(spectrum.size(), 2U * (length / 2 + 1));
  for (size_t k = 0; k <= length / 2; ++k) {
    EXPECT_NEAR(spectrum[2 * k], k == 7 ? 1.5 * length : 0, 1e-8) << k;
    EXPECT_NEAR(spectrum[2 * k + 1], k == 1000 ? -0.5 * length : 0, 1e-8) << k;
  }
}

TEST(Dropout, minds_its_ratio_only_in_training) {
  EXPECT_THAT(result("Dropout f32[1]{7} f32[]{1}"), ElementsAre(7));
  EXPECT_THAT(refusal("Dropout f32[1]{7} f32[]{1} bool[]{1}"), HasSubstr("ratio 1"));
}

TEST(Outputs, of_a_dtype_that_the_operator_cannot_make_are_refused) {
  EXPECT_THAT(refusal("RandomNormal shape=[2] dtype=string"), HasSubstr("cannot be string"));
  EXPECT_THAT(refusal("EyeLike f32[2,2] dtype=string"), HasSubstr("cannot be string"));
  EXPECT_THAT(refusal("HannWindow i64[]{4} output_datatype=bool"), HasSubstr("cannot be bool"));
}

TEST(QLinearConcat, wants_a_scale_for_every_tensor) {
  EXPECT_THAT(refusal("com.microsoft:QLinearConcat f32[]{0.1} u8[]{3} u8[2,3] - u8[]{5} axis=0"), HasSubstr("absent"));
}

TEST(Expansion, of_a_split_leaves_out_what_nobody_wants) {
  const Made made = make("Split f32[6] i64[3]{1,2,3}! outputs=3");
  Node node = made.built.graph.node(NodeId{0});
  node.outputs[0] = no_value;
  node.outputs[1] = no_value;
  const OpCall call = call_for(made.built.graph, node);
  const Graph graph = expanded(call);
  ASSERT_EQ(graph.outputs().size(), 1U);
  EXPECT_EQ(std::get<TensorType>(graph.value(graph.outputs()[0]).type).shape, (Shape{3}));
  EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(Expansion, of_a_split_of_unknown_rank_is_refused) {
  const Made made = make("Split f32[6] outputs=2");
  const Node& node = made.built.graph.node(NodeId{0});
  OpCall call = call_for(made.built.graph, node);
  call.inputs[0] = TensorType{DType::F32, Shape::of_unknown_rank()};
  EXPECT_THROW(expanded(call), Error);
}

}  // namespace
}  // namespace unmoor
