#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unmoor/base/error.h"
#include "unmoor/ops/op.h"
#include "unmoor/ops/type_union.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using testing::ElementsAre;

Data numbers(std::vector<float> values) {
  return Tensor::from<float>(Shape{static_cast<int64_t>(values.size())}, std::span<const float>(values));
}
Data index_of(int64_t value) { return Tensor::scalar<int64_t>(value); }

// Runs the reference of one call and checks that it was inferred as the kind it is.
Data run(const std::string& op, const std::vector<Data>& in, Attributes attributes = {}) {
  Node node;
  node.op = op;
  node.name = op;
  node.attributes = std::move(attributes);
  node.outputs = {ValueId{0}};
  OpCall call{node, {}, {}, {}};
  for (const Data& data : in) {
    call.inputs.push_back(data ? std::optional<Type>(type_of(data)) : std::nullopt);
    call.constants.push_back(data.is_tensor() ? &data.tensor() : nullptr);
  }
  call.outputs = infer_outputs(call);
  Outputs out(1);
  run_reference(call, in, out);
  const Data result = out.all()[0];
  if (!result) return result;
  EXPECT_EQ(call.outputs[0].index(), op == "Optional" ? 2U : type_of(result).index()) << op;
  return result;
}

std::vector<double> firsts(const Data& sequence) {
  std::vector<double> values;
  for (const Data& item : sequence.sequence().items) values.push_back(doubles(item.tensor()).at(0));
  return values;
}

Data three() { return run("SequenceConstruct", {numbers({1, 1}), numbers({2}), numbers({3, 3})}); }

