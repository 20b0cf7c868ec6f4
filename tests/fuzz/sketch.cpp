#include "tests/fuzz/sketch.h"

#include <algorithm>

#include "tests/fuzz/absurd.h"
#include "tests/fuzz/change.h"
#include "unmoor/base/error.h"
#include "unmoor/ops/case_values.h"

namespace unmoor::fuzz {
namespace {

const Type open_type = TensorType{DType::F32, Shape::of_unknown_rank()};

ValueId add_output(Graph& graph, Node& node, const std::string& name) {
  Value value;
  value.name = value.origin.name = name;
  value.type = open_type;
  const ValueId id = graph.add_value(std::move(value));
  node.outputs.push_back(id);
  return id;
}

Tensor values_of(Bytes& bytes, Case::Input input) {
  const bool given = !input.values.empty() || !input.texts.empty();
  Shape& shape = input.type.shape;
  shape = cheap(shape);
  const auto count = static_cast<size_t>(shape.elements());
  if (given && input.type.dtype == DType::String) {
    input.texts.resize(count);
  } else if (given) {
    input.values.resize(count);
  }
  if (input.generator == "mask" && !is_float(input.type.dtype) && input.type.dtype != DType::Bool) input.generator.clear();
  Tensor tensor = make_input(input, mixed(count));
  spoil(bytes, tensor);
  return tensor;
}

// Nodes one after the other into a graph, at the top or in a body.
class Sketcher {
 public:
  explicit Sketcher(Bytes& bytes) : bytes_(bytes) {}

  Sketch run() {
    const size_t count = 1 + bytes_.below(6);
    for (size_t i = 0; i < count; ++i) add_step(i);
    for (const ValueId id : made_) sketch_.graph.mark_output(id, sketch_.graph.value(id).name);
    return std::move(sketch_);
  }

 private:
  using Values = std::vector<ValueId>;

  void add_step(size_t index) {
    Case a_case = choose_case(bytes_);
    change(bytes_, a_case);
    const size_t wrap = bytes_.below(16);
    prefix_ = cat("n", index);
    Node node{prefix_, a_case.op, {}, {}, a_case.attributes, {prefix_, a_case.op, 0, {}, {}}};
    for (size_t i = 0; i < a_case.inputs.size(); ++i) node.inputs.push_back(add_input(a_case.inputs[i], cat(prefix_, "_in", i)));
    give_bodies(node);
    if (wrap >= 12) {
      add_wrapped(node, a_case.outputs, wrap - 12);
      return;
    }
    for (size_t i = 0; i < a_case.outputs; ++i) made_.push_back(add_output(sketch_.graph, node, cat(prefix_, "_out", i)));
    sketch_.graph.add_node(std::move(node));
  }

  ValueId add_input(const Case::Input& input, const std::string& name) {
    if (!input.present) return no_value;
    const size_t from = bytes_.below(8);
    if (from == 7 && !made_.empty()) return bytes_.one_of(made_);
    if (input.key) return add_given(make_map(input), map_type(input), name);
    Tensor tensor = values_of(bytes_, input);
    if (from == 6) return add_held(std::move(tensor), name);
    if (input.constant) return sketch_.graph.add_constant(name, std::move(tensor));
    TensorType type = tensor.type();
    for (size_t axis = 0; from == 5 && axis < type.shape.rank(); ++axis) {
      if (bytes_.once_in(2)) type.shape.set_symbol(axis, bytes_.once_in(2) ? "n" : "m");
    }
    return add_given(std::move(tensor), type, name);
  }

  ValueId add_given(Data data, Type type, const std::string& name) {
    sketch_.inputs[name] = std::move(data);
    return sketch_.graph.add_input(name, std::move(type));
  }

