#include <random>

#include "unmoor/workbench/self_test_plants.h"

namespace unmoor {
namespace {

class ModelSketch {
 public:
  ValueId input(const std::string& name, Shape shape) {
    const ValueId id = graph_.add_input(name, TensorType{DType::F32, std::move(shape)});
    graph_.mutable_value(id).origin.name = name;
    return id;
  }
  ValueId weights(Shape shape, float deviation) {
    std::mt19937 random(11);
    Tensor tensor(TensorType{DType::F32, std::move(shape)});
    // Sums of twelve: nearly normal, and the same with every library.
    for (float& each : tensor.writable_span<float>()) {
      double sum = -6;
      for (int i = 0; i < 12; ++i) sum += static_cast<double>(random()) / 4294967296.0;
      each = deviation * static_cast<float>(sum);
    }
    return graph_.add_constant("weights", std::move(tensor));
  }
  ValueId scalar(float value) { return graph_.add_constant("scalar", Tensor::scalar<float>(value)); }
  ValueId ints(std::initializer_list<int64_t> values) {
    return graph_.add_constant("ints", Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values));
  }
  // A node called `name` whose first output is called so, too.
  ValueId node(const std::string& name, const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}, size_t outputs = 1) {
    Node made;
    made.name = made.origin.name = name;
    made.op = made.origin.op = op;
    made.inputs = std::move(inputs);
    made.attributes = std::move(attributes);
    for (size_t i = 0; i < outputs; ++i) {
      Value value;
      value.name = value.origin.name = i == 0 ? name : name + "_" + std::to_string(i);
      value.type = TensorType{DType::F32, Shape::of_unknown_rank()};
      made.outputs.push_back(graph_.add_value(std::move(value)));
    }
    const std::vector<ValueId> ids = made.outputs;
    graph_.add_node(std::move(made));
    for (const ValueId id : ids) graph_.mark_output(id, graph_.value(id).name);
    return ids[0];
  }
  Graph take() { return std::move(graph_); }

 private:
  Graph graph_;
};

Graph small_model() {
  ModelSketch s;
  const ValueId x = s.input("x", {2, 8, 12, 12});
  const ValueId conv = s.node("conv", "Conv", {x, s.weights({8, 8, 3, 3}, 0.12F)}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const ValueId relu = s.node("relu", "Relu", {conv});
  s.node("turned", "Transpose", {relu}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  s.node("rest", "Sub", {relu, relu});
  s.node("share", "Softmax", {conv}, {{"axis", int64_t{-1}}});
  s.node("best", "ArgMax", {conv}, {{"axis", int64_t{1}}});
  const ValueId whole = s.node("whole", "Round", {x});
  s.node("top", "TopK", {whole, s.ints({5})}, {{"axis", int64_t{-1}}}, 2);
  s.node("places", "ArgMax", {whole}, {{"axis", int64_t{-1}}});
  s.node("root", "Sqrt", {x});
  s.node("quotient", "Div", {x, whole});
  s.node("above", "Greater", {x, s.scalar(0.25F)});
  s.node("steps", "QuantizeLinear", {conv, s.scalar(0.02F)});
  s.node("tiny", "Mul", {x, s.scalar(1e-39F)});
  return s.take();
}

Graph million_model() {
  ModelSketch s;
  s.node("million", "Exp", {s.input("x", {1000, 1000})});
  return s.take();
}

}  // namespace

Graph plant_model(PlantModel which) { return which == PlantModel::Small ? small_model() : million_model(); }

}  // namespace unmoor
