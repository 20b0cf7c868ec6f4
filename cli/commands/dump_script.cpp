#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "unmoor/engines/engine.h"
#include "unmoor/formats/onnx/onnx.h"

namespace unmoor::cli {

Outcome dump_script_command(const Options& options, nlohmann::json& result) {
  result["model"] = model_json(read_onnx(options.model), nullptr);  // A file that is no model is told as everywhere.
  Outcome outcome;
  outcome.text = make_dump_script(options.model, options.python);
  result["script"] = outcome.text;
  return outcome;
}

}  // namespace unmoor::cli
