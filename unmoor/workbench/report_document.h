#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace unmoor {

// Sections of the page that a tool's result can fill, in the order of the page.
inline constexpr const char* report_parts[] = {"scan", "plan", "align", "bench", "profile", "doctor"};

// What a result (docs/cli.md, or a page's data as report/DATA.md has it) holds for each section, and `graph` if it has one: one
// object with some of those keys. Nodes stand by name, not by index, except in plan and profile, which belong to this graph.
nlohmann::json report_sections(const nlohmann::json& result);

// Adds align's columns over the graph (report/DATA.md) from its values, and turns its hidden nodes into indices. Without a graph
// in `page` the nodes of its values become one.
void add_align_columns(nlohmann::json& page);

// Adds the answers and figures that `page` lacks for the sections that it has, in the words of migrate.
void add_report_words(nlohmann::json& page);

}  // namespace unmoor
