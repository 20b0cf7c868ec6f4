#include "unmoor/engines/failure.h"

#include <re2/re2.h>

#include <array>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

constexpr size_t read_bytes = 20000;  // Of a message; C++ templates in it can be long.
constexpr size_t shown_bytes = 1200;

struct Pattern {
  const char* text;  // One group.
};

// In order: the first that matches counts. Each with the message that it is for in tests/unit/engines/failure_test.cpp.
constexpr std::array op_patterns{
    Pattern{R"(implementation for (?:the node )?([\w.:]+)\(\d+\))"},       // ONNX Runtime, no kernel
    Pattern{R"(while running (\w+) node)"},                                // ONNX Runtime, at run time
    Pattern{R"(of operator \(([\w.:]+)\))"},                               // ONNX Runtime, a type that the schema forbids
    Pattern{R"(No Op registered for ([\w.:]+))"},                          // ONNX's checker in it
    Pattern{R"(([\w.]+:?\w+)\(-?\d+\) is not a registered function/op)"},  // ONNX Runtime, another domain
    Pattern{R"(Could not run '([\w:.]+)' with arguments from)"},           // PyTorch's dispatcher
    Pattern{R"(operator '([\w:.]+)' is not currently (?:implemented|supported))"},  // PyTorch's plug-ins
    Pattern{R"re("(\w+)" not implemented for ')re"},                                // PyTorch, no kernel for a type
    Pattern{R"(optype \[(\w+)\])"},                                                 // Ascend
};
constexpr std::array layer_patterns{
    Pattern{R"(node with name '([^']+)')"},
    Pattern{R"(node\. Name:'([^']+)')"},
    Pattern{R"(in node \(([^)]+)\))"},
    Pattern{R"re(In Node, \("([^"]+)")re"},
    Pattern{R"(engine are found for \[([^\]]+)\])"},
    Pattern{R"(While executing %(\w+))"},  // An exported program's node.
};
constexpr std::array dtype_patterns{
    Pattern{R"(Type '([^']+)' of input parameter)"},
    Pattern{R"(Actual: \((tensor\(\w+\))\))"},
    Pattern{R"(not implemented for '(\w+)')"},
    Pattern{R"((?:but found (?:scalar type )?|[Gg]ot:? )(Half|Float|Double|BFloat16|Int|Long|Bool)\b)"},
    Pattern{R"(\b(float64|Double|DT_DOUBLE)\b)"},
};
constexpr std::array shape_patterns{
    Pattern{R"(shapes cannot be multiplied \(([^)]+)\))"},
    Pattern{R"(Got invalid dimensions for input: (\w+ for the following indices\s+index: \d+ Got: \d+ Expected: \d+))"},
    Pattern{R"((shape:?\s?\{[\d,]+\}(?:[^{}]{0,40}\{[\d,]+\})?))"},
    Pattern{R"(shape '(\[[^\]]+\])' is invalid)"},
};

// What usually helps. The first row whose pattern is found counts: those that name a cause before those that name a symptom.
struct Remedy {
  const char* pattern;
  const char* text;
};
constexpr std::array remedies{
    Remedy{R"(Unsupported model IR version)",
           "this engine is older than the model's file: use a newer one, or save the model with an older IR version"},
    Remedy{R"(is under development and support for this is limited|No Op registered for|opset version .* is not supported)",
           "this engine does not know the operator in the model's opset: use a newer engine, or export with an older opset"},
    Remedy{R"(is not a registered function/op)",
           "the operator is of another domain: use the build of the engine that has it, register its library, or replace it by "
           "standard operators"},
    Remedy{
        R"((?i)(doesn't|does not|not) support.{0,40}(float64|double|DT_DOUBLE)|(float64|double|DT_DOUBLE).{0,40}(is not|not|un)\s?support)",
        "the device has no float64: export the model in float32"},
    Remedy{R"(implementation for (?:the node )?[\w.:]+\(\d+\))",
           "the engine has no kernel for the operator with these types: try float32 inputs to it, a newer engine, or the "
           "operator's expansion into simpler ones"},
    Remedy{R"(of operator \([\w.:]+\) in node .* is invalid|Type Error: Type)",
           "the operator does not take this type: cast its input, most often to float32"},
    Remedy{R"(Unexpected input data type)", "give the input in the type that the model declares"},
    Remedy{R"(Got invalid dimensions for input)",
           "give the input in the model's shape (--shapes), or export with that axis left open"},
    Remedy{R"(disable_cpu_ep_fallback|explicitly disabled by the user)",
           "some nodes have no kernel on the device: allow the host with --fallback report"},
    Remedy{
        R"((?i)CUDA out of memory|CUDA failure 2\b|NPU out of memory|HIP out of memory|Failed to allocate memory for requested buffer)",
        "the device's memory is full: a smaller batch, a narrower type, or no other program on the device"},
    Remedy{R"(cannot open shared object file|failed to load library|libcu\w+\.so)",
           "a vendor's library is missing: install the version that this engine was built for, and let LD_LIBRARY_PATH find it"},
    Remedy{R"(not compiled with \w+ enabled|Found no NVIDIA driver|No (CUDA|HIP|XPU) GPUs are available|Torch not linked)",
           "this PyTorch has no such device: install its build for the device, and the driver"},
    Remedy{R"(Could not run '[\w:.]+' with arguments from|is not currently (implemented|supported)|No supported Ops kernel)",
           "the plug-in has no kernel for the operator: a newer plug-in, the operator's parts instead of it, or that part of the "
           "model on the host"},
    Remedy{R"re("\w+" not implemented for '(Half|BFloat16)'|Low precision dtypes not supported)re",
           "the device has no kernel for 16-bit floats here: run this operator in float32"},
    Remedy{R"re("\w+" not implemented for ')re", "the device has no kernel for this type: cast the input to float32"},
    Remedy{R"(expected scalar type|have the same dtype)",
           "types are mixed: cast the input, or the weights, so that both are the same"},
    Remedy{R"(Expected all tensors to be on the same device|is not on the expected device)",
           "a tensor stayed on another device: move buffers and constants made in forward() with the module"},
    Remedy{R"(shapes cannot be multiplied|size mismatch|is invalid for input of size|must match the size of tensor)",
           "shapes do not fit: give inputs of the shapes that the model was exported with (--shapes)"},
    Remedy{R"(torch\._dynamo|torch\._inductor|BackendCompilerFailed|InductorError)",
           "compilation failed: run eagerly with --set torch.compile=off"},
    Remedy{R"(External data|external data|external_initializers)",
           "the file with the model's weights must lie beside the model under the name that it was saved with"},
    Remedy{R"(returned while running \w+ node)",
           "run the same with --set ort.optimize=off: if it works then, a fusion of the engine is at fault"},
};

template <size_t count>
std::string first_match(const std::array<Pattern, count>& patterns, re2::StringPiece message) {
  std::string found;
  for (const Pattern& pattern : patterns) {
    if (RE2::PartialMatch(message, pattern.text, &found)) return found;
  }
  return {};
}

// Without the paths of the engine's own sources, function signatures and repeated spaces.
std::string shorter(std::string_view message) {
  std::string text(message);
  RE2::GlobalReplace(&text, R"(/\S*onnxruntime\S*\.(?:cc|h|cpp|cu):\d+\s*)", "");
  RE2::GlobalReplace(&text, R"((?:\w+ )?onnxruntime::[\w:]+\([^)]*\)(?: const)?\s*)", "");
  RE2::GlobalReplace(&text, R"(\[ONNXRuntimeError\] : \d+ : )", "");
  RE2::GlobalReplace(&text, R"(\s+)", " ");
  if (text.size() > shown_bytes) text = cat(std::string_view(text).substr(0, shown_bytes), " …");
  return text;
}

}  // namespace

std::string FailureReading::where() const {
  std::string text;
  const auto add = [&text](std::string_view what, const std::string& found, std::string_view quote) {
    if (!found.empty()) text += cat(text.empty() ? "" : ", ", what, " ", quote, found, quote);
  };
  add("operator", op, "");
  add("node", layer, "'");
  add("type", dtype, "");
  add("shape", shape, "");
  return text;
}

FailureReading read_failure(std::string_view message) {
  const std::string_view part = message.substr(0, read_bytes);
  const re2::StringPiece text(part.data(), part.size());
  FailureReading reading{first_match(op_patterns, text), first_match(layer_patterns, text), first_match(dtype_patterns, text),
                         first_match(shape_patterns, text), ""};
  for (const Remedy& remedy : remedies) {
    if (!RE2::PartialMatch(text, remedy.pattern)) continue;
    reading.remedy = remedy.text;
    break;
  }
  return reading;
}

std::string explained_failure(std::string_view message) {
  const FailureReading reading = read_failure(message);
  std::string text = shorter(message);
  if (const std::string where = reading.where(); !where.empty()) text += cat(" (", where, ")");
  if (!reading.remedy.empty()) text += cat("; what usually helps: ", reading.remedy);
  return text;
}

}  // namespace unmoor
