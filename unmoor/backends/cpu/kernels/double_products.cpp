#include <algorithm>

#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/doubles.h"

namespace unmoor {

Float64Help float64_help(std::shared_ptr<ThreadPool> pool) {
  const auto product = [pool](const double* a, const double* b, double* c, size_t m, size_t n, size_t k) {
    const cpu::DoubleLoops& loops = cpu::double_loops();
    const size_t columns = loops.panel_columns;
    const size_t panels = (n + columns - 1) / columns;
    constexpr size_t worth = 65536;  // Products of numbers that pay for waking a thread.
    pool->ranges(panels, worth / (m * k * columns + 1) + 1, [&](size_t begin, size_t end) {
      auto* const panel = reinterpret_cast<double*>(cpu::scratch(0, 2 * cpu::DoubleLoops::depth * columns));
      loops.add_product(a, b, c, m, n, k, begin * columns, std::min(end * columns, n), panel);
    });
  };
  return {product, std::move(pool)};
}

}  // namespace unmoor
