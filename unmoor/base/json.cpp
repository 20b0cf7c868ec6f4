#include "unmoor/base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace unmoor {
namespace {

using nlohmann::json;

// How many brackets are open at most, those in strings left out. Of text that is no JSON any number.
size_t depth_of(std::string_view text) {
  size_t open = 0;
  size_t most = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char each = text[i];
    if (in_string && each == '\\') {
      ++i;
    } else if (each == '"') {
      in_string = !in_string;
    } else if (!in_string && (each == '[' || each == '{')) {
      most = std::max(most, ++open);
    } else if (!in_string && (each == ']' || each == '}') && open > 0) {
      --open;
    }
  }
  return most;
}

}  // namespace

json read_json(std::string_view text) {
  if (depth_of(text) > json_depth) return json(json::value_t::discarded);
  return json::parse(text, nullptr, false);
}

json read_json(std::string_view text, ErrorKind kind, std::string_view from) {
  if (depth_of(text) > json_depth) fail(kind, from, ": this nests deeper than ", json_depth, " levels");
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    fail(kind, from, ": this is no JSON: it breaks at byte ", error.byte);
  }
}

}  // namespace unmoor
