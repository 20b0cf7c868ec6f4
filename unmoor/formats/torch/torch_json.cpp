#include <nlohmann/json.hpp>

#include "unmoor/base/json.h"
#include "unmoor/base/memory.h"
#include "unmoor/formats/torch/readers.h"

namespace unmoor {

nlohmann::json read_torch_json(std::string_view text, const std::string& from) {
  constexpr size_t of_text = 10;  // What JSON takes in memory, times its text.
  check_memory(of_text * text.size());
  return read_json(text, ErrorKind::InvalidModel, from);
}

}  // namespace unmoor
