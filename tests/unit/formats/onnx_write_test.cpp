#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>

#include "tests/unit/formats/model_text.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using namespace model_text;
using testing::ElementsAre;

Graph written_and_read(const Graph& graph) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/m.onnx");
  write_onnx(graph, path);
  return read_onnx(path).graph;
}

ValueId add(Graph& graph, std::string op, std::vector<ValueId> inputs, std::string name, Attributes attributes = {}) {
  Value value;
  value.name = name;
  value.type = TensorType{DType::F32, Shape::of_unknown_rank()};
  Node node;
  node.name = cat("make ", name);
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.outputs = {graph.add_value(std::move(value))};
  const ValueId output = node.outputs[0];
  graph.add_node(std::move(node));
  return output;
}

TensorType matrix() { return {DType::F32, {2, 3}}; }

TEST(OnnxWrite, every_kind_of_attribute_comes_back) {
  Graph graph;
  const ValueId x = graph.add_input("x", matrix());
  const Attributes attributes{{"i", int64_t{-3}},
                              {"f", 0.5F},
                              {"s", std::string("text")},
                              {"is", std::vector<int64_t>{1, -2}},
                              {"no", std::vector<int64_t>{}},
                              {"fs", std::vector<float>{1.5F}},
                              {"ss", std::vector<std::string>{"a", ""}},
                              {"t", Tensor::from<int64_t>({2}, {7, 8})},
                              {"tp", Type(SequenceType{std::make_shared<const Type>(matrix())})}};
  graph.mark_output(add(graph, "custom.domain:Mystery", {x, no_value, x}, "y", attributes), "y");
  const Graph back = written_and_read(graph);
  EXPECT_EQ(summary(back), "custom.domain:Mystery(x,,x)->y");
  const Attributes& got = back.nodes()[0].attributes;
  ASSERT_EQ(got.size(), attributes.size());
  EXPECT_EQ(std::get<int64_t>(got.at("i")), -3);
  EXPECT_EQ(std::get<float>(got.at("f")), 0.5F);
  EXPECT_EQ(std::get<std::string>(got.at("s")), "text");
  EXPECT_THAT(std::get<std::vector<int64_t>>(got.at("is")), ElementsAre(1, -2));
  EXPECT_THAT(std::get<std::vector<int64_t>>(got.at("no")), ElementsAre());
  EXPECT_THAT(std::get<std::vector<float>>(got.at("fs")), ElementsAre(1.5F));
  EXPECT_THAT(std::get<std::vector<std::string>>(got.at("ss")), ElementsAre("a", ""));
  EXPECT_THAT(integers(std::get<Tensor>(got.at("t"))), ElementsAre(7, 8));
  EXPECT_EQ(to_text(std::get<Type>(got.at("tp"))), to_text(std::get<Type>(attributes.at("tp"))));
}

TEST(OnnxWrite, types_come_back) {
  Shape shape{1, Shape::unknown, Shape::unknown, 0};
  shape.set_symbol(1, "batch");
  Graph graph;
  graph.add_input("a", TensorType{DType::BF16, shape});
  graph.add_input("b", TensorType{DType::I4, Shape()});
  graph.add_input("c", TensorType{DType::F16, Shape::of_unknown_rank()});
  graph.add_input("d", MapType{DType::String, std::make_shared<const Type>(matrix())});
  graph.add_input("e", OptionalType{std::make_shared<const Type>(matrix())});
  // An input of unknown rank keeps its dtype.
  const Graph back = written_and_read(graph);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(to_text(back.values()[i].type), to_text(graph.values()[i].type)) << i;
}