TEST(Sequence, inserts_before_a_position_or_at_the_end) {
  EXPECT_THAT(firsts(run("SequenceInsert", {three(), numbers({9})})), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(firsts(run("SequenceInsert", {three(), numbers({9}), index_of(0)})), ElementsAre(9, 1, 2, 3));
  EXPECT_THAT(firsts(run("SequenceInsert", {three(), numbers({9}), index_of(3)})), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(firsts(run("SequenceInsert", {three(), numbers({9}), index_of(-1)})), ElementsAre(1, 2, 9, 3));
  EXPECT_THROW(run("SequenceInsert", {three(), numbers({9}), index_of(4)}), Error);
}

TEST(Sequence, erases_and_reads_by_position) {
  EXPECT_THAT(firsts(run("SequenceErase", {three()})), ElementsAre(1, 2));
  EXPECT_THAT(firsts(run("SequenceErase", {three(), index_of(-3)})), ElementsAre(2, 3));
  EXPECT_EQ(doubles(run("SequenceAt", {three(), index_of(-1)}).tensor())[0], 3);
  EXPECT_EQ(integers(run("SequenceLength", {three()}).tensor())[0], 3);
  EXPECT_THROW(run("SequenceAt", {three(), index_of(3)}), Error);
  EXPECT_THROW(run("SequenceErase", {run("SequenceEmpty", {})}), Error);
}

TEST(Sequence, owns_what_it_holds) {
  Tensor tensor = Tensor::from<float>(Shape{1}, {5.0F});
  const Data sequence = run("SequenceConstruct", {tensor});
  tensor.writable_span<float>()[0] = 6;
  EXPECT_THAT(firsts(sequence), ElementsAre(5));
}

TEST(Sequence, splits_and_joins) {
  const Data split = run("SplitToSequence", {numbers({1, 2, 3, 4, 5}), index_of(2)});
  EXPECT_THAT(firsts(split), ElementsAre(1, 3, 5));
  EXPECT_THAT(doubles(run("ConcatFromSequence", {split}, {{"axis", int64_t{0}}}).tensor()), ElementsAre(1, 2, 3, 4, 5));
  const Data rows = run("SequenceConstruct", {numbers({1, 2}), numbers({3, 4})});
  const Data stacked = run("ConcatFromSequence", {rows}, {{"axis", int64_t{-1}}, {"new_axis", int64_t{1}}});
  EXPECT_EQ(stacked.tensor().shape(), (Shape{2, 2}));
  EXPECT_THAT(doubles(stacked.tensor()), ElementsAre(1, 3, 2, 4));
  EXPECT_THROW(run("ConcatFromSequence", {three()}, {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}}), Error);
}

TEST(Optional, is_empty_or_holds_a_value) {
  const Attributes type{{"type", Type(TensorType{DType::F32, Shape{2}})}};
  EXPECT_FALSE(run("Optional", {}, type));
  EXPECT_EQ(integers(run("OptionalHasElement", {Data()}).tensor())[0], 0);
  const Data held = run("Optional", {numbers({4})});
  EXPECT_EQ(integers(run("OptionalHasElement", {held}).tensor())[0], 1);
  EXPECT_EQ(doubles(run("OptionalGetElement", {held}).tensor())[0], 4);
  EXPECT_THROW(run("Optional", {}), Error);
}

// A body with inputs and outputs of these types.
SubGraph body_of(const std::vector<TensorType>& inputs, const std::vector<TensorType>& outputs) {
  auto graph = std::make_shared<Graph>();
  for (size_t i = 0; i < inputs.size(); ++i) graph->add_input(cat("in", i), inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value value;
    value.type = outputs[i];
    graph->mark_output(graph->add_value(std::move(value)), cat("out", i));
  }
  return graph;
}

std::vector<Type> inferred(const std::string& op, const std::vector<std::optional<Type>>& inputs, Attributes attributes,
                           size_t outputs) {
  Node node;
  node.op = op;
  node.attributes = std::move(attributes);
  node.outputs.resize(outputs);
  return infer_outputs(OpCall{node, inputs, {}, std::vector<const Tensor*>(inputs.size())});
}

const TensorType truth{DType::Bool, Shape()};
const TensorType count{DType::I64, Shape()};

TEST(ControlFlow, an_if_is_what_its_branches_agree_on) {
  const auto branch = [](Shape shape) { return body_of({}, {TensorType{DType::F32, std::move(shape)}}); };
  const Attributes attributes{{"then_branch", branch({2, 3})}, {"else_branch", branch({2, 5})}};
  const auto types = inferred("If", {Type(truth)}, attributes, 1);
  EXPECT_EQ(std::get<TensorType>(types[0]).shape, (Shape{2, Shape::unknown}));
  const Attributes unequal{{"then_branch", branch({2})}, {"else_branch", body_of({}, {})}};
  EXPECT_THROW(inferred("If", {Type(truth)}, unequal, 1), Error);
}

TEST(ControlFlow, a_loop_stacks_what_each_iteration_gives) {
  const TensorType state{DType::F32, Shape{4}};
  const TensorType captured{DType::F32, Shape{7}};
  const TensorType grown{DType::F32, Shape{5}};
  const Attributes attributes{{"body", body_of({count, truth, state, captured}, {truth, grown, state})},
                              {"captures", int64_t{1}}};
  const auto types = inferred("Loop", {Type(count), Type(truth), Type(state), Type(captured)}, attributes, 2);
  EXPECT_EQ(std::get<TensorType>(types[0]).shape, (Shape{Shape::unknown}));
  EXPECT_EQ(std::get<TensorType>(types[1]).shape, (Shape{Shape::unknown, 4}));
}

TEST(ControlFlow, a_scan_knows_its_length_and_axes) {
  const TensorType state{DType::F32, Shape{4}};
  const TensorType scanned{DType::F32, Shape{3, 9}};
  const TensorType row{DType::F32, Shape{3}};
  const Attributes attributes{{"body", body_of({state, row}, {state, row})},
                              {"num_scan_inputs", int64_t{1}},
                              {"scan_input_axes", std::vector<int64_t>{1}},
                              {"scan_output_axes", std::vector<int64_t>{-1}}};
  const auto types = inferred("Scan", {Type(state), Type(scanned)}, attributes, 2);
  EXPECT_EQ(std::get<TensorType>(types[0]).shape, (Shape{4}));
  EXPECT_EQ(std::get<TensorType>(types[1]).shape, (Shape{3, 9}));
}

}  // namespace
}  // namespace unmoor
