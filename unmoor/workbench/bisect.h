#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/runtime/runner.h"
#include "unmoor/workbench/judge.h"

namespace unmoor {

// A part of the model that the target ran.
struct BisectTrial {
  enum class Kind { Begin, Alone, Rest };  // From the inputs to a cut; one node; from a cut to the output.
  Kind kind = Kind::Begin;
  std::string value, node, op;  // Its last output, or the first wrong one, and what makes it.
  size_t nodes = 0;             // Of the file, in it.
  size_t outputs = 0;
  Judgement judgement = {};
  bool is_wrong = false;
  std::string failure = {};  // Why nothing came of it; empty if something did.
};

// Where a model goes wrong in a target that shows outputs only: found by running parts of it.
struct Bisection {
  std::string output;                    // Whose error is followed.
  std::vector<BisectTrial> trials;       // In the order in which they ran.
  std::string node, op;                  // Makes the first wrong value of right ones; empty if the search did not get there.
  std::vector<std::string> right_until;  // The values of the last cut that was right; empty: the model's inputs.
  std::vector<std::string> within;       // The nodes among which the first wrong one is: one if `node` is known.
  std::vector<std::string> hidden;       // Values of the model that no part showed.
  std::string stopped;                   // Why the search ended early; empty if it did not.
  // Alone, on the reference's values, the node is wrong too; "no" means that an error had gathered before it, "unknown" that it
  // could not be run so.
  std::string wrong_alone = "unknown";
  std::string wrong_behind = "unknown";  // Whether right values just behind the node still end in a wrong output: more is wrong.

  nlohmann::json to_json() const;
  std::string reading() const;  // What was found, in words.
  std::string text() const;
};

struct BisectOptions {
  // Runs a part, an ONNX file, in the target, on these inputs: outputs by name. Fails as the target does.
  std::function<NamedData(const std::string& path, const NamedData& inputs)> run_part;
  std::function<void(const std::string&, size_t, size_t)> progress = {};
  std::optional<Tolerance> tolerance = std::nullopt;  // Instead of the noise floor.
  uint64_t seed = 0;
};

// Halves the model's nodes, in the order of the file: a part from the inputs to a cut is right if all values that cross the cut are,
// by their entire error, as in docs/precision.md. Cuts that few values cross are preferred: one that a single value crosses is a
// dominator of the output. `typed` is the model's graph with types for these inputs. A part that fails is a trial that tells nothing;
// after four in a row the search ends, with the reason. Fails as the reference does, with InvalidArgument where no node makes
// `output`, with Io, and with what OnnxParts fails with.
Bisection bisect(const Model& model, const Graph& typed, Runner& reference, const NamedData& inputs, const std::string& output,
                 const BisectOptions& options);

}  // namespace unmoor