TEST(OnnxWrite, constants_of_every_type_come_back_bit_for_bit) {
  Graph graph;
  for (int code = 0; code <= static_cast<int>(DType::C128); ++code) {
    const auto dtype = static_cast<DType>(code);
    if (dtype == DType::String) continue;
    Tensor tensor(TensorType{dtype, {3}});
    for (size_t i = 0; i < tensor.bytes().size(); ++i) tensor.writable_bytes()[i] = static_cast<std::byte>(17 * i + 1);
    graph.add_constant(std::string(name(dtype)), tensor);
  }
  graph.add_constant("string", Tensor::of_strings({2}, {"a", std::string("b\0c", 3)}));
  const Graph back = written_and_read(graph);
  ASSERT_EQ(back.values().size(), graph.values().size());
  for (const auto& value : graph.values()) {
    const Tensor& got = back.value(back.find_value(value.name).value()).constant->tensor();
    EXPECT_EQ(got.type(), value.constant->tensor().type());
    EXPECT_TRUE(std::ranges::equal(got.bytes(), value.constant->tensor().bytes())) << value.name;
  }
  EXPECT_EQ(back.value(back.find_value("string").value()).constant->tensor().strings()[1], std::string("b\0c", 3));
}

TEST(OnnxWrite, outputs_keep_their_names_whatever_they_are) {
  Graph graph;
  const ValueId x = graph.add_input("x", matrix());
  const ValueId w = graph.add_constant("w", Tensor::scalar(2.0F));
  const ValueId y = add(graph, "Abs", {x}, "inner");
  for (const auto& [value, name] : {std::pair(y, "first"), std::pair(y, "second"), std::pair(x, "passed"), std::pair(w, "w")}) {
    graph.mark_output(value, name);
  }
  const Graph back = written_and_read(graph);
  EXPECT_THAT(back.output_names(), ElementsAre("first", "second", "passed", "w"));
  EXPECT_EQ(back.inputs().size(), 1U);
}

TEST(OnnxWrite, bodies_capture_again_what_was_explicit) {
  // If(c, a) with branches of one captured input; names inside clash with those outside.
  const auto branch = [](const std::string& op) {
    Graph body;
    const ValueId captured = body.add_input("captured", matrix());
    body.mark_output(add(body, op, {captured}, "a"), "a");
    return std::make_shared<const Graph>(std::move(body));
  };
  Graph graph;
  const ValueId c = graph.add_input("c", TensorType{DType::Bool, Shape()});
  const ValueId x = graph.add_input("x", matrix());
  const ValueId a = add(graph, "Abs", {x}, "a");
  const Attributes attributes{
      {"then_branch", SubGraph(branch("Exp"))}, {"else_branch", SubGraph(branch("Neg"))}, {"captures", int64_t{1}}};
  graph.mark_output(add(graph, "If", {c, a}, "y", attributes), "y");
  const Graph back = written_and_read(graph);
  EXPECT_EQ(summary(back), "Abs(x)->a; If(c,a)->y");
  EXPECT_EQ(std::get<int64_t>(back.nodes()[1].attributes.at("captures")), 1);
  const SubGraph then_branch = std::get<SubGraph>(back.nodes()[1].attributes.at("then_branch"));
  EXPECT_EQ(summary(*then_branch), "Exp(a)->a#3");  // The other branch, written first, has a#2.
}

TEST(OnnxWrite, a_foreign_operators_own_captures_are_no_captured_values) {
  Graph graph;
  const ValueId x = graph.add_input("x", matrix());
  graph.mark_output(add(graph, "acme:Trap", {x, x}, "y", {{"captures", int64_t{1}}}), "y");
  const Graph back = written_and_read(graph);
  EXPECT_EQ(summary(back), "acme:Trap(x,x)->y");
  EXPECT_EQ(std::get<int64_t>(back.nodes()[0].attributes.at("captures")), 1);
}

TEST(OnnxWrite, values_without_names_get_names_in_time) {
  Graph graph;
  const ValueId x = graph.add_input("x", matrix());
  std::vector<ValueId> inputs{x};
  for (int i = 0; i < 100000; ++i) inputs.push_back(graph.add_constant("", Tensor::scalar(1.0F)));
  graph.mark_output(add(graph, "Sum", inputs, "y"), "y");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(written_and_read(graph).values().size(), graph.values().size());
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 30);
}

