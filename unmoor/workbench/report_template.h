#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace unmoor {

// A page with its marks replaced by what `view` says: {{name}} as text that HTML cannot take for markup, {{{name}}} as it is,
// {{#name}}…{{/name}} once for each item of a list, or once if the value is not empty. "a.b" is b within a; inner names hide outer
// ones. A mark that `view` has no text for is left out. Any thread.
std::string fill_template(std::string_view page, const nlohmann::json& view);

}  // namespace unmoor
