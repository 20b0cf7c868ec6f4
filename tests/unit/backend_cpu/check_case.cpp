#include "tests/unit/backend_cpu/check_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/backend_cpu/support.h"
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

bool shares_bytes(const OpCall& call) {
  return !call.inputs.empty() && call.has(0) && call.wants_output(0) && call.input(0).bytes() == call.output(0).bytes();
}

bool is_fixed(const OpCall& call) {
  return std::ranges::all_of(call.outputs, [](const Type& type) { return is_known(type); });
}

// The call as a session makes it once it has the values, where types do not tell the results'.
void add_values(OpCall& call, const std::vector<Data>& data) {
  call.constants.resize(data.size(), nullptr);
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i]) call.constants[i] = &data[i].tensor();
  }
  call.outputs.clear();
  call.outputs = infer_outputs(call);
}

}  // namespace

void check_case(Device& device, const Op& op, const Case& one, const std::string& where, Count& count) {
  const CaseGraph graph = build_case(one);
  OpCall call = call_for(graph.graph, graph.graph.nodes().back());
  std::vector<Data> data;
  std::vector<Tensor> inputs;
  size_t next = 0;
  for (const ValueId id : call.node.inputs) {
    const Tensor* const constant = id == no_value ? nullptr : graph.graph.constant_tensor(id);
    data.push_back(id == no_value ? Data() : constant != nullptr ? Data(*constant) : graph.inputs.at(next++));
    if (data.back() && !data.back().is_tensor()) return;
    inputs.push_back(data.back() ? data.back().tensor() : Tensor());
  }
  if (!is_fixed(call)) add_values(call, data);
  const bool fixed = is_fixed(call);
  std::vector<Tensor> reference;
  for (const Kernel& kernel : device.kernels().find(op.name)) {
    if (!fixed && kernel.prepare) continue;  // Asked about known shapes only.
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

}  // namespace unmoor::test
