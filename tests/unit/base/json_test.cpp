#include "unmoor/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace unmoor {
namespace {

using nlohmann::json;

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

std::string reason_of(const std::string& text) {
  try {
    (void)read_json(text, ErrorKind::InvalidModel, "a.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ReadJson, as_deep_as_is_allowed_is_read) {
  EXPECT_TRUE(read_json(nested(json_depth)).is_array());
  EXPECT_TRUE(read_json(nested(json_depth), ErrorKind::InvalidModel, "a.json").is_array());
}

TEST(ReadJson, deeper_is_refused_with_the_reason) {
  for (const size_t levels : {json_depth + 1, size_t{1'000'000}}) {
    EXPECT_TRUE(read_json(nested(levels)).is_discarded());
    EXPECT_EQ(reason_of(nested(levels)), "a.json: this nests deeper than 64 levels");
    std::string objects;
    for (size_t i = 0; i < levels; ++i) objects += R"({"a":)";
    EXPECT_TRUE(read_json(objects + "1" + std::string(levels, '}')).is_discarded());
  }
}

TEST(ReadJson, brackets_in_strings_are_no_levels) {
  const json text = {std::string(1000, '['), "\\\"[[[", std::string(1000, '{')};
  EXPECT_EQ(read_json(text.dump()), text);
}

TEST(ReadJson, what_is_no_json_breaks_at_a_byte) {
  for (const char* const text : {"", "[1, 2", R"({"a" 1})", "[1]]", "\"\xff\"", "nul", "]]]]", R"(["\)"}) {
    EXPECT_TRUE(read_json(text).is_discarded()) << text;
    EXPECT_NE(reason_of(text).find("a.json: this is no JSON: it breaks at byte "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace unmoor
