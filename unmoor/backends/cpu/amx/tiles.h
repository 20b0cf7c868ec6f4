#pragma once

#include <cstddef>
#include <cstdint>

#include "unmoor/backends/cpu/amx/amx_facts.h"

namespace unmoor::cpu {

// A float32 as a sum of three bfloat16 parts, high, middle and low (docs/decisions/f32x6.md). Matrices of parts lie in sets: what
// 32 rows of A, or 32 columns of B, hold of 32 k. A set has six tiles of 16 rows of 64 bytes, those of the high parts first:
//   of A: rows 0 to 15, rows 16 to 31; a tile's row is a row of A.
//   of B: columns 0 to 15, columns 16 to 31; a tile's row is two k: for each column both, next to each other.
constexpr size_t set_rows = 32;  // Or columns.
constexpr size_t set_depth = 32;
constexpr size_t tile_values = 512;
constexpr size_t set_values = 6 * tile_values;
constexpr size_t sum_values = set_rows * set_rows;

// Sums of some blocks of 32 rows of A times 32 columns of B, over some steps of 32 k.
struct TilePart {
  const uint16_t* a = nullptr;  // The first block's sets, one a step.
  size_t a_step = 0;            // From a block's sets to those of the next, in values.
  const uint16_t* b = nullptr;  // Sets, one a step.
  float* sums = nullptr;        // By block: [32][32], row-major. Written, not added to.
  size_t blocks = 0;
  size_t steps = 0;
  const char* prefetch = nullptr;  // Memory to bring to L2 meanwhile: never read, so it may be anything.
  size_t prefetch_bytes = 0;
};

// A way to multiply sets. A thread calls `configure` before `multiply` and `release` when it is done.
struct TileLoops {
  const char* name;
  void (*configure)();
  void (*multiply)(const TilePart& part);
  void (*release)();
};

// The instructions of AMX in plain C++, as Intel's manual says what they do: for tests and for checking the processor.
const TileLoops& portable_tiles();

// The instructions of AMX. Null where the program was built without. To be used only where amx_refusal() is empty.
const TileLoops* amx_tiles();

// What this processor and system say of AMX. Asks the system for the process's permission if the processor has all that is needed.
AmxFacts amx_facts();

}  // namespace unmoor::cpu
