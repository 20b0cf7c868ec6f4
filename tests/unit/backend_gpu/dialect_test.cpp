#include <gtest/gtest.h>

#include <cstdlib>

#include "unmoor/backends/gpu/device.h"
#include "unmoor/backends/gpu/program.h"
#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/ops/cases.h"

namespace unmoor::gpu {
namespace {

// A driver that has memory and nothing else, so that kernels can be prepared, and their sources read, without a device.
class PaperDriver final : public Driver {
 public:
  const DeviceInfo& info() const override { return info_; }
  Abilities abilities() const override { return {.float64 = true, .largest_allocation = size_t{1} << 30}; }
  std::string fingerprint() const override { return "paper"; }
  Memory allocate(size_t) override { return Memory{1}; }
  void release(Memory) noexcept override {}
  Queue make_queue() override { return Queue{1}; }
  void release(Queue) noexcept override {}
  void write(Queue, Memory, size_t, std::span<const std::byte>) override {}
  void read(Queue, std::span<std::byte>, Memory, size_t) override {}
  void copy(Queue, Memory, size_t, Memory, size_t, size_t) override {}
  void fill_zero(Queue, Memory, size_t) override {}
  void finish(Queue) override {}
  Mark record(Queue) override { return Mark{1}; }
  void release(Mark) noexcept override {}
  void wait(Mark) override {}
  void wait(Queue, Mark) override {}
  double milliseconds(Mark, Mark) override { return 0; }
  std::vector<std::byte> compile(std::span<const KernelSource>) override { fail(ErrorKind::Unsupported, "paper does not compile"); }
  Module load(std::span<const std::byte>) override { return Module{1}; }
  void release(Module) noexcept override {}
  Function function(Module, const std::string&) override { return Function{1}; }
  void release(Function) noexcept override {}
  void launch(Queue, Function, std::array<uint32_t, 3>, std::span<const Argument>) override {}

 private:
  DeviceInfo info_{.id = "paper:0", .name = "paper", .arch = {}};
};

std::unique_ptr<Driver> open_paper(size_t) { return std::make_unique<PaperDriver>(); }
Availability probe_paper() { return {}; }

const std::vector<DType> dtypes{DType::F32, DType::F64, DType::I64, DType::Bool};

// The sources of every kernel for every case that it takes.
std::vector<KernelSource> every_source() {
  GpuDevice device({.name = "paper", .probe = probe_paper, .open = open_paper}, 0);
  for (const auto& [name, kernels] : device.kernels().all()) {
    const auto* const op = all_ops().find(name);
    if (op == nullptr) continue;
    for (const auto& a_case : cases_of(*op, dtypes)) {
      const auto graph = build_case(a_case);
      const auto call = call_for(graph.graph, graph.graph.nodes().at(0));
      for (const auto& kernel : kernels) {
        if (kernel.supports(call)) kernel.prepare(call, device);
      }
    }
  }
  return device.compiler().sources();
}

TEST(Dialect, every_kernel_is_also_plain_cpp) {
  const auto sources = every_source();
  ASSERT_GT(sources.size(), 50U);
  const auto host = host_prelude();
  std::string text(host.substr(host.find("#include")));
  text += program_text(sources);
  const TemporaryFolder folder;
  const auto path = cat(folder.path(), "/kernels.cpp");
  write_file(path, text);
  try {
    Child child({"c++", "-std=c++20", "-DUNMOOR_HOST", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", "-Wno-unknown-pragmas", path});
    child.close_input();
    const auto end = child.finish(200);
    EXPECT_EQ(end.text(), "exit status 0") << child.errors();
  } catch (const Error& error) {
    GTEST_SKIP() << "no compiler to try it with: " << error.what();
  }
}

TEST(Dialect, kernels_name_nothing_of_one_vendor) {
  for (const auto& source : every_source()) {
    const auto own = source.text.substr(source.text.find("#define R(literal) literal##f"));  // Behind the prelude.
    for (const char* const word : {"__kernel", "__global", "__local", "get_global_id", "barrier(", "threadIdx", "vload", "convert_"}) {
      EXPECT_EQ(own.find(word), std::string::npos) << source.entry << " says " << word;
    }
  }
}

}  // namespace
}  // namespace unmoor::gpu
