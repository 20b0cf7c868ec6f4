#pragma once

#include <string>

#include "unmoor/backends/cpu/amx/tiles.h"

namespace unmoor::cpu {

// The tiles that kernels use, or why they have none.
struct TileChoice {
  const TileLoops* loops = nullptr;
  std::string refusal = {};    // Empty where there are loops.
  bool worth_telling = false;  // The processor has AMX, and yet it is not used.
  bool any_size = false;       // Set by use_tiles_for_tests: kernels take products that are not worth it.
};

// Decided once a process, when first asked: the processor, the system's leave, and a check of the instructions. Any thread.
TileChoice tiles();

// What the check finds: a product by these tiles compared with the portable ones, bit for bit. Empty, or what differs.
std::string check_tiles(const TileLoops& loops);

// For tests alone: tiles() is these from now on; null: what it was. Not to be called while kernels are prepared or run.
void use_tiles_for_tests(const TileLoops* loops, bool any_size = true);

// While it lives the calling thread may multiply with these tiles.
class ConfiguredTiles {
 public:
  explicit ConfiguredTiles(const TileLoops& loops) : loops_(loops) { loops_.configure(); }
  ~ConfiguredTiles() { loops_.release(); }
  ConfiguredTiles(const ConfiguredTiles&) = delete;
  ConfiguredTiles& operator=(const ConfiguredTiles&) = delete;

 private:
  const TileLoops& loops_;
};

}  // namespace unmoor::cpu
