#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

#include "tests/unit/backend_gpu/support.h"
#include "unmoor/backends/gpu/kernels.h"
#include "unmoor/base/error.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::gpu {
namespace {

std::vector<Data> inputs_of(const CaseGraph& a_case, const Node& node) {
  std::vector<Data> inputs;
  size_t next = 0;
  for (const auto id : node.inputs) {
    if (id == no_value) {
      inputs.emplace_back();
    } else if (a_case.graph.value(id).constant) {
      inputs.push_back(*a_case.graph.value(id).constant);
    } else {
      inputs.push_back(a_case.inputs.at(next++));
    }
  }
  return inputs;
}

// One case of an operator and a kernel for it. Stays where it is: the call looks at the graph.
struct CaseRun {
  CaseRun(const Kernel& a_kernel, const Case& of)
      : kernel(a_kernel),
        a_case(of),
        graph(build_case(a_case)),
        call(call_for(graph.graph, graph.graph.nodes().at(0))),
        inputs(inputs_of(graph, graph.graph.nodes().at(0))) {}
  CaseRun(const CaseRun&) = delete;
  CaseRun& operator=(const CaseRun&) = delete;

  const Kernel& kernel;
  Case a_case;
  CaseGraph graph;
  OpCall call;
  std::vector<Data> inputs;  // As the call has them, constants too.
  Prepared prepared = {};
};

std::vector<Data> reference(const OpCall& call, const std::vector<Data>& inputs) {
  Outputs outputs(call.outputs.size());
  run_reference(call, inputs, outputs);
  return std::move(outputs.all());
}

// Inputs without signs: what a sum of products of them gives bounds its rounding.
std::vector<Data> without_signs(const std::vector<Data>& inputs) {
  std::vector<Data> result;
  for (const auto& input : inputs) {
    if (!input || !is_float(input.tensor().dtype())) {
      result.push_back(input);
      continue;
    }
    Tensor tensor(input.tensor().type());
    auto values = doubles(input.tensor());
    for (auto& value : values) value = std::abs(value);
    store(tensor, values);
    result.emplace_back(std::move(tensor));
  }
  return result;
}

// How far a result may be from the reference, by element.
std::vector<double> tolerance(const Op& op, const CaseRun& run, const std::vector<double>& expected, size_t output) {
  const double unit = run.call.output(output).dtype == DType::F64 ? 1e-13 : 1e-6;
  std::vector<double> result(expected.size(), 0);
  if (op.rounding == Rounding::MoveBits) return result;
  for (size_t i = 0; i < expected.size(); ++i) result[i] = unit * (10 * std::abs(expected[i]) + 1e-3);
  if (op.rounding != Rounding::Sum) return result;
  const auto bounds = doubles(reference(run.call, without_signs(run.inputs))[output].tensor());
  double largest = 0;
  for (const auto value : expected) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  for (size_t i = 0; i < expected.size(); ++i) result[i] += 4 * unit * (std::isfinite(bounds[i]) ? std::abs(bounds[i]) : largest);
  return result;
}

void compare(const Op& op, const CaseRun& run, const Tensor& found, const Tensor& wanted, size_t output) {
  ASSERT_TRUE(found.type() == wanted.type());
  if (op.rounding == Rounding::MoveBits && !is_float(wanted.dtype())) {
    EXPECT_TRUE(std::ranges::equal(found.bytes(), wanted.bytes())) << run.kernel.name << " for " << run.a_case.text;
    return;
  }
  const auto expected = doubles(wanted);
  const auto values = doubles(found);
  const auto allowed = is_float(wanted.dtype()) ? tolerance(op, run, expected, output) : std::vector<double>(expected.size(), 0);
  size_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool same = values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]));
    const bool fine = same || std::abs(values[i] - expected[i]) <= allowed[i];
    if (!fine && ++wrong <= 3) {
      ADD_FAILURE() << run.kernel.name << " for " << run.a_case.text << ": element " << i << " of output " << output << " is "
                    << values[i] << ", not " << expected[i] << " within " << allowed[i];
    }
  }
  EXPECT_EQ(wrong, 0U) << run.kernel.name << " for " << run.a_case.text << ", of " << expected.size() << " elements";
}


