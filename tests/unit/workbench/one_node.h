#pragma once

#include <random>
#include <string>
#include <vector>

#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/cause.h"

namespace unmoor::test {

// A case as a call with its inputs in order, constants among them.
struct OneNode {
  explicit OneNode(const std::string& text)
      : built(build_case(parse_case(text))), call(call_for(built.graph, built.graph.node(NodeId{0}))) {
    size_t next = 0;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (!call.inputs[i])
        inputs.emplace_back();
      else
        inputs.push_back(call.constants[i] != nullptr ? Data(*call.constants[i]) : built.inputs.at(next++));
    }
    call.outputs = infer_outputs(call);
  }

  // The first output of another call on the same inputs, as a float32 kernel may give it: off by half a unit here and there.
  Tensor as_if(const std::string& text) const {
    const OneNode other(text);
    Outputs out(other.call.node.outputs.size());
    run_reference(other.call, inputs, out);
    std::mt19937 random(5);
    std::vector<double> values = doubles(out.all()[0].tensor());
    for (double& value : values) value *= 1 + 6e-8 * (static_cast<double>(random() % 2001) / 1000 - 1);
    Tensor result(out.all()[0].tensor().type());
    store(result, values);
    return result;
  }

  CauseSearch search(const Tensor& target, const CauseOptions& options = {}) const {
    const Expected expected = expected_output(call, inputs, 0);
    return search_cause({call, inputs, 0, target, expected.exact, expected.spread, target.dtype()}, options);
  }

  CaseGraph built;
  OpCall call;
  std::vector<Data> inputs;
};

}  // namespace unmoor::test
