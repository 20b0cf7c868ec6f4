// Speed of the cpu device's kernels by family, at one thread and by its processor time, as a share of what the core does at best,
// measured right before and after.
//
//   bench_micro --benchmark_filter=gemm
//
// Where the time goes into arithmetic, the share is of multiply-adds in registers; Winograd's convolution, which does fewer of
// them than it is credited with, can be over 100 %. Where it goes into memory, the share is of a loop that reads as many bytes of
// memory of the same size.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/peak.h"
#include "bench/micro/subject.h"
#include "unmoor/backends/cpu/cpu.h"

namespace unmoor::bench {

namespace {

enum class Bound { Arithmetic, Memory };
enum class Weights {
  Hot,   // The same weights each time: in the caches, if they fit.
  Cold,  // Other weights each time, more than all caches hold: from memory.
};

struct Family {
  std::string name;
  Bound bound;
  Weights weights;
  std::vector<std::string> cases;
};

const std::vector<Family>& families() {
  static const std::vector<std::string> products{"MatMul f32[128,768]~small f32[768,768]~small!",
                                                 "MatMul f32[128,768]~small f32[768,3072]~small!",
                                                 "MatMul f32[128,3072]~small f32[3072,768]~small!"};
  static const std::vector<Family> all{
      {"gemm", Bound::Arithmetic, Weights::Hot, products},
      {"gemm_cold", Bound::Arithmetic, Weights::Cold, products},
      {"gemv_cold",
       Bound::Memory,
       Weights::Cold,
       {"MatMul f32[1,768]~small f32[768,3072]~small!", "MatMul f32[1,3072]~small f32[3072,768]~small!"}},
      {"conv_1x1",
       Bound::Arithmetic,
       Weights::Hot,
       {"Conv f32[1,56,56,64]~small f32[256,64,1,1]~small! f32[256]~small! layout=NHWC",
        "Conv f32[1,14,14,1024]~small f32[256,1024,1,1]~small! f32[256]~small! layout=NHWC"}},
      {"conv_3x3",
       Bound::Arithmetic,
       Weights::Hot,
       {"Conv f32[1,56,56,64]~small f32[64,64,3,3]~small! f32[64]~small! pads=[1,1,1,1] layout=NHWC",
        "Conv f32[1,28,28,128]~small f32[128,128,3,3]~small! f32[128]~small! pads=[1,1,1,1] layout=NHWC",
        "Conv f32[1,14,14,256]~small f32[256,256,3,3]~small! f32[256]~small! pads=[1,1,1,1] layout=NHWC",
        "Conv f32[1,7,7,512]~small f32[512,512,3,3]~small! f32[512]~small! pads=[1,1,1,1] layout=NHWC"}},
      {"depthwise_3x3",
       Bound::Arithmetic,
       Weights::Hot,
       {"Conv f32[1,56,56,144]~small f32[144,1,3,3]~small! f32[144]~small! group=144 pads=[1,1,1,1] layout=NHWC",
        "Conv f32[1,14,14,384]~small f32[384,1,3,3]~small! f32[384]~small! group=384 pads=[1,1,1,1] layout=NHWC"}},
      {"depthwise_7x7",
       Bound::Arithmetic,
       Weights::Hot,
       {"Conv f32[1,56,56,96]~small f32[96,1,7,7]~small! f32[96]~small! group=96 pads=[3,3,3,3] layout=NHWC",
        "Conv f32[1,14,14,384]~small f32[384,1,7,7]~small! f32[384]~small! group=384 pads=[3,3,3,3] layout=NHWC"}},
      {"softmax", Bound::Memory, Weights::Hot, {"Softmax f32[12,128,128]~small", "Softmax f32[6,1500,1500]~small"}},
      {"layer_norm",
       Bound::Memory,
       Weights::Hot,
       {"LayerNormalization f32[128,768]~small f32[768]~small! f32[768]~small!",
        "LayerNormalization f32[3136,96]~small f32[96]~small! f32[96]~small!"}},
      {"attention",
       Bound::Arithmetic,
       Weights::Hot,
       {"Attention f32[1,12,128,64]~small f32[1,12,128,64]~small f32[1,12,128,64]~small",
        "Attention f32[1,12,197,64]~small f32[1,12,197,64]~small f32[1,12,197,64]~small",
        "Attention f32[1,6,1500,64]~small f32[1,6,1500,64]~small f32[1,6,1500,64]~small"}},
  };
  return all;
}

// What a benchmark runs. The library calls a benchmark several times, to find how often to run: the same subjects serve all of
// them, and make room for the next benchmark's.
struct Current {
  std::string name;
  std::vector<Subject> subjects;
};

const std::vector<Subject>& subjects_of(Current& current, const std::shared_ptr<Device>& device, const Family& family,
                                        const std::string& text) {
  const std::string name = family.name + " " + text;
  if (current.name != name) {
    current.subjects.clear();
    current.subjects = make_subjects(device, text, family.weights == Weights::Cold ? 2 * last_cache_bytes() : 0);
    for (const Subject& subject : current.subjects) {
      subject.run();
    }
    current.name = name;
  }
  return current.subjects;
}

void measure(benchmark::State& state, const std::vector<Subject>& subjects, Bound bound) {
  const Cost& cost = subjects[0].cost;
  const auto all_bytes = static_cast<size_t>(cost.bytes) * subjects.size();
  const auto peak = [&] { return bound == Bound::Arithmetic ? flop_rate() : read_rate(all_bytes); };
  const double before = peak();
  size_t next = 0;
  const double start = thread_seconds();
  for ([[maybe_unused]] auto _ : state) {
    subjects[next].run();
    next = next + 1 == subjects.size() ? 0 : next + 1;
  }
  const double seconds = (thread_seconds() - start) / static_cast<double>(state.iterations());
  const double best = (before + peak()) / 2;
  state.counters["GFLOP/s"] = cost.flop / seconds * 1e-9;
  state.counters["GB/s"] = cost.bytes / seconds * 1e-9;
  state.counters["%_of_peak"] = 100 * (bound == Bound::Arithmetic ? cost.flop : cost.bytes) / seconds / best;
  state.SetLabel(subjects[0].kernel);
}

// "gemm/MatMul_128,768_768,768": the case without what all have.
std::string name_of(const Family& family, std::string text) {
  for (const std::string_view dropped : {"~small", "!", "f32", "[", "]"}) {
    for (size_t at = 0; (at = text.find(dropped)) != std::string::npos;) {
      text.erase(at, dropped.size());
    }
  }
  for (char& letter : text) {
    if (letter == ' ') letter = '_';
  }
  return family.name + "/" + text;
}

void add_all(const std::shared_ptr<Device>& device) {
  const auto current = std::make_shared<Current>();  // Shared by all benchmarks.
  for (const Family& family : families()) {
    for (const std::string& text : family.cases) {
      benchmark::RegisterBenchmark(name_of(family, text).c_str(), [device, current, &family, text](benchmark::State& state) {
        try {
          measure(state, subjects_of(*current, device, family, text), family.bound);
        } catch (const std::exception& error) {
          state.SkipWithError(error.what());
        }
      })->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace

}  // namespace unmoor::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  const std::shared_ptr<unmoor::Device> device = unmoor::make_cpu_backend()->open(0);
  device->set_option("threads", "1");
  benchmark::AddCustomContext("instruction set", unmoor::bench::instruction_set());
  char peaks[80];
  std::snprintf(peaks, sizeof peaks, "%.1f GFLOP/s, reads %.1f GB/s", unmoor::bench::flop_rate() * 1e-9,
                unmoor::bench::read_rate(4 * unmoor::bench::last_cache_bytes()) * 1e-9);
  benchmark::AddCustomContext("one core at best", peaks);
  unmoor::bench::add_all(device);
  return benchmark::RunSpecifiedBenchmarks() == 0 ? 1 : 0;
}
