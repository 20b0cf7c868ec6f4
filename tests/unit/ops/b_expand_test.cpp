#include <gtest/gtest.h>

#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"

// Every case of every operator: what `infer` says against what the reference makes, and `expand` against the reference.
namespace unmoor {
namespace {

const std::vector<DType> tested{DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8, DType::I8};

std::vector<Case> all_cases(bool only_expanding) {
  std::vector<Case> cases;
  for (const auto& [op_name, op] : all_ops().all()) {
    if (!op.reference || (only_expanding && !op.expand)) continue;
    try {
      for (auto& a_case : cases_of(op, tested)) cases.push_back(std::move(a_case));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  return cases;
}

// Runs each node by its reference. Results of the graph's outputs, in order.
std::vector<Data> run_nodes(const Graph& graph, const std::vector<Data>& inputs) {
  std::vector<Data> values(graph.values().size());
  for (size_t i = 0; i < graph.values().size(); ++i) {
    if (graph.values()[i].constant) values[i] = *graph.values()[i].constant;
  }
  for (size_t i = 0; i < inputs.size(); ++i) values[Graph::index(graph.inputs()[i])] = inputs[i];
  for (const Node& node : graph.nodes()) {
    OpCall call = call_for(graph, node);
    std::vector<Data> in;
    in.reserve(node.inputs.size());  // The call points into it.
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      in.push_back(node.inputs[i] == no_value ? Data() : values[Graph::index(node.inputs[i])]);
      if (in.back().is_tensor()) {
        call.inputs[i] = in.back().tensor().type();
        call.constants[i] = &in.back().tensor();
      }
    }
    call.outputs = infer_outputs(call);
    Outputs out(node.outputs.size());
    run_reference(call, in, out);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_value) values[Graph::index(node.outputs[i])] = out.all()[i];
    }
  }
  std::vector<Data> results;
  for (const ValueId id : graph.outputs()) results.push_back(values[Graph::index(id)]);
  return results;
}

bool fits(const Shape& declared, const Shape& made) {
  if (!declared.has_rank()) return true;
  if (declared.rank() != made.rank()) return false;
  for (size_t axis = 0; axis < made.rank(); ++axis) {
    if (declared[axis] >= 0 && declared[axis] != made[axis]) return false;
  }
  return true;
}

// How far two results of a dtype may be apart, as a part of their size.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1e-11;
    case DType::F32:
      return 2e-5;
    case DType::F16:
      return 4e-3;
    case DType::BF16:
      return 3e-2;
    default:
      return is_float(dtype) ? 0.3 : 0;
  }
}

// The parts of complex numbers as numbers.
Tensor parts_of(const Tensor& tensor) {
  if (tensor.dtype() != DType::C64 && tensor.dtype() != DType::C128) return tensor;
  const DType part = tensor.dtype() == DType::C64 ? DType::F32 : DType::F64;
  return Tensor::view({part, Shape{2 * tensor.shape().elements()}}, tensor.bytes(), std::make_shared<Tensor>(tensor));
}

std::string difference(const Tensor& expected_tensor, const Tensor& found_tensor, Rounding rounding) {
  if (expected_tensor.type() != found_tensor.type()) return cat(found_tensor.type(), " instead of ", expected_tensor.type());
  if (expected_tensor.dtype() == DType::String) return expected_tensor.strings() == found_tensor.strings() ? "" : "other strings";
  if (rounding == Rounding::MoveBits) {
    return std::ranges::equal(expected_tensor.bytes(), found_tensor.bytes()) ? "" : "bits differ where they are only to be moved";
  }
  const Tensor expected = parts_of(expected_tensor);
  const Tensor found = parts_of(found_tensor);
  const auto a = doubles(expected);
  const auto b = doubles(found);
  double largest = 0;
  for (const double value : a) largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  size_t other_steps = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (rounding == Rounding::Quantise && !is_float(expected.dtype()) && std::fabs(a[i] - b[i]) == 1) {
      // The one element of a case that lies on a tie: sums in float32 against sums in float64.
      if (++other_steps > 1) return cat(other_steps, " elements are another step");
      continue;
    }
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    // Near the dtype's limit one may overflow where the other does not; elsewhere only rounding may differ.
    const double allowed = tolerance(expected.dtype()) * std::max(std::fabs(a[i]), std::min(largest, 1.0));
    if (!(std::fabs(a[i] - b[i]) <= allowed)) return cat("element ", i, " is ", b[i], " instead of ", a[i]);
  }
  return "";
}

TEST(EveryCase, infer_says_what_the_reference_makes) {
  size_t checked = 0;
  for (const Case& a_case : all_cases(false)) {
    SCOPED_TRACE(a_case.text);
    try {
      const CaseGraph built = build_case(a_case);
      const auto results = run_nodes(built.graph, built.inputs);
      for (size_t i = 0; i < results.size(); ++i) {
        const Type& declared = built.graph.value(built.graph.outputs()[i]).type;
        const auto* type = std::get_if<TensorType>(&declared);
        if (type == nullptr || !results[i].is_tensor()) {
          EXPECT_EQ(declared.index(), type_of(results[i]).index()) << "output " << i << " is declared " << to_text(declared);
          continue;
        }
        const TensorType& made = results[i].tensor().type();
        EXPECT_EQ(type->dtype, made.dtype);
        EXPECT_TRUE(fits(type->shape, made.shape)) << "inferred " << to_text(*type) << ", made " << to_text(made);
        ++checked;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(checked, 500U);
}

// Nothing where the operator says that these calls have none.
std::optional<Graph> expansion_of(const OpCall& call) {
  try {
    return expanded(call);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Unsupported) return std::nullopt;
    throw;
  }
}

TEST(EveryCase, an_expansion_computes_what_the_reference_does) {
  size_t checked = 0;
  for (const Case& a_case : all_cases(true)) {
    SCOPED_TRACE(a_case.text);
    try {
      const CaseGraph built = build_case(a_case);
      const auto expected = run_nodes(built.graph, built.inputs);
      const OpCall call = call_for(built.graph, built.graph.node(NodeId{0}));
      const auto inner = expansion_of(call);
      if (!inner) continue;
      const auto found = run_nodes(*inner, built.inputs);
      const Rounding rounding = all_ops().find(a_case.op)->rounding;
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        if (!expected[i].is_tensor()) continue;
        EXPECT_EQ(difference(expected[i].tensor(), found[i].tensor(), rounding), "") << "output " << i;
        ++checked;
      }
    } catch (const Error& error) {
      // An operator may have an expansion for some calls only.
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported) << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(checked, 20U);
}

TEST(EveryOperator, with_a_reference_has_cases) {
  for (const auto& [op_name, op] : all_ops().all()) {
    bool takes_tensors = true;
    for (const Port& port : op.inputs) takes_tensors &= !port.dtypes.empty() || op_name == "Identity";
    if (!op.reference || !takes_tensors) continue;
    EXPECT_FALSE(op.cases.empty()) << op_name << " has no case";
  }
}

}  // namespace
}  // namespace unmoor
