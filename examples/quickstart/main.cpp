// Loads the text recogniser, plans it for OpenCL with this processor for what OpenCL refuses, and runs it.
// examples/quickstart/README.md says how to build it.
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/backends/gpu/gpu.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/runtime/session.h"

int main(int argc, char** argv) {
  try {
    // Load.
    const unmoor::Model model = unmoor::read_onnx(argc > 1 ? argv[1] : "examples/models/ppocr4-rec.onnx");

    // Plan, for devices in the order wanted. The plan keeps the reason for whatever the first refused.
    std::vector<std::shared_ptr<unmoor::Device>> devices;
    devices.push_back(unmoor::make_opencl_backend()->open(0));
    devices.push_back(unmoor::make_cpu_backend()->open(0));
    const auto plan = unmoor::make_plan(model.graph, devices, {.shapes = {{"x", {1, 3, 48, 320}}}});
    std::printf("%zu of %zu nodes fall back\n%s", plan->fallback_count(), plan->placements.size(), plan->fallback_summary().c_str());

    // Run.
    unmoor::Session session(plan);
    const unmoor::Tensor image({unmoor::DType::F32, {1, 3, 48, 320}});
    for (const auto& [name, data] : session.run({{"x", image}}))
      std::printf("%s: %s\n", name.c_str(), unmoor::to_text(data.tensor().type()).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
