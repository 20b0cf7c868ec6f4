#pragma once

#include <string>
#include <string_view>

namespace unmoor {

// A message with the names of C++ symbols in it as a person writes them, each with its mangled form behind it in brackets. Names that
// are none, or whose text could grow without end, stay as they are. Any text will do; any thread.
std::string demangled(std::string_view message);

}  // namespace unmoor
