#pragma once

#include <memory>

#include "unmoor/base/threads.h"
#include "unmoor/hal/device.h"
#include "unmoor/ops/product.h"

namespace unmoor {

// This machine's processor: SIMD kernels chosen at run time, a thread pool, and operators' reference functions as cpu.generic
// where there is no kernel. One device, always there. Options: affinity, amx, channels_last, exact, threads, weights_cache, winograd.
// `pool`: the program's threads for its devices to share with what else it does; null: each opened device has its own, one a
// processor. A device whose threads are all busy with another job works on its caller's thread alone, so sessions side by side
// need no more threads.
std::unique_ptr<Backend> make_cpu_backend(std::shared_ptr<ThreadPool> pool = nullptr);

// Products of float64 by this processor's vectors and the pool's threads.
Float64Help float64_help(std::shared_ptr<ThreadPool> pool);

}  // namespace unmoor
