#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "unmoor/passes/keep_float32.h"
#include "unmoor/runtime/runner.h"

namespace unmoor {

// A text file with the name of a node a line, for `--keep-float32`. Empty lines and those that begin with # say nothing. A name
// that would be read otherwise (it begins with #, a quote or a space, ends in a space, or has a line break) stands there as a
// JSON string.

// Fails with Io, and with InvalidArgument on a file without a name, on a broken string, and on what is no node of the model's
// main graph.
NodeNames read_keep_list(const std::string& path, const Graph& model);
// The name as such a line, without its end.
std::string keep_list_line(std::string_view name);

// What became of the nodes that were asked for, in a plan: {"nodes": [], "left": [{"node", "reason"}]}, and in words.
nlohmann::json kept_json(const NodeNames& asked, const PlanInfo& plan);
std::string kept_text(const NodeNames& asked, const PlanInfo& plan);

// What the file calls a node: its name, or OP:first_output where it has none.
const std::string& name_in_file(const Node& node);
// Every node of the main graph by that name.
NodeNames all_node_names(const Graph& model);

}  // namespace unmoor
