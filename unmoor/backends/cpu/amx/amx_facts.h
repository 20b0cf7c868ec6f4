#pragma once

#include <cstdint>
#include <string>

namespace unmoor::cpu {

// What decides whether a process may use AMX.
struct AmxFacts {
  bool built = false;      // The program has its instructions.
  bool has_tile = false;   // CPUID leaf 7: AMX-TILE, AMX-BF16, AVX512F.
  bool has_bf16 = false;
  bool has_avx512 = false;
  uint64_t saved_state = 0;  // XCR0: what the system keeps of a thread; bits 17 and 18 are the tiles'.
  int permission = 0;        // errno of asking the system for it; 0 is leave.
};

// Why not; empty if it may.
std::string amx_refusal(const AmxFacts& facts);

}  // namespace unmoor::cpu
