#include "bench/micro/peak.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/micro/peak.cpp"
#include "bench/micro/peak_loops.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Twelve chains at once: more than any processor's latency times its units. Returns what they come to, so that they are not left
// out.
float multiply_add(size_t rounds, float factor, float addend) {
  const D d;
  const V f = hn::Set(d, factor);
  const V t = hn::Set(d, addend);
  // Each starts elsewhere: equal ones would be computed once.
  V a = hn::Set(d, 1.0F), b = hn::Set(d, 2.0F), c = hn::Set(d, 3.0F), e = hn::Set(d, 4.0F), g = hn::Set(d, 5.0F),
    h = hn::Set(d, 6.0F);
  V i = hn::Set(d, 7.0F), j = hn::Set(d, 8.0F), k = hn::Set(d, 9.0F), l = hn::Set(d, 10.0F), m = hn::Set(d, 11.0F),
    n = hn::Set(d, 12.0F);
  for (size_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, f, t), b = hn::MulAdd(b, f, t), c = hn::MulAdd(c, f, t), e = hn::MulAdd(e, f, t);
    g = hn::MulAdd(g, f, t), h = hn::MulAdd(h, f, t), i = hn::MulAdd(i, f, t), j = hn::MulAdd(j, f, t);
    k = hn::MulAdd(k, f, t), l = hn::MulAdd(l, f, t), m = hn::MulAdd(m, f, t), n = hn::MulAdd(n, f, t);
  }
  const V sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                        hn::Add(hn::Add(hn::Add(g, h), hn::Add(i, j)), hn::Add(hn::Add(k, l), hn::Add(m, n))));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Four streams, a quarter each: one alone does not keep enough reads on their way.
float read(const float* from, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const size_t quarter = count / 4;
  V a = hn::Zero(d), b = a, c = a, e = a, g = a, h = a, i = a, j = a;
  for (size_t at = 0; at + 2 * lanes <= quarter; at += 2 * lanes) {
    const float* const here = from + at;
    a = hn::Add(a, hn::LoadU(d, here));
    b = hn::Add(b, hn::LoadU(d, here + lanes));
    c = hn::Add(c, hn::LoadU(d, here + quarter));
    e = hn::Add(e, hn::LoadU(d, here + quarter + lanes));
    g = hn::Add(g, hn::LoadU(d, here + 2 * quarter));
    h = hn::Add(h, hn::LoadU(d, here + 2 * quarter + lanes));
    i = hn::Add(i, hn::LoadU(d, here + 3 * quarter));
    j = hn::Add(j, hn::LoadU(d, here + 3 * quarter + lanes));
  }
  const V sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(g, h), hn::Add(i, j)));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

const PeakLoops& loops() {
  static const PeakLoops table{multiply_add, read, hn::Lanes(D()), hwy::TargetName(HWY_TARGET)};
  return table;
}

}  // namespace unmoor::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::bench {

HWY_EXPORT(loops);

namespace {

constexpr double seconds_each = 0.01;
volatile float sink = 0;

// Work a second of calls that each do `work`.
template <class Call>
double rate(double work, const Call& call) {
  call();
  const double start = thread_seconds();
  double done = 0;
  double passed = 0;
  do {
    call();
    done += work;
    passed = thread_seconds() - start;
  } while (passed < seconds_each);
  return done / passed;
}

}  // namespace

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double flop_rate() {
  constexpr size_t rounds = 20000;
  const auto& table = HWY_DYNAMIC_DISPATCH(loops)();
  const volatile float factor = 0.999F;
  const volatile float addend = 0.001F;
  return rate(2.0 * 12 * static_cast<double>(rounds * table.lanes), [&] { sink = table.multiply_add(rounds, factor, addend); });
}

double read_rate(size_t bytes) {
  const auto& table = HWY_DYNAMIC_DISPATCH(loops)();
  const size_t step = 8 * table.lanes;
  const size_t count = std::max(bytes / sizeof(float) / step, size_t{1}) * step;
  const std::unique_ptr<float[], decltype(&std::free)> memory(
      static_cast<float*>(std::aligned_alloc(4096, (count * sizeof(float) + 4095) / 4096 * 4096)), &std::free);
  if (memory == nullptr) {
    return 0;
  }
  std::fill_n(memory.get(), count, 1.0F);
  return rate(static_cast<double>(count * sizeof(float)), [&] { sink = table.read(memory.get(), count); });
}

std::string instruction_set() { return HWY_DYNAMIC_DISPATCH(loops)().name; }

size_t last_cache_bytes() {
  const long bytes = std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), ::sysconf(_SC_LEVEL2_CACHE_SIZE));
  return bytes > 0 ? static_cast<size_t>(bytes) : size_t{32} << 20;
}

}  // namespace unmoor::bench
#endif
