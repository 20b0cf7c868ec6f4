#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// An input or output of a node, as far as it is known.
struct AskedValue {
  std::string dtype = {};   // "float32", "seq(float32)", "optional(int64)"; empty if it is not known.
  int rank = -1;            // -1 if it is not known.
  bool present = true;      // An optional one may be absent.
  bool constant = false;    // Known before the run.
  bool fixed_shape = true;  // Every dimension is a number that does not depend on data.
};

// One node, as its file has it, for a platform to answer.
struct CatalogQuestion {
  std::string op = {};  // "Conv", "com.microsoft:BiasGelu"; on platforms of ATen also "aten::add.Tensor".
  int64_t opset = 0;    // Of its domain.
  std::vector<AskedValue> inputs = {};
  std::vector<AskedValue> outputs = {};
  std::map<std::string, std::string, std::less<>> attributes = {};  // As text: "1", "[1,1]", "nearest".
};

enum class Claim : uint8_t { Native, Constrained, Fallback, Unsupported, Unknown };
std::string_view name(Claim claim);  // "native", …

// What is known of a node on a platform. Unknown means that the catalogue has no word: never that the platform refuses.
struct CatalogAnswer {
  Claim claim = Claim::Unknown;
  std::string reason = {};  // no-kernel dtype rank attribute dynamic opset; empty if native.
  std::string detail = {};  // What holds, or what would have to.
  std::string source = {};  // Where it stands, with its date.
  bool as_function = true;  // A platform that runs ONNX's functions may take it as one.
};

}  // namespace unmoor
