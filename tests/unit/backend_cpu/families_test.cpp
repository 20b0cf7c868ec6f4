#include <gtest/gtest.h>

#include "tests/unit/backend_cpu/check_case.h"
#include "tests/unit/backend_cpu/support.h"
#include "unmoor/base/error.h"

namespace unmoor::test {
namespace {

void check(const std::vector<std::string>& texts) {
  for_each_target([&](const std::string& target) {
    for (const size_t threads : std::initializer_list<size_t>{1, 2}) {
      const auto device = open_cpu(threads);
      for (const std::string& text : texts) {
        const Case one = parse_case(text);
        Count count;
        check_case(*device, *all_ops().find(one.op), one, cat(target, ", threads ", threads), count);
        EXPECT_GT(count.run, 0U) << text << " was run by no kernel";
      }
    }
  });
}

TEST(CpuFamilies, einsum_groups_its_letters_into_products) {
  check({
      "Einsum f32[2,9,17]~small f32[2,17,33]~small equation=\"bij,bjk->bik\"",
      "Einsum f32[2,9,17]~small f32[2,33,17]~small equation=\"bij,bkj->bik\"",
      "Einsum f32[2,17,9]~small f32[2,17,33]~small equation=\"bji,bjk->bki\"",      // Both transposed, and so is the result.
      "Einsum f32[2,5,3,8]~small f32[2,7,3,8]~small equation=\"bihd,bjhd->bhij\"",  // Heads between: copied first.
      "Einsum f32[2,3,5,7]~small f32[2,7,3,8]~small equation=\"bhij,bjhd->bihd\"",  // The result is arranged afterwards.
      "Einsum f32[1,7,20,18]~small f32[7,18,18]~small! equation=\"bctn,cnv->bctv\"",
      "Einsum f32[3,7,20,18]~small f32[7,18,18]~small! equation=\"bctn,cnv->bctv\"",
      "Einsum f32[16,12]~small f32[2,12,5,6]~small equation=\"oc,bchw->bohw\"",
      "Einsum f32[2,9,12]~small f32[12,4,6]~small! equation=\"bsd,dhk->bshk\"",
      "Einsum f32[2,9,4,6]~small f32[4,6,12]~small! equation=\"bshk,hkd->bsd\"",
      "Einsum f32[9,17,3]~small f32[17,33]~small equation=\"ijz,jk->ik\"",  // z is summed before.
      "Einsum f32[9,9,17]~small f32[17,33]~small equation=\"iij,jk->ik\"",  // A diagonal.
      "Einsum f32[1,9,17]~small f32[5,17,33]~small equation=\"...ij,...jk->...ik\"",
      "Einsum f32[4,3,9,17]~small f32[3,17,8]~small equation=\"...ij,...jk->...ik\"",
  });
}

TEST(CpuFamilies, einsum_sums_by_loops_what_is_no_product) {
  check({
      "Einsum f32[70,90]~small equation=\"ij->j\"",
      "Einsum f32[70,90]~small equation=\"ij->i\"",
      "Einsum f32[70,90]~small equation=\"ij->\"",
      "Einsum f32[20,30,8]~small equation=\"ijk->kij\"",
      "Einsum f32[5000]~small f32[5000]~small equation=\"i,i->i\"",
      "Einsum f32[60,40]~small f32[60,40]~small equation=\"ij,ij->\"",
      "Einsum f32[50]~small f32[60]~small equation=\"i,j->ji\"",
      "Einsum f32[9,4]~small f32[4,8]~small f32[8,12]~small equation=\"ij,jk,kl->il\"",
      "Einsum f32[6,9]~small f32[6,4]~small f32[6,5]~small equation=\"bi,bj,bk->bijk\"",
      "Einsum f32[12,9]~small f32[9,4]~small f32[12,4]~small equation=\"ij,jk,ik->i\"",
      "Einsum f32[3,0] f32[0,4] equation=\"ij,jk->ik\"",
      "Einsum f32[0,7] f32[7,4] equation=\"ij,jk->ik\"",
      "Einsum f32[5,4]~special equation=\"ij->i\"",
  });
}

TEST(CpuFamilies, picking_and_putting_work_on_long_rows_and_many_slices) {
  check({
      "GatherElements f32[40,70] i64[40,700]~signed_index:70 axis=1",
      "GatherElements f32[40,70] i64[90,60]~signed_index:40 axis=0",
      "GatherElements f32[6,40,7] i32[5,90,6]~index:40 axis=1",
      "GatherND f32[30,40,50] i64[600,2]~signed_index:30",
      "GatherND f32[3,40,50] i64[3,200,1]~index:40 batch_dims=1",
      "ScatterElements f32[40,70]~small i64[40,200]~signed_index:70 f32[40,200]~small axis=1 reduction=add",
      "ScatterElements f32[6,40,7]~small i64[6,90,7]~index:40 f32[6,90,7]~small axis=1 reduction=max",
      "ScatterElements f32[6,40,7]~small i64[6,90,7]~index:40 f32[6,90,7]~small axis=1 reduction=min",
      "ScatterND f32[30,700]~small i64[50,1]~index:30 f32[50,700]~small reduction=add",
      "ScatterND f32[30,40]~small i64[500,2]~index:30 f32[500]~small reduction=mul",
      "ScatterND f32[30,40]~special i64[500,2]~index:30 f32[500]~special reduction=max",
      "ReverseSequence f32[40,5,300] i64[5]{40,0,1,17,39}",
      "Compress f32[40,50] bool[40] axis=0",
      "NonZero f32[40,50,3]~index:2",
      "Unique f32[3000]~index:50 outputs=4",
      "Unique f32[3000]~index:50 sorted=0 outputs=4",
      "OneHot i64[40,50]~signed_index:30 i64[]{30} f32[2]{0,1} axis=1",
      "Trilu f32[3,70,90] i64[]{-5} upper=0",
      "EyeLike f32[70,90] k=-30",
  });
}

TEST(CpuFamilies, order_is_that_of_the_reference) {
  check({
      "TopK f32[20,3000]~index:40 i64[1]{9}! outputs=2",
      "TopK f32[20,3000] i64[1]{700}! outputs=2 largest=0",
      "TopK f32[3,900,17]~special i64[1]{33}! axis=1 outputs=2",
      "TopK f32[3,900]~special i64[1]{900}! outputs=2",
      "Hardmax f32[30,70]~index:5",
      "CumSum f32[20,3000]~small i64[]{1}!",
      "CumSum f32[20,30,700]~small i64[]{1}! reverse=1 exclusive=1",
      "CumProd f32[20,30]~unit i64[]{0}! reverse=1",
      "NonMaxSuppression f32[2,200,4]~unit f32[2,3,200]~unit i64[1]{20} f32[1]{0.3} f32[1]{0.2}",
  });
}

TEST(CpuFamilies, sampling_meets_the_reference_on_larger_images) {
  check({
      "GridSample f32[2,5,30,40]~small f32[2,20,33,2]~unit",
      "GridSample f32[2,5,30,40]~small f32[2,20,33,2]~small mode=cubic padding_mode=reflection align_corners=1",
      "GridSample f32[1,3,9,10,11]~small f32[1,5,6,7,3]~small mode=linear padding_mode=border",
      "RoiAlign f32[2,5,30,40]~small f32[3,4]{0,0,20,30,5,5,8,9,-3,2,50,60} i64[3]{0,1,1} output_height=7 output_width=7 "
      "sampling_ratio=2",
      "MaxRoiPool f32[2,5,30,40] f32[2,5]{0,1,2,30,20,1,0,0,39,29} pooled_shape=[7,7]",
      "DeformConv f32[2,8,20,30]~small f32[6,4,3,3]~small! f32[2,18,20,30]~small f32[6]~small! f32[2,9,20,30]~unit group=2 "
      "pads=[1,1,1,1]",
      "Col2Im f32[2,27,900]~small i64[2]{32,32}! i64[2]{3,3}!",
      "LRN f32[2,70,20,30]~small size=5",
      "LRN f32[2,20,30,70]~small size=5 layout=NHWC",
      "LpPool f32[2,5,40,41]~small kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] p=3",
      "LpNormalization f32[20,300,70]~small axis=1",
      "MeanVarianceNormalization f32[3,20,30,40]~small",
      "MeanVarianceNormalization f32[3,20,30,40]~small axes=[1]",
      "SoftmaxCrossEntropyLoss f32[300,50]~small i64[300]~index:50 f32[50]~positive outputs=2",
      "NegativeLogLikelihoodLoss f32[3,50,40]~small i64[3,40]~index:50 reduction=sum ignore_index=7",
  });
}

TEST(CpuFamilies, transforms_of_any_length_meet_the_reference) {
  check({
      "DFT f32[3,64,2]~small",
      "DFT f32[3,1,2]~small",
      "DFT f32[3,97,2]~small inverse=1",
      "DFT f32[2,1001,1]~small onesided=1",
      "DFT f32[2,33,5,2]~small i64[]{70}! i64[]{1}!",
      "STFT f32[2,4000]~small i64[]{160}! f32[400]~unit",
      "STFT f32[1,9000]~small i64[]{1000}! f32[2048]~unit onesided=0",
      "STFT f32[2,700,2]~small i64[]{90}! f32[210]~unit onesided=0",
  });
}

TEST(CpuFamilies, integer_products_are_exact) {
  check({
      "MatMulInteger u8[37,300] i8[300,65]! u8[]{200} i8[65]~small!",
      "MatMulInteger i8[37,300] u8[300,65] i8[]{-100} u8[]{3}",
      "MatMulInteger u8[3,7,70] u8[3,70,9] u8[]{1} u8[]{255}",
      "QLinearMatMul u8[37,300] f32[]{0.02} u8[]{128} i8[300,65]! f32[65]~positive! i8[65]~small! f32[]{3} u8[]{100}",
      "ConvInteger u8[2,12,20,21] i8[10,12,3,3]! u8[]{77} pads=[1,1,1,1] strides=[2,1]",
      "ConvInteger u8[2,12,20] i8[10,6,3]! u8[]{77} pads=[1,1] group=2 dilations=[2]",
      "QLinearConv u8[2,20,21,12] f32[]{0.02} u8[]{77} i8[10,12,3,3]! f32[10]~unit! i8[10]~small! f32[]{1} u8[]{100} i32[10]! "
      "pads=[1,1,1,1] layout=NHWC",
      "QuantizeLinear f32[70,900]~small f32[]{0.03} u8[]{77}",
      "QuantizeLinear f32[70,900]~special f32[70]~positive! i8[70]~small! axis=0",
      "DequantizeLinear u8[70,9,30] f32[9]~positive! u8[9]! axis=1",
      "DynamicQuantizeLinear f32[70,900]~small outputs=3",
  });
}

TEST(CpuFamilies, folds_states_and_pairs_meet_the_reference) {
  check({
      "Sum f32[20,3000]~small f32[3000]~small f32[20,1]~small",
      "Mean f32[20,30]~small f32[20,30]~small f32[20,30]~small f32[20,30]~small",
      "Max f32[20,3000]~special f32[1]~special f32[20,3000]~special",
      "Min f32[2,1,70]~special f32[9,1]~special f32[2,9,70]~special",
      "SwiGLU f32[70,90]~small f32[70,90]~small",
      "RotaryEmbedding f32[2,8,40,64]~small f32[50,32]~small f32[50,32]~small i64[2,40]~index:50 interleaved=0",
      "RNN f32[4,40,17]~small f32[2,5,17]~small! f32[2,5,5]~small! f32[2,10]~small! hidden_size=5 direction=bidirectional "
      "outputs=2",
      "CausalConvWithState f32[2,30,70]~small f32[30,1,4]~small! f32[30]~small! f32[2,30,3]~small activation=silu outputs=2",
      "LinearAttention f32[2,20,64]~unit f32[2,20,64]~unit f32[2,20,64]~small - f32[2,20,4]~small f32[2,20,4]~unit q_num_heads=4 "
      "kv_num_heads=4 outputs=2",
      "Det f32[50,9,9]~small",
      "Dropout f32[7000] f32[]{0.5} bool[]{1} outputs=2",
      "RandomNormal shape=[70,90] seed=2.0",
      "RandomUniformLike i64[70,90] seed=2.0 dtype=f32",
  });
}

// The message with which the call fails, by the reference or by the first kernel that takes it.
std::string message_of(const std::string& text, bool by_kernel) {
  const auto device = open_cpu(2);
  const CaseGraph graph = build_case(parse_case(text));
  const OpCall call = call_for(graph.graph, graph.graph.nodes().back());
  std::vector<Tensor> inputs;
  std::vector<Data> data;
  size_t next = 0;
  for (const ValueId id : call.node.inputs) {
    const Tensor* const constant = graph.graph.constant_tensor(id);
    data.push_back(constant != nullptr ? Data(*constant) : graph.inputs.at(next++));
    inputs.push_back(data.back().tensor());
  }
  try {
    if (by_kernel) {
      run_kernel(*device, call, inputs);
    } else {
      Outputs outputs(call.outputs.size());
      run_reference(call, data, outputs);
    }
  } catch (const Error& error) {
    const std::string message = error.what();
    return message.substr(0, message.find('\n'));  // Without where it was.
  }
  return "";
}

TEST(CpuFamilies, what_is_out_of_range_is_refused_in_the_words_of_the_reference) {
  for (const char* text :
       {"GatherElements f32[3,4] i64[2,4]{0,1,2,-3,0,0,3,0}", "GatherND f32[3,4] i64[1,2]{0,4}", "GatherND f32[3,4] i64[1,1]{-4}",
        "ScatterElements f32[3,4] i64[1,2]{0,-4} f32[1,2]", "ScatterND f32[3,4] i64[1,1]{3} f32[1,4]",
        "TensorScatter f32[2,6,4] f32[2,2,4] i64[2]{0,5}", "ReverseSequence f32[4,2] i64[2]{5,1}",
        "MaxUnpool f32[1,1,2,2] i64[1,1,2,2]{0,1,2,16} kernel_shape=[2,2] strides=[2,2]",
        "RotaryEmbedding f32[1,1,1,2] f32[3,1] f32[3,1] i64[1,1]{3}", "NegativeLogLikelihoodLoss f32[2,3] i64[2]{0,3}",
        "RoiAlign f32[1,1,2,2] f32[1,4] i64[1]{1}", "MaxRoiPool f32[1,1,2,2] f32[1,5]{1,0,0,1,1} pooled_shape=[1,1]",
        "Dropout f32[4] f32[]{1} bool[]{1}"}) {
    const std::string wanted = message_of(text, false);
    EXPECT_NE(wanted, "") << text;
    EXPECT_EQ(message_of(text, true), wanted) << text;
  }
}

}  // namespace
}  // namespace unmoor::test
