#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/graph/graph.h"

namespace unmoor {

// One node with its types: what an operator computes, and what a backend is asked to run. Inside `infer`, shapes may be unknown;
// inside a kernel's `prepare` and in `reference`, the inputs' never are.
struct OpCall {
  const Node& node;
  std::vector<std::optional<Type>> inputs;  // Empty where an optional input is absent.
  std::vector<Type> outputs;                // As inferred; empty inside `infer`.
  std::vector<const Tensor*> constants;     // By input. Null if known only at run time, or no tensor.

  size_t input_count() const { return inputs.size(); }
  bool has(size_t input) const { return input < inputs.size() && inputs[input].has_value(); }
  // The input's or output's tensor type. Fails with InvalidModel, naming the operator, if it is absent or no tensor.
  const TensorType& input(size_t i) const;
  const TensorType& output(size_t i) const;
  const Tensor* constant(size_t i) const { return i < constants.size() ? constants[i] : nullptr; }
  bool wants_output(size_t i) const { return i < node.outputs.size() && node.outputs[i] != no_value; }

  bool has_attribute(std::string_view key) const { return node.attributes.find(key) != node.attributes.end(); }
  // The attribute, or the default given. Fails with InvalidModel if it has another type.
  int64_t integer(std::string_view key, int64_t otherwise) const;
  double real(std::string_view key, double otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view key, std::vector<int64_t> otherwise = {}) const;
  std::vector<float> reals(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  const Tensor* tensor(std::string_view key) const;  // Null if there is none.
  SubGraph graph(std::string_view key) const;        // Fails if there is none.
};

// Where a reference function puts its results.
class Outputs {
 public:
  explicit Outputs(size_t count) : held_(count) {}
  // Output `i` as a zeroed tensor of this type, to be filled. What was bound with `bind` is handed out if the type agrees.
  Tensor& allocate(size_t i, TensorType type);
  void set(size_t i, Data data);
  void bind(size_t i, Tensor memory) { bound_.resize(held_.size()), bound_.at(i) = std::move(memory); }
  std::vector<Data>& all() { return held_; }

 private:
  std::vector<Data> held_;
  std::vector<Tensor> bound_;
  std::vector<Tensor> filling_ = std::vector<Tensor>(held_.size());
};

enum class Arity : uint8_t { Required, Optional, Variadic };

struct Port {
  std::string name;
  std::vector<DType> dtypes;  // Empty: any type, sequences and maps included.
  Arity arity = Arity::Required;
};

// What must be done at least: floating-point operations, and bytes read and written.
struct Cost {
  double flop = 0;
  double bytes = 0;
};

// What an honest implementation may do to the result.
enum class Rounding : uint8_t {
  MoveBits,  // Only moves or chooses values: bit for bit.
  Steps,     // Rounds after each primitive step.
  Sum,       // Sums of products, in any order.
  Function,  // A function such as exp: argument and result off by some units.
  Quantise,  // A step: most elements agree, some fall to the other side.
};

// What scan groups by.
enum class Category : uint8_t {
  Basic, Matrix, Convolution, Pooling, Normalization, Activation, Attention, Recurrent, Reduction, Layout, Quantization, Sampling,
  DynamicOutput, ControlFlow, Sequence, Text, Signal, Trees, Other,
};
std::string_view name(Category category);

class GraphBuilder;

// Everything that defines an operator, in one value.
struct Op {
  std::string name;
  std::string summary;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  Attributes attributes = {};  // Names and defaults, for documentation; a required one is absent here.
  // Output types, from input types and constants. Unknown where they depend on data. Fails with InvalidModel on what cannot be.
  std::function<std::vector<Type>(const OpCall&)> infer = {};
  // The meaning: plain loops, sums in double. Accepts float64 wherever it accepts float32.
  std::function<void(const OpCall&, std::span<const Data> in, Outputs& out)> reference = {};
  // The operator as a graph of simpler ones; empty if it is one already.
  std::function<void(GraphBuilder&)> expand = {};
  std::function<Cost(const OpCall&)> cost = {};  // Empty: no arithmetic, bytes of inputs and outputs.
  Rounding rounding = Rounding::Steps;
  Category category = Category::Basic;
  std::vector<std::string> cases = {};  // "T[2,17,3] axis=-1,0,1": see cases.h.
};

class OpSet {
 public:
  void add(Op op);  // Fails with Internal on a repeated name.
  const Op* find(std::string_view op_name) const;
  const std::map<std::string, Op, std::less<>>& all() const { return ops_; }

 private:
  std::map<std::string, Op, std::less<>> ops_;
};

// Every operator. Built at first use; immutable afterwards.
const OpSet& all_ops();

// Why an operator is not among them: unknown, or left out on purpose.
std::string why_absent(std::string_view op_name);

// The output types of a call, checked against the schema (input count, dtypes). Unknown operators give outputs of unknown shape.
// Fails with InvalidModel naming node and operator.
std::vector<Type> infer_outputs(const OpCall& call);
// The call for a node of a graph: types of its values, constants where they are.
OpCall call_for(const Graph& graph, const Node& node);
// Runs the operator's reference. Fails with Unsupported if there is none.
void run_reference(const OpCall& call, std::span<const Data> inputs, Outputs& outputs);
Cost cost_of(const OpCall& call);

}  // namespace unmoor
