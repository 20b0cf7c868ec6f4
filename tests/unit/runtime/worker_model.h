#pragma once

#include "tests/unit/passes/sketch.h"
#include "unmoor/backends/reference/reference.h"
#include "unmoor/runtime/worker.h"

namespace unmoor::test {

// What the test program runs when it is started as a worker: "crash" in the model's path ends the process, "broken" cannot be opened; any
// other path is Relu, then Neg, on [2], with names that are not UTF-8.
inline std::unique_ptr<ModelRunner> open_test_model(const WorkerRequest& request) {
  if (request.model == "crash") std::abort();
  if (request.model == "broken") fail(ErrorKind::InvalidModel, "it is broken");
  Sketch sketch;
  const ValueId x = sketch.input("x\xff", {2});
  const ValueId y = sketch.node("Relu", {x});
  sketch.graph.mutable_value(y).origin.name = "value\xfe";
  const ValueId z = sketch.node("Neg", {y});
  sketch.graph.mark_output(z, "z\xfd");
  return std::make_unique<ModelRunner>(std::make_shared<const Graph>(sketch.graph), std::vector{make_reference_backend()->open(0)}, request.options);
}

}  // namespace unmoor::test
