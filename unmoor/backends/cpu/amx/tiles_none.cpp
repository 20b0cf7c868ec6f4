#include "unmoor/backends/cpu/amx/tiles.h"

namespace unmoor::cpu {

const TileLoops* amx_tiles() { return nullptr; }
AmxFacts amx_facts() { return {}; }

}  // namespace unmoor::cpu
