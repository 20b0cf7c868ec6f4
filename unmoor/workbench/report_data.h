#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Reading JSON that may be anything: what is missing or of another kind is nothing. None of these throws. Any thread.
namespace unmoor {

// The value as text; broken UTF-8 is replaced.
std::string dump_json(const nlohmann::json& value);
// A member of an object; null if there is none.
const nlohmann::json& member(const nlohmann::json& object, std::string_view name);
// The text, with broken UTF-8 replaced; empty for anything but text.
std::string text(const nlohmann::json& value);
std::string text(const nlohmann::json& object, std::string_view name);
// Null, false or no text.
bool is_empty(const nlohmann::json& value);
// The objects and lists in the list of that name. They live as long as `object`.
std::vector<const nlohmann::json*> items(const nlohmann::json& object, std::string_view name);
// A number, or "nan", "inf", "-inf" as results spell them.
std::optional<double> number_in(const nlohmann::json& object, std::string_view name);
// A whole number, 0 or more; 0 for anything else.
size_t count_in(const nlohmann::json& object, std::string_view name);

}  // namespace unmoor