  // The tensor in a sequence or an optional: given, or made by a node.
  ValueId add_held(Tensor tensor, const std::string& name) {
    const Type element = tensor.type();
    const size_t way = bytes_.below(5);
    Sequence sequence;
    for (size_t i = bytes_.below(4); i-- > 0;) sequence.items.emplace_back(tensor);
    if (way == 0) return add_given(sequence, SequenceType{std::make_shared<const Type>(element)}, name);
    if (way == 1) return add_given(tensor, OptionalType{std::make_shared<const Type>(element)}, name);
    if (way == 2) return add_given(Data(), OptionalType{std::make_shared<const Type>(element)}, name);
    const ValueId id = add_given(std::move(tensor), element, name);
    Node node{name + "_held", way == 3 ? "SequenceConstruct" : "Optional", {id}, {}, {}, {}};
    for (size_t i = bytes_.below(4); way == 3 && i-- > 0;) node.inputs.push_back(made_.empty() ? id : bytes_.one_of(made_));
    const ValueId held = add_output(sketch_.graph, node, name + "_held");
    sketch_.graph.add_node(std::move(node));
    return held;
  }

  // A few nodes of one input each, after as many inputs as are wanted.
  Graph body_of(const std::string& key, size_t inputs) {
    static const std::vector<std::string> chain{"Identity", "Tanh", "Not", "Neg", "Shape", "Cast", "NonZero", "SequenceEmpty"};
    Graph body;
    Values values;
    for (size_t i = 0; i < inputs; ++i) values.push_back(body.add_input(cat("b", i), open_type));
    if (values.empty()) values.push_back(body.add_constant("c", Tensor::scalar<bool>(true)));
    for (size_t i = bytes_.below(4); i-- > 0;) {
      Node inner{cat("i", i), bytes_.one_of(chain), {bytes_.one_of(values)}, {}, {}, {}};
      if (inner.op == "Cast") inner.attributes["to"] = int64_t{1} + static_cast<int64_t>(bytes_.below(16));
      if (inner.op == "SequenceEmpty") inner.inputs.clear();
      values.push_back(add_output(body, inner, cat(key, "_", i)));
      body.add_node(std::move(inner));
    }
    for (size_t i = 1 + bytes_.below(4); i-- > 0;) body.mark_output(bytes_.one_of(values), cat(key, "_out", i));
    return body;
  }

  // Operators that run graphs get some.
  void give_bodies(Node& node) {
    if (node.op == "If") {
      for (const char* key : {"then_branch", "else_branch"}) node.attributes[key] = kept(body_of(key, 0));
    } else if (node.op == "Loop" || node.op == "Scan" || node.op == "SequenceMap") {
      const size_t inputs = node.inputs.size() + bytes_.below(2);
      node.attributes["body"] = kept(body_of("body", std::min<size_t>(inputs, 8)));
    }
    if (node.op == "Scan") node.attributes.try_emplace("num_scan_inputs", int64_t{1});
  }

  // The node alone in a graph whose inputs are `before` and then the node's own.
  Graph alone(const Node& node, size_t outputs, const std::vector<std::string>& before, const std::vector<std::string>& passed) {
    Graph body;
    for (const std::string& name : before) body.add_input(name, open_type);
    for (const std::string& name : passed) {
      const auto at = std::ranges::find(before, name);
      body.mark_output(body.inputs()[static_cast<size_t>(at - before.begin())], name);
    }
    Node inner = node;
    for (ValueId& id : inner.inputs) {
      if (id != no_value) id = body.add_input(sketch_.graph.value(id).name, open_type);
    }
    for (size_t i = 0; i < outputs; ++i) body.mark_output(add_output(body, inner, cat("inner", i)), cat("inner", i));
    body.add_node(std::move(inner));
    return body;
  }

  ValueId given_scalar(Tensor tensor, const std::string& name) {
    if (bytes_.once_in(2)) return sketch_.graph.add_constant(name, std::move(tensor));
    const Type type = tensor.type();
    return add_given(std::move(tensor), type, name);
  }

