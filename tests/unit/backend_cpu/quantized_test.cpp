#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {
namespace {

struct Read {
  std::shared_ptr<const CaseGraph> graph;  // The call refers to it.
  OpCall call;
  std::vector<Data> data = {};
  std::vector<Tensor> inputs = {};
};

Read read_case(const Case& one) {
  const auto graph = std::make_shared<const CaseGraph>(build_case(one));
  Read read{graph, call_for(graph->graph, graph->graph.nodes().back())};
  size_t next = 0;
  for (const ValueId id : read.call.node.inputs) {
    const Tensor* const constant = id == no_value ? nullptr : graph->graph.constant_tensor(id);
    read.data.push_back(id == no_value ? Data() : constant != nullptr ? Data(*constant) : graph->inputs.at(next++));
    read.inputs.push_back(read.data.back() ? read.data.back().tensor() : Tensor());
  }
  return read;
}

// The reasons of the first kernel, or nothing if it takes the case.
std::string refusal(const std::string& text) {
  const Read read = read_case(parse_case(text));
  const auto device = open_cpu(1);
  return device->kernels().find(read.call.node.op)[0].supports(read.call).detail;
}

// Runs the first kernel, which must take the case, and compares: bytes bit for bit, floats within `limit`.
void check(Device& device, const Case& one, double limit, const std::string& where) {
  const Read read = read_case(one);
  const Kernel& kernel = device.kernels().find(read.call.node.op)[0];
  ASSERT_EQ(kernel.supports(read.call).detail, "") << one.text;
  Outputs wanted(read.call.outputs.size());
  run_reference(read.call, read.data, wanted);
  const std::vector<Tensor> found = run_kernel(device, read.call, read.inputs, &kernel);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!read.call.wants_output(i)) continue;
    const Tensor want = wanted.all()[i].tensor();
    if (is_float(want.dtype())) {
      EXPECT_LT(relative_error(found[i], doubles(want)), limit) << one.text << ", output " << i << ", " << where;
    } else {
      EXPECT_TRUE(std::ranges::equal(found[i].bytes(), want.bytes())) << one.text << ", " << where;
    }
  }
}

void check_everywhere(const std::vector<std::string>& texts, double limit) {
  for_each_target([&](const std::string& target) {
    for (const size_t threads : std::initializer_list<size_t>{1, 2, 3}) {
      const auto device = open_cpu(threads);
      for (const std::string& text : texts) check(*device, parse_case(text), limit, cat(target, ", threads ", threads));
    }
  });
}

