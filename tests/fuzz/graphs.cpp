#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "tests/fuzz/sketch.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/backends/reference/reference.h"
#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/graph/text.h"
#include "unmoor/runtime/loop_limit.h"
#include "unmoor/runtime/session.h"

namespace unmoor::fuzz {
namespace {

constexpr size_t memory = size_t{8} << 20;  // References take eight times that, unseen by the limit, and little time.
constexpr int64_t most_rounds = 50;

std::shared_ptr<Device> open_cpu() {
  auto device = make_cpu_backend()->open(0);
  device->set_option("weights_cache", "off");  // Nothing of the user's.
  device->set_option("threads", "1");  // More would only wait for each other where a fuzzer has one core.
  return device;
}

// A finding: the fuzzer keeps these bytes.
[[noreturn]] void found(const Sketch& made, const std::string& what) {
  (void)std::fprintf(stderr, "%s\non the graph\n%s\n", what.c_str(), to_text(made.graph).c_str());
  std::abort();
}

// Outputs, or nothing where the graph is refused.
NamedData results(const Sketch& made, const std::shared_ptr<Device>& device, const PlanOptions& options) {
  try {
    ModelRunner runner(std::make_shared<const Graph>(made.graph), {device}, options);
    return runner.run(made.inputs);
  } catch (const Error& error) {
    if (std::getenv("UNMOOR_FUZZ_SHOW") != nullptr) (void)std::fprintf(stderr, "%s: %s\n", device->info().id.c_str(), error.what());
    if (error.kind() == ErrorKind::Internal) found(made, cat(device->info().id, ": ", error.what()));
  } catch (const std::exception& error) {
    found(made, cat(device->info().id, ": an exception that is no Error: ", error.what()));
  }
  return {};
}

// An empty graph where the bytes ask for inputs that cannot be.
Sketch sketched(Bytes& bytes) {
  try {
    return sketch(bytes);
  } catch (const Error&) {
    return {};
  }
}

void run(Bytes bytes) {
  static const auto reference = make_reference_backend()->open(0);
  static const auto cpu = open_cpu();
  PlanOptions options;
  options.passes.fuse = !bytes.once_in(4);
  options.passes.widen_to_float64 = bytes.once_in(8);
  const Sketch made = sketched(bytes);
  if (std::getenv("UNMOOR_FUZZ_SHOW") != nullptr) (void)std::fprintf(stderr, "%s\n", to_text(made.graph).c_str());
  const NamedData wanted = results(made, reference, options);
  const NamedData given = results(made, cpu, options);
  for (const auto& [name, data] : given) {
    const auto other = wanted.find(name);
    if (other == wanted.end() || !data.is_tensor()) continue;
    if (!other->second.is_tensor()) found(made, cat("'", name, "' is a tensor on cpu only"));
    if (other->second.tensor().dtype() != data.tensor().dtype()) {
      found(made, cat("'", name, "' is ", data.tensor().type(), " on cpu, but ", other->second.tensor().type(), " on reference"));
    }
  }
}

}  // namespace
}  // namespace unmoor::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  unmoor::set_loop_limit(unmoor::fuzz::most_rounds);
  unmoor::set_memory_limit(unmoor::memory_in_use() + unmoor::fuzz::memory);
  unmoor::fuzz::run(unmoor::fuzz::Bytes({data, size}));
  return 0;
}
