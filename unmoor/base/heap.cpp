#include "unmoor/base/heap.h"

#include <malloc.h>

#include <limits>

namespace unmoor {

void keep_freed_memory() {
  constexpr int most_in_heap = 8 << 20;  // Larger blocks are mapped, each for itself: among others they would leave gaps.
  mallopt(M_MMAP_THRESHOLD, most_in_heap);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_ARENA_MAX, 1);
}

void give_back_freed_memory() { malloc_trim(0); }

}  // namespace unmoor
