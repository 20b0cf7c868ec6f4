#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/ops/cases.h"

namespace unmoor::test {
namespace {

bool allows_float(const Port& port) {
  return port.dtypes.empty() || std::ranges::find(port.dtypes, DType::F32) != port.dtypes.end();
}

// Of ai.onnx, with float32 among what it takes or gives. Control flow is no kernel; sequences and optionals hold values that
// others made.
bool is_float_operator(const Op& op) {
  if (op.name.find(':') != std::string::npos || op.category == Category::ControlFlow || op.category == Category::Sequence)
    return false;
  return std::ranges::any_of(op.inputs, allows_float) || std::ranges::any_of(op.outputs, allows_float);
}

bool is_float(const Type& type) {
  const auto* const tensor = std::get_if<TensorType>(&type);
  return tensor != nullptr && tensor->dtype == DType::F32;
}

// Whether a kernel of the table takes the case, once values are known, and works on float32.
bool is_native(const Device& device, const Case& one) {
  const CaseGraph graph = build_case(one);
  OpCall call = call_for(graph.graph, graph.graph.nodes().back());
  size_t next = 0;
  call.constants.resize(call.node.inputs.size(), nullptr);
  for (size_t i = 0; i < call.node.inputs.size(); ++i) {
    const ValueId id = call.node.inputs[i];
    if (id == no_value || graph.graph.constant_tensor(id) != nullptr) continue;
    const Data& data = graph.inputs.at(next++);
    if (!data.is_tensor()) return false;
    call.constants[i] = &data.tensor();
  }
  call.outputs.clear();
  call.outputs = infer_outputs(call);
  bool floats = std::ranges::any_of(call.outputs, is_float);
  for (const auto& type : call.inputs) floats = floats || (type && is_float(*type));
  const bool fixed = std::ranges::all_of(call.outputs, [](const Type& type) { return is_known(type); });
  return floats && std::ranges::any_of(device.kernels().find(one.op), [&](const Kernel& kernel) {
           return (fixed || kernel.evaluate) && static_cast<bool>(kernel.supports(call));
         });
}

TEST(CpuCoverage, most_float32_operators_have_a_kernel_of_their_own) {
  const auto device = open_cpu(1);
  size_t count = 0;
  size_t native = 0;
  std::string missing;
  for (const auto& [name, op] : all_ops().all()) {
    if (!is_float_operator(op)) continue;
    ++count;
    const std::vector<Case> cases = cases_of(op, {DType::F32});
    const bool found = std::ranges::any_of(cases, [&](const Case& one) { return is_native(*device, one); });
    native += found ? 1 : 0;
    if (!found) missing += " " + name;
  }
  const double percent = 100.0 * static_cast<double>(native) / static_cast<double>(count);
  std::cout << native << " of " << count << " operators with a float32 form have a kernel of their own: " << percent
            << " %; only cpu.generic:" << missing << "\n";
  EXPECT_GT(count, 150U);
  EXPECT_GE(percent, 85) << "only cpu.generic:" << missing;
}

}  // namespace
}  // namespace unmoor::test
