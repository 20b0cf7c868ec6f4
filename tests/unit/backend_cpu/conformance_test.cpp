#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {
namespace {

constexpr double relative_limit = 2e-5;

// The reference's results for a case with float32 inputs.
std::vector<Tensor> wanted(const OpCall& call, const std::vector<Data>& inputs) {
  Outputs outputs(call.outputs.size());
  run_reference(call, inputs, outputs);
  std::vector<Tensor> tensors;
  for (Data& data : outputs.all()) tensors.push_back(data ? data.tensor() : Tensor());
  return tensors;
}

// One by one: within a few units of the largest of its operands' scale, which a floor stands for.
std::string compare(const Tensor& found, const Tensor& reference, Rounding rounding) {
  if (!(found.type() == reference.type())) return cat("type ", to_text(found.type()), " instead of ", to_text(reference.type()));
  if (!is_float(found.dtype()) || rounding == Rounding::MoveBits) {
    const auto a = found.bytes();
    const auto b = reference.bytes();
    if (std::ranges::equal(a, b)) return {};
    if (!is_float(found.dtype())) return "bytes differ";
    const std::vector<double> y = doubles(found);
    const std::vector<double> want = doubles(reference);
    for (size_t i = 0; i < y.size(); ++i) {
      if (std::isnan(y[i]) && std::isnan(want[i])) continue;  // Whatever the bits of a NaN.
      if (y[i] != want[i] || std::signbit(y[i]) != std::signbit(want[i])) return cat("element ", i, " differs");
    }
    return {};
  }
  const std::vector<double> y = doubles(found);
  const std::vector<double> want = doubles(reference);
  const double error = relative_error(found, want);
  if (!(error < relative_limit)) return cat("relative error ", error);
  double largest = 0;
  for (const double value : want) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  for (size_t i = 0; i < y.size(); ++i) {
    if (std::isfinite(want[i]) && std::abs(y[i] - want[i]) > 1e-4 * std::abs(want[i]) + 1e-5 * largest) {
      return cat("element ", i, " is ", y[i], ", not ", want[i]);
    }
  }
  return {};
}

struct Count {
  size_t run = 0;
  std::set<std::string> kernels = {};
};

bool shares_bytes(const OpCall& call) {
  return !call.inputs.empty() && call.has(0) && call.wants_output(0) && call.input(0).bytes() == call.output(0).bytes();
}

void check_case(Device& device, const Op& op, const Case& one, const std::string& where, Count& count) {
  const CaseGraph graph = build_case(one);
  const OpCall call = call_for(graph.graph, graph.graph.nodes().back());
  std::vector<Data> data;
  std::vector<Tensor> inputs;
  size_t next = 0;
  for (const ValueId id : call.node.inputs) {
    const Tensor* const constant = id == no_value ? nullptr : graph.graph.constant_tensor(id);
    data.push_back(id == no_value ? Data() : constant != nullptr ? Data(*constant) : graph.inputs.at(next++));
    if (data.back() && !data.back().is_tensor()) return;
    inputs.push_back(data.back() ? data.back().tensor() : Tensor());
  }
  for (const Type& type : call.outputs) {
    if (!is_known(type)) return;
  }
  std::vector<Tensor> reference;
  for (const Kernel& kernel : device.kernels().find(op.name)) {
    const Support support = kernel.supports(call);
    if (!support) {
      EXPECT_FALSE(support.detail.empty()) << kernel.name << " refuses " << one.text << " without a word";
      continue;
    }
    if (reference.empty()) reference = wanted(call, data);
    for (const bool in_place : {false, true}) {
      if (in_place && !(kernel.in_place && shares_bytes(call))) continue;
      const std::vector<Tensor> found = run_kernel(device, call, inputs, &kernel, in_place);
      ++count.run;
      count.kernels.insert(kernel.name);
      for (size_t i = 0; i < found.size(); ++i) {
        if (!call.wants_output(i)) continue;
        EXPECT_EQ(compare(found[i], reference.at(i), op.rounding), "")
            << one.text << ", output " << i << ", " << kernel.name << ", " << where << (in_place ? ", in place" : "");
      }
    }
  }
}

TEST(CpuConformance, every_kernel_agrees_with_the_reference_on_every_case_it_takes) {
  Count count;
  for_each_target([&](const std::string& target) {
    for (const size_t threads : std::initializer_list<size_t>{1, 2}) {
      const auto device = open_cpu(threads);
      for (const auto& [name, kernels] : device->kernels().all()) {
        const Op* const op = all_ops().find(name);
        if (op == nullptr) continue;
        for (const Case& one : cases_of(*op, {DType::F32, DType::I64, DType::I32, DType::Bool})) {
          try {
            check_case(*device, *op, one, cat(target, ", threads ", threads), count);
          } catch (const std::exception& error) {
            ADD_FAILURE() << one.text << ", " << target << ": " << error.what();
          }
        }
      }
    }
  });
  EXPECT_GT(count.run, 100U);
  std::string kernels;
  for (const std::string& kernel : count.kernels) kernels += kernel + " ";
  RecordProperty("kernels", kernels);
}

}  // namespace
}  // namespace unmoor::test
