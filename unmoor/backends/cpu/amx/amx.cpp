#include "unmoor/backends/cpu/amx/amx.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "unmoor/backends/cpu/simd/split.h"
#include "unmoor/base/error.h"

namespace unmoor::cpu {

namespace {

std::atomic<const TileLoops*> tiles_of_tests{nullptr};
std::atomic<bool> any_size_in_tests{false};

// Sums of [32, 64] times [64, 32].
std::vector<float> multiplied(const TileLoops& loops, const std::vector<float>& a, const std::vector<float>& b) {
  constexpr size_t depth = 2 * set_depth;
  std::vector<uint16_t> a_sets(2 * set_values);
  std::vector<uint16_t> b_sets(2 * set_values);
  split_loops().rows(a.data(), depth, set_rows, depth, a_sets.data());
  for (size_t s = 0; s < 2; ++s) split_loops().columns(b.data() + s * set_depth * set_rows, set_rows, b_sets.data() + s * set_values);
  std::vector<float> sums(sum_values);
  const ConfiguredTiles configured(loops);
  loops.multiply({.a = a_sets.data(), .b = b_sets.data(), .sums = sums.data(), .blocks = 1, .steps = 2});
  return sums;
}

TileChoice decide() {
  TileChoice choice;
  const AmxFacts facts = amx_facts();
  choice.refusal = amx_refusal(facts);
  choice.worth_telling = facts.has_tile && facts.has_bf16;
  if (!choice.refusal.empty()) return choice;
  const std::string difference = check_tiles(*amx_tiles());
  if (difference.empty()) return {.loops = amx_tiles()};
  choice.refusal = cat("AMX failed its check at the start: ", difference);
  return choice;
}

}  // namespace

std::string amx_refusal(const AmxFacts& facts) {
  constexpr uint64_t tiles_saved = uint64_t{3} << 17;  // TILECFG and TILEDATA.
  if (!facts.built) return "this program was built without AMX";
  if (!facts.has_tile || !facts.has_bf16) return "this processor has no AMX";
  if (!facts.has_avx512) return "this processor has AMX without AVX-512";
  if ((facts.saved_state & tiles_saved) != tiles_saved) return "the system does not keep AMX's registers (XCR0)";
  if (facts.permission == EINVAL) return "the kernel cannot grant AMX: Linux 5.16 or later is wanted";
  if (facts.permission != 0) return cat("the kernel refuses AMX to this process: ", std::generic_category().message(facts.permission));
  return {};
}

// The order in which a processor adds up one dot product changes nothing in these: a first one has one product in each, of
// numbers that need all three parts; a second one has small whole numbers. What the kernels rely on is in them: where values lie,
// sums of 24 bits, rounding to nearest, and that denormals are zeros.
std::string check_tiles(const TileLoops& loops) {
  constexpr size_t depth = 2 * set_depth;
  std::vector<float> one_each(set_rows * depth);
  std::vector<float> any(depth * set_rows);
  std::vector<float> whole_a(set_rows * depth);
  std::vector<float> whole_b(depth * set_rows);
  uint32_t state = 1;
  const auto next = [&state] { return (state = state * 1664525U + 1013904223U) >> 8; };
  const auto number = [&] { return static_cast<float>(static_cast<int32_t>(next()) - (1 << 23)) / static_cast<float>(1 << 20); };
  for (size_t i = 0; i < set_rows; ++i) one_each[i * depth + i * 37 % depth] = number();
  for (float& value : any) value = number();
  for (size_t i = 0; i < whole_a.size(); ++i) {
    whole_a[i] = static_cast<float>(static_cast<int32_t>(next() % 511) - 255);
    whole_b[i] = static_cast<float>(static_cast<int32_t>(next() % 511) - 255);
  }
  any[0] = 1e-39F;
  const auto differs = [&](const std::vector<float>& a, const std::vector<float>& b) {
    const std::vector<float> found = multiplied(loops, a, b);
    const std::vector<float> wanted = multiplied(portable_tiles(), a, b);
    for (size_t i = 0; i < found.size(); ++i) {
      if (std::memcmp(&found[i], &wanted[i], sizeof(float)) == 0) continue;
      return cat("element ", i / set_rows, ",", i % set_rows, " of a product is ", found[i], ", not ", wanted[i]);
    }
    return std::string();
  };
  std::string difference = differs(one_each, any);
  return difference.empty() ? differs(whole_a, whole_b) : difference;
}

void use_tiles_for_tests(const TileLoops* loops, bool any_size) {
  tiles_of_tests = loops;
  any_size_in_tests = any_size;
}

TileChoice tiles() {
  if (const TileLoops* const forced = tiles_of_tests) return {.loops = forced, .any_size = any_size_in_tests};
  static const TileChoice choice = decide();
  return choice;
}

}  // namespace unmoor::cpu