  void put_in_if(Node& outer, const Node& node, size_t outputs) {
    outer.op = "If";
    outer.inputs = {given_scalar(Tensor::scalar(bytes_.once_in(2)), prefix_ + "_if")};
    for (const char* key : {"then_branch", "else_branch"}) outer.attributes[key] = kept(alone(node, outputs, {}, {}));
  }

  void put_in_loop(Node& outer, const Node& node, size_t outputs) {
    outer.op = "Loop";
    const int64_t rounds = bytes_.once_in(4) ? absurd_integer(bytes_) : static_cast<int64_t>(bytes_.below(5));
    outer.inputs = {given_scalar(Tensor::scalar(rounds), prefix_ + "_rounds"), given_scalar(Tensor::scalar(!bytes_.once_in(8)), prefix_ + "_goes_on")};
    outer.attributes["body"] = kept(alone(node, outputs, {"round", "goes_on"}, {"goes_on"}));
  }

  // The first inputs are scanned.
  int64_t put_in_scan(Node& outer, const Node& node, size_t outputs, size_t inputs) {
    outer.op = "Scan";
    const size_t scanned = inputs == 0 ? 0 : 1 + bytes_.below(inputs);
    outer.attributes["num_scan_inputs"] = static_cast<int64_t>(scanned);
    if (bytes_.once_in(4)) outer.attributes["scan_input_axes"] = std::vector<int64_t>(scanned, absurd_integer(bytes_));
    if (bytes_.once_in(4)) outer.attributes["scan_output_axes"] = std::vector<int64_t>(outputs, absurd_integer(bytes_));
    if (bytes_.once_in(4)) outer.attributes["scan_output_directions"] = std::vector<int64_t>(outputs, 1);
    outer.attributes["body"] = kept(alone(node, outputs, {}, {}));
    return static_cast<int64_t>(inputs - scanned);
  }

  // The first input is two elements of a sequence.
  int64_t put_in_map(Node& outer, const Node& node, size_t outputs, Values& inputs) {
    outer.op = "SequenceMap";
    outer.attributes["body"] = kept(alone(node, outputs, {}, {}));
    if (inputs.empty()) return 0;
    Node sequence{prefix_ + "_list", "SequenceConstruct", {inputs[0], inputs[0]}, {}, {}, {}};
    inputs[0] = add_output(sketch_.graph, sequence, prefix_ + "_list");
    sketch_.graph.add_node(std::move(sequence));
    return bytes_.once_in(2) ? static_cast<int64_t>(inputs.size()) - 1 : 0;
  }

  static SubGraph kept(Graph graph) { return std::make_shared<const Graph>(std::move(graph)); }

  // The node in a body of control flow: what it uses is captured, unless the body gets it in pieces.
  void add_wrapped(const Node& node, size_t outputs, size_t way) {
    Node outer{prefix_ + "_flow", "", {}, {}, {}, {prefix_ + "_flow", "", 0, {}, {}}};
    Values used;
    std::ranges::copy_if(node.inputs, std::back_inserter(used), [](ValueId id) { return id != no_value; });
    auto captures = static_cast<int64_t>(used.size());
    if (way == 0) put_in_if(outer, node, outputs);
    if (way == 1) put_in_loop(outer, node, outputs);
    if (way == 2) captures = put_in_scan(outer, node, outputs, used.size());
    if (way == 3) captures = put_in_map(outer, node, outputs, used);
    outer.attributes["captures"] = captures;
    std::ranges::copy(used, std::back_inserter(outer.inputs));
    for (size_t i = 0; i < outputs; ++i) made_.push_back(add_output(sketch_.graph, outer, cat(prefix_, "_out", i)));
    sketch_.graph.add_node(std::move(outer));
  }

  Bytes& bytes_;
  Sketch sketch_;
  std::string prefix_;
  std::vector<ValueId> made_;
};

}  // namespace

Sketch sketch(Bytes& bytes) { return Sketcher(bytes).run(); }

}  // namespace unmoor::fuzz
