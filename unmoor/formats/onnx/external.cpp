#include "unmoor/formats/onnx/external.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/wire.h"

namespace unmoor::onnx {
namespace {

namespace fs = std::filesystem;

uint64_t number(std::string_view key, std::string_view text) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) {
    fail(ErrorKind::InvalidModel, "the ", key, " of its external data is '", text, "', not a number");
  }
  return value;
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

bool is_inside(const fs::path& folder, const fs::path& file) {
  const auto [in_folder, in_file] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return in_folder == folder.end();
}

}  // namespace

void read_external_entry(std::string_view bytes, ExternalPlace& place) {
  const auto [key, value] = read_entry(bytes);
  if (key == "location") place.location = std::string(value);
  if (key == "offset") place.offset = number(key, value);
  if (key == "length") place.length = number(key, value);
}

std::string external_path(const std::string& model_path, const std::string& location) {
  const fs::path relative(location);
  const auto complain = [&location](std::string_view problem) {
    fail(ErrorKind::InvalidModel, "the external file '", location, "' ", problem);
  };
  if (location.empty()) fail(ErrorKind::InvalidModel, "its external data has no location");
  if (location.find('\0') != std::string::npos) complain("has a name with a zero byte");
  if (relative.is_absolute() || location.find('\\') != std::string::npos) complain("is not given relative to the model's folder");
  if (std::ranges::find(relative, "..") != relative.end()) complain("leaves the model's folder");

  std::error_code problem;
  const fs::path file = fs::canonical(folder_of(model_path) / relative, problem);
  if (problem) fail(ErrorKind::Io, "the external file '", location, "' cannot be opened: ", problem.message());
  const fs::path linked_from = fs::canonical(folder_of(model_path), problem);
  const bool in_first = !problem && is_inside(linked_from, file);
  const fs::path linked_to = fs::canonical(model_path, problem);
  const bool in_second = !problem && is_inside(folder_of(linked_to), file);
  if (!in_first && !in_second) complain("is a link that leaves the model's folder");
  return file.string();
}

}  // namespace unmoor::onnx
