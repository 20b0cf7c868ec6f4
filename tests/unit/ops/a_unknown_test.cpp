#include <gtest/gtest.h>

#include "unmoor/base/error.h"
#include "unmoor/ops/cases.h"

// Every case of every operator with less known than usual: types must still follow, and be no other than with all known.
namespace unmoor {
namespace {

// How much of the inputs' shapes stays.
enum class Known { Ranks, Nothing, FirstInput };

Type hidden(const Type& type, Known known, size_t input) {
  const auto* tensor = std::get_if<TensorType>(&type);
  if (tensor == nullptr || (known == Known::FirstInput && input == 0)) return type;
  if (known != Known::Ranks) return TensorType{tensor->dtype, Shape::of_unknown_rank()};
  Shape shape(std::vector<int64_t>(tensor->shape.rank(), Shape::unknown));
  if (shape.rank() > 0) shape.set_symbol(0, "batch");
  return TensorType{tensor->dtype, shape};
}

bool agree(const Shape& less, const Shape& more) {
  if (!less.has_rank() || !more.has_rank()) return true;
  if (less.rank() != more.rank()) return false;
  for (size_t axis = 0; axis < less.rank(); ++axis) {
    if (less[axis] >= 0 && more[axis] >= 0 && less[axis] != more[axis]) return false;
  }
  return true;
}

void check(const Case& a_case, Known known, bool keep_constants) {
  const CaseGraph built = build_case(a_case);
  const Node& node = built.graph.node(NodeId{0});
  OpCall call = call_for(built.graph, node);
  const std::vector<Type> full = call.outputs;
  call.outputs.clear();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (keep_constants && call.constants[i] != nullptr) continue;
    call.constants[i] = nullptr;
    if (call.inputs[i]) call.inputs[i] = hidden(*call.inputs[i], known, i);
  }
  const std::vector<Type> types = infer_outputs(call);
  for (size_t i = 0; i < types.size(); ++i) {
    const auto* less = std::get_if<TensorType>(&types[i]);
    const auto* more = std::get_if<TensorType>(&full[i]);
    if (less == nullptr || more == nullptr) continue;
    EXPECT_EQ(less->dtype, more->dtype);
    EXPECT_TRUE(agree(less->shape, more->shape))
        << "output " << i << ": " << to_text(*less) << " where all known gives " << to_text(*more);
  }
  call.outputs = types;
  cost_of(call);  // Must not need shapes.
}

TEST(EveryCase, infers_with_unknown_shapes) {
  size_t checked = 0;
  for (const auto& [name, op] : all_ops().all()) {
    for (const Case& a_case : cases_of(op, {DType::F32})) {
      for (const Known known : {Known::Ranks, Known::Nothing, Known::FirstInput}) {
        for (const bool keep_constants : {true, false}) {
          SCOPED_TRACE(cat(a_case.text, ", kind ", static_cast<int>(known), keep_constants ? " with constants" : ""));
          try {
            check(a_case, known, keep_constants);
          } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
          }
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 3000U);
}

}  // namespace
}  // namespace unmoor