TEST(CpuQuantized, every_byte_of_elementwise_results_is_the_references) {
  size_t run = 0;
  for_each_target([&](const std::string& target) {
    const auto device = open_cpu(2);
    for (const char* op : {"QLinearAdd", "QLinearMul", "QLinearWhere", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat"}) {
      for (const Case& one : cases_of(*all_ops().find(cat("com.microsoft:", op)), {DType::U8, DType::I8})) {
        check(*device, one, 0, target);
        ++run;
      }
    }
  });
  EXPECT_GT(run, 50U);
}

TEST(CpuQuantized, long_rows_with_one_operand_that_stands_still) {
  check_everywhere({"com.microsoft:QLinearMul u8[3,2000] f32[]{0.05} u8[]{12} u8[1] f32[]{0.1} u8[]{3} f32[]{0.2113} u8[]{7}",
                    "com.microsoft:QLinearAdd i8[3,1] f32[]{0.05} i8[]{12} i8[3,2000] f32[]{0.1} i8[]{3} f32[]{0.0113} i8[]{-7}"},
                   0);
}

TEST(CpuQuantized, bytes_by_their_own_range_are_the_references) {
  check_everywhere(
      {"DynamicQuantizeLinear f32[3,333]~small outputs=3", "DynamicQuantizeLinear f32[100001]~unit outputs=3",
       "DynamicQuantizeLinear f32[6]{0,2,-3,-2.5,1.34,0.5} outputs=3", "DynamicQuantizeLinear f32[3]{0,0,0} outputs=3"},
      1e-30);
}

TEST(CpuQuantized, products_of_many_tiles_and_parts_agree) {
  const std::string deep = " f32[]{0.01} f32[150]~unit! u8[]{128} ";
  check_everywhere(
      {cat("com.microsoft:MatMulIntegerToFloat u8[70,1601] i8[1601,150]!", deep, "i8[150]! f32[150]~small!"),
       cat("com.microsoft:MatMulIntegerToFloat u8[7,801] u8[801,150]", deep, "u8[150]!"),
       cat("com.microsoft:MatMulIntegerToFloat u8[1,769] i8[769,150]!", deep, "i8[]{0}"),
       "com.microsoft:DynamicQuantizeMatMul f32[50,333]~small u8[333,77]! f32[77]~unit! u8[77]! f32[77]~small!",
       "com.microsoft:QGemm u8[50,333] f32[]{0.01} u8[]{128} i8[333,77]! f32[77]~unit! i8[77]! i32[77]! f32[]{2} u8[]{128}",
       "com.microsoft:QGemm u8[333,50] f32[]{0.01} u8[]{128} i8[77,333]! f32[77]~unit! i8[77]! i32[50,77] f32[]{2} i8[]{3} "
       "transA=1 transB=1"},
      1e-5);
}

TEST(CpuQuantized, sums_at_the_limit_of_int32_do_not_saturate) {
  const std::vector<uint8_t> bytes(33000, 255);
  const Tensor a = Tensor::from<uint8_t>({1, 33000}, std::span<const uint8_t>(bytes));
  const Tensor b = Tensor::from<uint8_t>({33000, 1}, std::span<const uint8_t>(bytes));
  const Tensor one = Tensor::scalar<float>(1);
  const Tensor none = Tensor::scalar<uint8_t>(0);
  for_each_target([&](const std::string& target) {
    const auto device = open_cpu(1);
    const auto found = run_by_hand(*device, {.op = "com.microsoft:MatMulIntegerToFloat",
                                             .inputs = {a, b, one, one, none, none},
                                             .constant = {false, true},
                                             .outputs = {{DType::F32, {1, 1}}}});
    EXPECT_EQ(found.at(0).span<float>()[0], static_cast<float>(int64_t{33000} * 255 * 255)) << target;
  });
}

TEST(CpuQuantized, blocks_of_few_bits_agree_for_few_rows_and_many) {
  std::vector<std::string> texts;
  for (const char* rows : {"1", "4", "5", "33"}) {
    texts.push_back(cat("com.microsoft:MatMulNBits f32[", rows,
                        ",300]~small u8[37,10,16]! f32[37,10]~unit! u8[37,5]! - f32[37]~small! K=300 N=37 "
                        "bits=4 block_size=32"));
    texts.push_back(
        cat("com.microsoft:MatMulNBits f32[", rows, ",300]~small u8[37,19,4]! f32[37,19]~unit! K=300 N=37 bits=2 block_size=16"));
    texts.push_back(cat("com.microsoft:MatMulNBits f32[", rows,
                        ",300]~small u8[37,3,128]! f32[37,3]~unit! f32[37,3]~small! K=300 N=37 bits=8 "
                        "block_size=128"));
  }
  check_everywhere(texts, 1e-5);
}

TEST(CpuQuantized, lstm_layers_agree_in_both_directions) {
  check_everywhere(
      {"com.microsoft:DynamicQuantizeLSTM f32[6,3,33]~small u8[2,33,160]! u8[2,40,160]! f32[2,320]~small! - f32[2,3,40]~unit "
       "f32[2,3,40]~unit - f32[2]{0.01,0.02} u8[2]{128,120} f32[2]{0.01,0.015} u8[2]{128,130} hidden_size=40 outputs=3 "
       "direction=bidirectional",
       "com.microsoft:DynamicQuantizeLSTM f32[3,1,7]~small i8[1,7,1200]! i8[1,300,1200]! - - - - - f32[1]{0.01} i8[1]{0} "
       "f32[1]{0.002} i8[1]{0} hidden_size=300 outputs=3 direction=reverse"},
      2e-5);
}

TEST(CpuQuantized, lstm_input_of_zeros_alone_has_no_scale_and_gives_what_the_bias_gives) {
  check_everywhere({"com.microsoft:DynamicQuantizeLSTM f32[2,1,2]{0,0,0,0} i8[1,2,12]! i8[1,3,12]! f32[1,24]~small! - - - - "
                    "f32[1]{0.02} i8[1]{0} "
                    "f32[1]{0.01} i8[1]{0} hidden_size=3 outputs=3"},
                   2e-5);
}

TEST(CpuQuantized, what_is_not_done_is_refused_with_the_reason) {
  const std::string weights = "com.microsoft:DynamicQuantizeLSTM f32[5,2,4]~small i8[1,4,12]! i8[1,3,12]! - ";
  const std::string rest = "f32[1]{0.02} i8[1]{0} f32[1]{0.01} i8[1]{0} hidden_size=3";
  EXPECT_EQ(refusal(cat(weights, "i32[2]{5,3} - - - ", rest)), "input sequence_lens");
  EXPECT_EQ(refusal(cat(weights, "- - - f32[1,9]~small! ", rest)), "peepholes");
  EXPECT_EQ(refusal("com.microsoft:MatMulIntegerToFloat u8[1,40000] i8[40000,1]! f32[]{1} f32[]{1}"),
            "sums of 40000 products may not fit int32");
  EXPECT_NE(
      refusal(
          "com.microsoft:MatMulNBits f32[2,32]~small u8[3,2,8]! f32[3,2]~unit! - i32[32]~index:2! K=32 N=3 bits=4 block_size=16"),
      "");
}

}  // namespace
}  // namespace unmoor::test