// Prepares every kernel that takes a case, compiles them together, and compares each. Returns how often each kernel ran.
std::map<std::string, size_t> check(Device& device, const Op& op, const std::vector<Case>& cases) {
  std::map<std::string, size_t> counts;
  std::vector<std::unique_ptr<CaseRun>> runs;
  for (const auto& a_case : cases) {
    for (const auto& kernel : device.kernels().find(op.name)) {
      auto run = std::make_unique<CaseRun>(kernel, a_case);
      if (const auto answer = kernel.supports(run->call); !answer) {
        EXPECT_FALSE(answer.detail.empty()) << a_case.text;
        std::printf("  %s refuses %s: %s\n", kernel.name.c_str(), a_case.text.c_str(), answer.detail.c_str());
        continue;
      }
      run->prepared = kernel.prepare(run->call, device);
      runs.push_back(std::move(run));
    }
  }
  device.finish_preparation();
  for (const auto& run : runs) {
    const auto wanted = reference(run->call, run->inputs);
    const auto found = run_prepared(device, run->prepared, run->call, run->inputs);
    for (size_t i = 0; i < found.size(); ++i) {
      if (run->call.wants_output(i)) compare(op, *run, found[i], wanted[i].tensor(), i);
    }
    ++counts[run->kernel.name];
  }
  return counts;
}

// Shapes that reach several tiles, rows longer than a work-group and odd ends, with the kernel that is meant to run.
struct Shaped {
  const char* text;
  const char* kernel;
};
void PrintTo(const Shaped& shaped, std::ostream* out) { *out << shaped.text; }  // Else its address names the test.

class Shapes : public testing::TestWithParam<Shaped> {};

TEST_P(Shapes, agree_with_the_reference) {
  UNMOOR_NEED_DEVICE();
  const auto a_case = parse_case(GetParam().text);
  const auto counts = check(*device, *all_ops().find(a_case.op), {a_case});
  EXPECT_EQ(counts.count(GetParam().kernel), 1U) << GetParam().kernel << " did not run " << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Of, Shapes,
    testing::Values(
        Shaped{"Conv f32[2,6,9,10]~small f32[16,3,3,3]!~small f32[16]!~small group=2 pads=[1,2,0,1] strides=[2,1] dilations=[1,2]",
               "opencl.conv.gemm"},
        Shaped{"Conv f32[1,20,23,25]~small f32[70,20,3,3]!~small f32[70]!~small pads=[1,1,1,1]", "opencl.conv.gemm"},
        Shaped{"Conv f32[1,20,23,25]~small f32[70,20,1,1]!~small", "opencl.conv.gemm"},
        Shaped{"Conv f32[2,8,21]~small f32[24,8,5]!~small f32[24]!~small auto_pad=SAME_LOWER strides=[2]", "opencl.conv.gemm"},
        Shaped{"Conv f32[1,3,40,40]~small f32[8,3,3,3]!~small strides=[2,2] pads=[1,1,1,1]", "opencl.conv.gemm"},
        Shaped{"Conv f32[1,24,14,14]~small f32[24,1,3,3]!~small f32[24]!~small group=24 pads=[1,1,1,1]", "opencl.conv.direct"},
        Shaped{"MatMul f32[3,70,130]~small f32[130,90]!~small", "opencl.gemm"},
        Shaped{"MatMul f32[2,3,65,33]~small f32[2,1,33,67]~small", "opencl.gemm"},
        Shaped{"MatMul f32[5,300]~small f32[300,200]!~small", "opencl.gemm"},
        Shaped{"MatMul f32[200,31]~small f32[31,5]!~small", "opencl.gemm"},
        Shaped{"Gemm f32[33,70]~small f32[65,33]!~small f32[65]!~small transA=1 transB=1 alpha=0.5 beta=2.0", "opencl.gemm"},
        Shaped{"Softmax f32[3,517]~small axis=-1", "opencl.softmax"},
        Shaped{"Softmax f32[2,70,5]~small axis=1", "opencl.softmax"},
        Shaped{"LayerNormalization f32[7,300]~small f32[300]!~small f32[300]!~small axis=-1", "opencl.layer_norm"},
        Shaped{"ReduceMean f32[3,5,200]~small i64[1]{-1}!", "opencl.reduce.mean"},
        Shaped{"ReduceMax f32[200,7]~small i64[1]{0}!", "opencl.reduce.max"},
        Shaped{"Transpose f32[3,4,5,6,7] perm=[4,2,0,3,1]", "opencl.transpose"},
        Shaped{"Add f32[3,1,5,1,7] f32[1,4,1,6,1]", "opencl.add"}),
    [](const auto& of) { return std::to_string(of.index); });

}  // namespace
}  // namespace unmoor::gpu
