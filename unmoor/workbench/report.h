#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace unmoor {

// One self-contained HTML page for a result as report/DATA.md describes it. Every part of the data may be missing; unknown
// parts are kept in the JSON that the page carries.
std::string render_report(const nlohmann::json& data);

}  // namespace unmoor
