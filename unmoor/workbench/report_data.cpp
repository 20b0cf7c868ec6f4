#include "unmoor/workbench/report_data.h"

#include <limits>

namespace unmoor {

using nlohmann::json;

std::string dump_json(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

const json& member(const json& object, std::string_view name) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(std::string(name));
  return found == object.end() ? nothing : *found;
}

std::string text(const json& value) {
  return value.is_string() ? json::parse(dump_json(value)).get<std::string>() : std::string();
}

std::string text(const json& object, std::string_view name) { return text(member(object, name)); }

bool is_empty(const json& value) {
  return value.is_null() || value == false || (value.is_string() && value.get_ref<const std::string&>().empty());
}

std::vector<const json*> items(const json& object, std::string_view name) {
  std::vector<const json*> found;
  const json& list = member(object, name);
  if (!list.is_array()) return found;
  for (const json& item : list) {
    if (item.is_structured()) found.push_back(&item);
  }
  return found;
}

std::optional<double> number_in(const json& object, std::string_view name) {
  const json& value = member(object, name);
  if (value.is_number()) return value.get<double>();
  const std::string words = text(value);
  if (words == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (words == "inf") return std::numeric_limits<double>::infinity();
  if (words == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

size_t count_in(const json& object, std::string_view name) {
  const json& value = member(object, name);
  return value.is_number_unsigned() ? value.get<size_t>() : 0;
}

}  // namespace unmoor
