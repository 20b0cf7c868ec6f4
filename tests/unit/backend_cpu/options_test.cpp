#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "tests/unit/backend_cpu/support.h"
#include "tests/unit/passes/sketch.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/base/error.h"
#include "unmoor/runtime/session.h"

namespace unmoor::test {
namespace {

bool has_winograd(Device& device) {
  for (const Kernel& kernel : device.kernels().find("Conv")) {
    if (kernel.name.find("winograd") != std::string::npos) return true;
  }
  return false;
}

TEST(CpuOptions, exact_goes_before_every_kernel_that_rounds_otherwise) {
  const auto device = make_cpu_backend()->open(0);
  EXPECT_TRUE(has_winograd(*device));
  device->set_option("exact", "on");
  EXPECT_FALSE(has_winograd(*device));
  device->set_option("winograd", "on");
  EXPECT_FALSE(has_winograd(*device));
  device->set_option("exact", "off");
  EXPECT_TRUE(has_winograd(*device));
  EXPECT_THROW(device->set_option("exact", "perhaps"), Error);
}

TEST(CpuOptions, devices_run_on_the_threads_of_their_program) {
  const auto pool = std::make_shared<ThreadPool>(3);
  const auto backend = make_cpu_backend(pool);
  const auto first = backend->open(0);
  const auto second = backend->open(0);
  EXPECT_EQ(&cpu::machine_of(*first).pool(), pool.get());
  EXPECT_EQ(&cpu::machine_of(*second).pool(), pool.get());
  for (const char* key : {"threads", "affinity"}) {
    try {
      first->set_option(key, "2");
      ADD_FAILURE() << key << " was taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("its program's threads"), std::string::npos);
    }
  }
  EXPECT_EQ(pool->size(), 3U);
  EXPECT_NE(&cpu::machine_of(*make_cpu_backend()->open(0)).pool(), pool.get());
}

TEST(CpuOptions, sessions_side_by_side_on_one_pool_give_what_each_gives_alone) {
  Sketch sketch;
  const ValueId x = sketch.input("x", Shape{64, 96});
  const auto graph = std::make_shared<const Graph>(sketch.done({sketch.node("MatMul", {x, sketch.weights({96, 128})})}));
  const auto backend = make_cpu_backend(std::make_shared<ThreadPool>(2));
  const NamedData inputs{{"x", random_floats({64, 96}, 3)}};
  const auto answer = [&] { return ModelRunner(graph, {backend->open(0)}, {}).run(inputs).begin()->second.tensor(); };
  const Tensor wanted = answer();
  std::vector<Tensor> found(4);
  std::vector<std::thread> threads;
  for (Tensor& each : found) threads.emplace_back([&] { each = answer(); });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& each : found) EXPECT_TRUE(std::ranges::equal(each.bytes(), wanted.bytes()));
}

TEST(CpuOptions, affinity_is_a_switch) {
  const auto device = make_cpu_backend()->open(0);
  device->set_option("affinity", "on");
  device->set_option("threads", "3");
  device->set_option("affinity", "off");
  EXPECT_THROW(device->set_option("affinity", "1"), Error);
}

TEST(CpuOptions, the_weights_cache_is_what_the_environment_says_until_it_is_set) {
  const char* const before = std::getenv("UNMOOR_WEIGHTS_CACHE");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("UNMOOR_WEIGHTS_CACHE", "off", 1);
  const auto device = make_cpu_backend()->open(0);
  const auto notes = [&] {
    std::vector<std::string> all = device->notes();
    std::erase_if(all, [](const std::string& note) { return note.starts_with("amx is off: "); });
    return all;
  };
  EXPECT_EQ(notes(), std::vector<std::string>{"packed weights: the cache is off"});
  device->set_option("weights_cache", "1G");
  EXPECT_TRUE(notes().empty());  // It is on, and nothing was asked of it.
  ::setenv("UNMOOR_WEIGHTS_CACHE", "sometimes", 1);
  EXPECT_THROW((void)make_cpu_backend()->open(0), Error);
  ::setenv("UNMOOR_WEIGHTS_CACHE", kept.c_str(), 1);
}

}  // namespace
}  // namespace unmoor::test
