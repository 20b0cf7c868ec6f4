#pragma once

#include <string>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// Builds the graph that `Op::expand` stands for, in place of one call. Values get types as they are added.
class GraphBuilder {
 public:
  // Appends to `graph`, whose values `inputs` are the call's inputs (no_value where absent). `call` must outlive the builder.
  GraphBuilder(Graph& graph, const OpCall& call, std::vector<ValueId> inputs);

  const OpCall& call() const { return call_; }
  ValueId input(size_t i) const { return i < inputs_.size() ? inputs_[i] : no_value; }
  const Type& type(ValueId value) const { return graph_.value(value).type; }
  ValueId constant(Tensor tensor);
  // A scalar constant of the given dtype.
  ValueId scalar(double value, DType dtype);
  ValueId ints(std::vector<int64_t> values);  // A one-dimensional int64 constant.
  // Adds a node and returns its first output. Names come from the call's node.
  ValueId add(std::string op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_many(std::string op, std::vector<ValueId> inputs, Attributes attributes, size_t outputs);
  // Puts a body's nodes here: `inputs` stand for its inputs. Returns what stands for its outputs.
  std::vector<ValueId> add_body(const Graph& body, const std::vector<ValueId>& inputs);
  // The call's output `i` is this value.
  void output(size_t i, ValueId value);
  const std::vector<ValueId>& outputs() const { return outputs_; }

 private:
  Graph& graph_;
  const OpCall& call_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
};

// The call as a graph of its own, with the call's inputs (absent ones left out) and outputs. Fails with Internal if the
// operator has no expansion.
Graph expanded(const OpCall& call);

}  // namespace unmoor
