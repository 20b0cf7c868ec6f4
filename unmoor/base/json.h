#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "unmoor/base/error.h"

namespace unmoor {

// Levels of lists and objects that JSON from outside may have. Whatever copies, compares or writes JSON calls itself once a level, so
// deeper text could use up the stack; nothing that Unmoor reads or writes has a third as many.
constexpr size_t json_depth = 64;

// JSON that somebody else wrote. A discarded value (`is_discarded`) if the text is no JSON or nests deeper than json_depth. It takes
// about ten times the text in memory: callers bound the text. Any thread.
nlohmann::json read_json(std::string_view text);
// The same, but fails with an error of that kind: "FROM: this is no JSON: it breaks at byte 17".
nlohmann::json read_json(std::string_view text, ErrorKind kind, std::string_view from);

}  // namespace unmoor