TEST(OnnxWrite, more_than_protobuf_can_hold_is_an_error) {
  const auto nothing = std::make_shared<int>();
  const size_t size = size_t{5} << 30;  // Mapped, not touched: the bytes are never read.
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  const TensorType type{DType::U8, {static_cast<int64_t>(size)}};
  const Tensor tensor = Tensor::view(type, {static_cast<const std::byte*>(at), size}, nothing);
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/m.onnx");
  EXPECT_THROW(write_onnx_tensor(tensor, "w", path), Error);
  Graph graph;
  graph.mark_output(add(graph, "acme:Big", {}, "y", {{"value", tensor}}), "y");
  EXPECT_THROW(write_onnx(graph, path), Error);
  ::munmap(at, size);
}

TEST(OnnxWrite, sequences_are_constructed_and_maps_refused) {
  Graph graph;
  const ValueId s = graph.add_constant("s", Sequence{{Tensor::scalar(1.0F), Tensor::scalar(2.0F)}});
  graph.mark_output(add(graph, "SequenceLength", {s}, "y"), "y");
  EXPECT_EQ(summary(written_and_read(graph)), "SequenceConstruct(s/item,s/item#2)->s; SequenceLength(s)->y");
  Graph with_map;
  with_map.add_constant("m", Map{Tensor::from<int64_t>({0}, {}), {}});
  EXPECT_THROW(written_and_read(with_map), Error);
}

TEST(OnnxTensorFile, tensors_and_sequences_come_back) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/input_0.pb");
  write_onnx_tensor(Tensor::from<int64_t>({2}, {5, 6}), "x", path);
  EXPECT_THAT(integers(read_onnx_tensor(path).tensor()), ElementsAre(5, 6));
  write_onnx_tensor(Sequence{{Tensor::scalar(1.0F), Tensor::scalar(2.0F)}}, "name", path);
  EXPECT_EQ(read_onnx_tensor(path).sequence().items.size(), 2U);
  write_onnx_tensor(Sequence{}, "name", path);
  EXPECT_TRUE(read_onnx_tensor(path).sequence().items.empty());
  write_onnx_tensor(Sequence{{Sequence{{Tensor::scalar(1.0F)}}, Sequence{}}}, "name", path);
  const Data nested = read_onnx_tensor(path);
  EXPECT_EQ(nested.sequence().items[0].sequence().items.size(), 1U);
}

TEST(OnnxTensorFile, the_type_decides_what_the_bytes_mean) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/input_0.pb");
  write_onnx_tensor(Sequence{{Tensor::scalar(3.0F)}}, "name", path);
  const Type optional = OptionalType{std::make_shared<const Type>(matrix())};
  EXPECT_THAT(doubles(read_onnx_tensor(path, &optional).tensor()), ElementsAre(3));
  write_file(path, "");
  EXPECT_FALSE(read_onnx_tensor(path, &optional));
  const std::string items = number(2, 1) + bytes(3, tensor("", 1, {}, floats({4})));
  write_file(path, number(2, 7) + number(3, 9) + bytes(5, items));
  const Type map = MapType{DType::I64, std::make_shared<const Type>(matrix())};
  EXPECT_THAT(integers(read_onnx_tensor(path, &map).map().keys), ElementsAre(9));
  write_file(path, number(3, 9));
  EXPECT_THROW(read_onnx_tensor(path, &map), Error);
}

TEST(OnnxWrite, attention_names_the_opset_that_it_needs) {
  const auto opset_of = [](size_t inputs, Attributes attributes) {
    Graph graph;
    const ValueId q = graph.add_input("q", TensorType{DType::F32, {1, 2, 3, 4}});
    std::vector<ValueId> used{q, q, q, no_value, no_value, no_value, graph.add_input("n", TensorType{DType::I64, {1}})};
    used.resize(inputs);
    graph.mark_output(add(graph, "Attention", used, "y", std::move(attributes)), "y");
    const TemporaryFolder folder;
    const std::string path = cat(folder.path(), "/m.onnx");
    write_onnx(graph, path);
    return read_onnx(path).opsets.at("ai.onnx");
  };
  EXPECT_EQ(opset_of(3, {{"is_causal", int64_t{1}}, {"left_window_size", int64_t{-1}}}), 23);
  EXPECT_EQ(opset_of(7, {}), 24);
  EXPECT_EQ(opset_of(3, {{"right_window_size", int64_t{0}}}), 25);
}

}  // namespace
}  // namespace unmoor
