#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/formats/torch/readers.h"

namespace unmoor {

nlohmann::json read_torch_json(std::string_view text, const std::string& from) {
  constexpr size_t of_text = 10;  // What JSON takes in memory, times its text.
  constexpr int deepest = 64;     // Copying and comparing values calls itself once a level.
  check_memory(of_text * text.size());
  const auto check = [&from](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > deepest) fail(ErrorKind::InvalidModel, from, ": this JSON nests deeper than ", deepest, " levels");
    return true;
  };
  nlohmann::json value = nlohmann::json::parse(text, check, false);
  if (value.is_discarded()) fail(ErrorKind::InvalidModel, from, ": this is no JSON");
  return value;
}

}  // namespace unmoor
