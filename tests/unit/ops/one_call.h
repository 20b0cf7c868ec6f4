#pragma once

#include <string>
#include <vector>

#include "unmoor/base/error.h"
#include "unmoor/ops/cases.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {

// The inputs of a case's call in order, constants among them.
inline std::vector<Data> inputs_of(const CaseGraph& built, const OpCall& call) {
  std::vector<Data> in;
  size_t next = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i]) {
      in.emplace_back();
    } else {
      in.push_back(call.constants[i] != nullptr ? Data(*call.constants[i]) : built.inputs.at(next++));
    }
  }
  return in;
}

// Runs the reference of the call that a case text describes.
inline std::vector<Data> run(const std::string& text) {
  const CaseGraph built = build_case(parse_case(text));
  const OpCall call = call_for(built.graph, built.graph.node(NodeId{0}));
  const std::vector<Data> in = inputs_of(built, call);
  Outputs out(call.node.outputs.size());
  run_reference(call, in, out);
  return out.all();
}

inline std::vector<double> result(const std::string& text) { return doubles(run(text).at(0).tensor()); }
inline std::vector<int64_t> whole_result(const std::string& text) { return integers(run(text).at(0).tensor()); }
inline std::vector<std::string> text_result(const std::string& text) { return run(text).at(0).tensor().strings(); }

// What it says where it refuses; empty if it does not.
inline std::string refusal(const std::string& text) {
  try {
    run(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace unmoor::test
