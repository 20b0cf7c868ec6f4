// The only file with AMX's instructions: in the build for x86-64 where the compiler has them (layer.cmake), else tiles_none.cpp.
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "unmoor/backends/cpu/amx/six-inl.h"

namespace unmoor::cpu {

namespace {

// As the processor reads it: LDTILECFG in Intel's manual, volume 2.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// The intrinsics take registers as literals only. Those of g++ 12 do not tell the compiler which memory they read, hence fences.
struct AmxTiles {
  static void configure() {
    static constexpr TileConfig config;  // Static: g++ 12 would drop most of one on the stack, since it does not see it read.
    _tile_loadconfig(&config);
  }
  static void release() { _tile_release(); }
  template <size_t t>
  static void zero() {
    if constexpr (t == 0) _tile_zero(0);
    if constexpr (t == 1) _tile_zero(1);
    if constexpr (t == 2) _tile_zero(2);
    if constexpr (t == 3) _tile_zero(3);
  }
  template <size_t t>
  static void load(const void* from, size_t step) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if constexpr (t == 4) _tile_loadd(4, from, step);
    if constexpr (t == 5) _tile_loadd(5, from, step);
    if constexpr (t == 6) _tile_loadd(6, from, step);
    if constexpr (t == 7) _tile_loadd(7, from, step);
  }
  template <size_t t>
  static void store(void* to, size_t step) {
    if constexpr (t == 0) _tile_stored(0, to, step);
    if constexpr (t == 1) _tile_stored(1, to, step);
    if constexpr (t == 2) _tile_stored(2, to, step);
    if constexpr (t == 3) _tile_stored(3, to, step);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  template <size_t row, size_t column>
  static void dot() {
    if constexpr (row == 0 && column == 0) _tile_dpbf16ps(0, 4, 6);
    if constexpr (row == 0 && column == 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (row == 1 && column == 0) _tile_dpbf16ps(2, 5, 6);
    if constexpr (row == 1 && column == 1) _tile_dpbf16ps(3, 5, 7);
  }
};

bool bit(uint32_t word, int i) { return ((word >> i) & 1U) != 0; }

// XCR0. Only where CPUID says that the system switched it on.
uint64_t read_saved_state() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

}  // namespace

const TileLoops* amx_tiles() {
  static constexpr TileLoops loops = SixProducts<AmxTiles>::loops("AMX");
  return &loops;
}

AmxFacts amx_facts() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM: Linux 5.16 and later.
  constexpr long tile_data = 18;
  AmxFacts facts{.built = true};
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return facts;
  facts.has_avx512 = bit(b, 16);
  facts.has_bf16 = bit(d, 22);
  facts.has_tile = bit(d, 24);
  if (__get_cpuid(1, &a, &b, &c, &d) != 0 && bit(c, 27)) facts.saved_state = read_saved_state();
  if (!amx_refusal(facts).empty()) return facts;
  if (::syscall(SYS_arch_prctl, request_permission, tile_data) != 0) facts.permission = errno;
  return facts;
}

}  // namespace unmoor::cpu
