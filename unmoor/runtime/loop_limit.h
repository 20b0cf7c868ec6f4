#pragma once

#include <cstdint>
#include <string_view>

namespace unmoor {

// How many rounds a Loop may run before it is taken for one that never ends: ten million, unless UNMOOR_LOOP_LIMIT or set_loop_limit says
// otherwise. Any thread.
int64_t loop_limit();
void set_loop_limit(int64_t rounds);
// A positive number. Fails with InvalidArgument on other text.
int64_t parse_loop_limit(std::string_view text);

}  // namespace unmoor
