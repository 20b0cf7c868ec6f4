#include "unmoor/workbench/keep_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string trimmed(const std::string& line) {
  const size_t first = line.find_first_not_of(blanks);
  if (first == std::string::npos) return "";
  return line.substr(first, line.find_last_not_of(blanks) - first + 1);
}

bool is_plain(std::string_view name) {
  if (name.empty() || name.front() == '#' || name.front() == '"') return false;
  const bool bare = blanks.find(name.front()) == std::string_view::npos && blanks.find(name.back()) == std::string_view::npos;
  return bare && std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

std::string name_on(const std::string& line, const std::string& path, size_t number) {
  if (line.front() != '"') return line;
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  if (!parsed.is_string()) fail(ErrorKind::InvalidArgument, "line ", number, " of '", path, "' begins with a quote and is no JSON string");
  return parsed.get<std::string>();
}

// Those that do not run in float32, each with the reason.
std::vector<KeptFloat32::Left> left_of(const NodeNames& asked, const PlanInfo& plan) {
  std::vector<KeptFloat32::Left> left;
  for (const std::string& name : asked) {
    if (plan.kept_float32.contains(name)) continue;
    const auto found = std::ranges::find(plan.left_narrow, name, &KeptFloat32::Left::node);
    left.push_back({name, found == plan.left_narrow.end() ? "it is computed ahead of time, or nothing needs it" : found->reason});
  }
  return left;
}

}  // namespace

nlohmann::json kept_json(const NodeNames& asked, const PlanInfo& plan) {
  nlohmann::json left = nlohmann::json::array();
  for (const auto& each : left_of(asked, plan)) left.push_back({{"node", each.node}, {"reason", each.reason}});
  return {{"nodes", plan.kept_float32}, {"left", std::move(left)}};
}

std::string kept_text(const NodeNames& asked, const PlanInfo& plan) {
  constexpr size_t most_told = 5;
  const auto left = left_of(asked, plan);
  std::string text = fmt::format("in float32: {} of the {} named\n", asked.size() - left.size(), counted(asked.size(), "node"));
  for (size_t i = 0; i < std::min(left.size(), most_told); ++i)
    text += wrapped(fmt::format("  not {}: {}", shortened(left[i].node, 40), left[i].reason));
  if (left.size() > most_told) text += fmt::format("  and {} more, listed in --json\n", left.size() - most_told);
  return text;
}

const std::string& name_in_file(const Node& node) { return node.origin.name.empty() ? node.name : node.origin.name; }

NodeNames all_node_names(const Graph& model) {
  NodeNames names;
  for (const Node& node : model.nodes()) names.insert(name_in_file(node));
  return names;
}

NodeNames read_keep_list(const std::string& path, const Graph& model) {
  const NodeNames known = all_node_names(model);
  std::istringstream lines(read_file(path));
  NodeNames names;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    const std::string name = name_on(text, path, number);
    if (!known.contains(name)) {
      fail(ErrorKind::InvalidArgument, "line ", number, " of '", path, "' names '", name, "', and the model has no such node (a name a line; nodes in bodies of control flow cannot be kept)");
    }
    names.insert(name);
  }
  if (names.empty()) fail(ErrorKind::InvalidArgument, "'", path, "' names no node; write the name of one a line");
  return names;
}

std::string keep_list_line(std::string_view name) {
  if (is_plain(name)) return std::string(name);
  return nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace unmoor
