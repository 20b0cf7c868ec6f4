#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "unmoor/base/error.h"
#include "unmoor/engines/engine.h"

namespace unmoor {
namespace {

constexpr std::array<std::string_view, 3> engines{"ort", "torch", "py"};

// "cuda", "cuda:0".
bool is_engine_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view index = colon == std::string_view::npos ? "0" : text.substr(colon + 1);
  const auto all = [](std::string_view part, auto is) {
    return !part.empty() && std::ranges::all_of(part, [&](char each) { return is(static_cast<unsigned char>(each)) != 0; });
  };
  return all(kind, [](int each) { return std::isalnum(each); }) && all(index, [](int each) { return std::isdigit(each); }) &&
         index.size() < 5;
}

}  // namespace

std::string EngineName::text() const { return cat(engine, ":", device); }

bool is_engine(const std::string& text) {
  const std::string_view engine = std::string_view(text).substr(0, text.find(':'));
  const bool known = std::ranges::find(engines, engine) != engines.end();
  return known && (engine != "py" || text.size() > engine.size());
}

std::optional<EngineName> parse_engine(const std::string& text) {
  if (!is_engine(text)) return std::nullopt;
  const size_t colon = text.find(':');
  EngineName name{text.substr(0, colon), colon == std::string::npos ? "cpu" : text.substr(colon + 1)};
  if (name.engine == "py") {
    if (name.device.empty()) fail(ErrorKind::InvalidArgument, "'", text, "' names no file; write it as py:FILE");
  } else if (!is_engine_device(name.device)) {
    fail(ErrorKind::InvalidArgument, "'", text, "' is no engine's device; write it as ", name.engine, ":cpu or ", name.engine,
         ":cuda:0");
  } else if (name.device.starts_with("cpu:")) {
    if (name.device != "cpu:0") fail(ErrorKind::InvalidArgument, "'", text, "': there is one cpu; write it as ", name.engine, ":cpu");
    name.device = "cpu";
  }
  return name;
}

}  // namespace unmoor
