#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// A test case of an operator with everything made concrete, from text such as
//   T[2,17,3] axis=-1,0,1
//   T[2,3,4] i64[2]{6,4}             a given constant
//   T[1,3,8,8] T[4,3,3,3]! T[4]! pads=[1,1,1,1],[0,1,0,1]
//   T[3] - T[3]~positive             an absent input; a generator's name
//   string[2]{a,"b, c"} to=f16,T     given strings; a dtype's ONNX number
//   value=T[1]{7} mode="a b"         a tensor attribute; a text with blanks
//   score_mod=graph[Tanh,Neg]        a graph attribute: a chain of operators of one input
//   i64->f32{3:1.5,1:2}              a map; its keys may be strings, too
// `T` is each dtype of the input it first stands for that the test set covers and that can hold the values given (0.5 is no integer); commas give alternatives, each a case of its own;
// lists stand in brackets; `!` makes a generated input a constant (a weight). `T` may also be `i64`, `bool`, any short dtype name.
struct Case {
  std::string op;
  std::string text;  // Unique; can be pasted back: "Softmax f32[2,17,3] axis=1".
  struct Input {
    bool present = true;
    TensorType type;
    bool constant = false;
    std::string generator;              // Empty: the default, see make_inputs.
    std::vector<double> values;         // Given values, in order; empty if generated.
    std::vector<std::string> texts;     // Likewise, of a string tensor.
    std::optional<DType> key;           // Of a map: the dtype of its keys. Its values are those above, as a tensor of one dimension.
    std::vector<std::string> keys;      // As written.
  };
  std::vector<Input> inputs;
  Attributes attributes;
  size_t outputs = 1;  // "outputs=2" in the text asks for more.
};

// All cases of an operator for the given dtypes of T. Fails with Internal on a text that does not parse.
std::vector<Case> cases_of(const Op& op, const std::vector<DType>& dtypes);
// One case from its text, operator first: "Softmax f32[2,17,3] axis=1". Fails with InvalidArgument.
Case parse_case(std::string_view text);

// A case as a graph of one node, ready to run: its constants are in the graph, the other inputs in `inputs` in order.
struct CaseGraph {
  Graph graph;
  std::vector<Data> inputs;
};
// Inputs are seeded by the case text. Default floats: normal, with negatives, both zeros, ties, denormals, values near the limits of 16-bit floats sprinkled
// in where the count allows. Generators: positive, unit (0..1), small (no extremes), special (NaN and infinities too), index:N (0..N-1),
// signed_index:N (-N..N-1), mask (bool, or 0 and -infinity with the first column free).
CaseGraph build_case(const Case& a_case);

}  // namespace unmoor
