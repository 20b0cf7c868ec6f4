#include "unmoor/ops/compose.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

const Attributes& as_they_come() {
  static const Attributes attributes{{"sorted", int64_t{0}}};
  return attributes;
}

}  // namespace

void add_contrib_unique_op(OpSet& ops) {
  Op op;
  op.name = "com.microsoft:Unique";
  op.summary = "The different elements as they come; which of them each element is, and how many there are of each.";
  op.inputs = {required("x", plain_types())};
  op.inputs[0].dtypes.push_back(DType::String);
  op.outputs = {required("y", op.inputs[0].dtypes), optional("idx", {DType::I64}), optional("counts", {DType::I64})};
  op.infer = [](const OpCall& call) {
    require_rank(call, 0, 1);
    const TensorType count{DType::I64, unknown_shape(1)};
    return std::vector<Type>{TensorType{call.input(0).dtype, unknown_shape(1)}, TensorType{DType::I64, call.input(0).shape},
                             count};
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const std::vector<Tensor> results = results_by(call, "Unique", {in[0].tensor()}, as_they_come(), 4);
    out.set(0, results[0]);
    if (call.wants_output(1)) out.set(1, results[2]);
    if (call.wants_output(2)) out.set(2, results[3]);
  };
  op.expand = [](GraphBuilder& builder) {
    const auto results = builder.add_many("Unique", {builder.input(0)}, as_they_come(), 4);
    builder.output(0, results[0]);
    if (builder.call().wants_output(1)) builder.output(1, results[2]);
    if (builder.call().wants_output(2)) builder.output(2, results[3]);
  };
  op.rounding = Rounding::MoveBits;
  op.category = Category::DynamicOutput;
  op.cases = {"f32[6]{2,1,1,3,4,3} outputs=3",
              "string[9] outputs=3",
              "T[0] outputs=3",
              "i64[20]~index:4 outputs=2,3",
              "f32[4]{nan,1,nan,-0} outputs=3",
              "T[7]~small",
              "u8[33] outputs=3",
              "T[1] outputs=3",
              "bool[5] outputs=3"};
  ops.add(std::move(op));
}

}  // namespace unmoor
