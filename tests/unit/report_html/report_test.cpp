#include "unmoor/workbench/report.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace unmoor {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// The build folder lies within the source tree.
std::string read_golden(const std::string& name) {
  const std::filesystem::path inside = std::filesystem::path("report/tests/golden") / name;
  std::filesystem::path folder = std::filesystem::current_path();
  while (!std::filesystem::exists(folder / inside) && folder.has_relative_path()) folder = folder.parent_path();
  std::ifstream file(folder / inside, std::ios::binary);
  EXPECT_TRUE(file) << name << " not found above the working folder";
  return {std::istreambuf_iterator<char>(file), {}};
}

void cut(std::string& page, const std::string& from, const std::string& to, bool with_end) {
  const std::size_t start = page.find(from);
  const std::size_t end = page.find(to, start);
  ASSERT_NE(end, std::string::npos) << from;
  page.erase(start, end - start + (with_end ? to.size() : 0));
}

// The page without style, hash, data and script.
std::string static_part(std::string page) {
  page.resize(page.find("<script type=\"application/json\""));
  cut(page, "<style>", "</style>", true);
  cut(page, "sha256-", "'", false);
  return page;
}

std::string data_block(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t start = page.find(open) + open.size();
  return page.substr(start, page.find("</script>", start) - start);
}

TEST(Report, PlainPartIsTheGoldenOne) {
  EXPECT_EQ(static_part(render_report(json::parse(read_golden("page.json")))), read_golden("page.html"));
}

TEST(Report, EmptyDataMakesAPage) {
  for (const json& data : {json(), json::object(), json::array(), json("text"), json(3)})
    EXPECT_THAT(render_report(data), HasSubstr("<h1 id=\"sentence\">"));
}

TEST(Report, WrongTypesAreLeftOut) {
  const json data = {{"figures", {1, nullptr, {{"id", 3}, {"value", json::array()}}}}, {"next", "x"}, {"answers", {{"scan", 5}}},
                     {"tools", {{{"name", "tune"}}}}, {"model", 7}, {"sentence", json::object()}, {"verdict", 1}};
  EXPECT_THAT(render_report(data), HasSubstr("not-run-tune"));
}

TEST(Report, ReadingsOfAnotherKindAreReplacedWhereValuesAreMany) {
  json values = json::array();
  for (int i = 0; i < 1001; ++i) values.push_back({{"name", std::to_string(i)}, {"entire", {{"rel_l2", 1}, {"mean", 2}}}});
  for (const json& readings : {json(), json("text"), json::array({1}), json(3)}) {
    const json page = json::parse(data_block(render_report({{"readings", readings}, {"align", {{"values", values}}}})));
    EXPECT_TRUE(page["readings"]["layers"].is_string());
    EXPECT_EQ(page["align"]["values"][5]["entire"], json({{"rel_l2", 1}}));
  }
}

TEST(Report, TwoNodesThatAreInfinitelyFarMakeTwoListsOfHeat) {
  const auto value = [](const char* node) {
    const json far = {{"rel_l2", "inf"}, {"over", "inf"}, {"problem", "shape"}};
    return json{{"name", node}, {"node", node}, {"op", "Relu"}, {"single", far}, {"entire", far}};
  };
  const json page = report_document({{"tool", "align"}, {"values", json::array({value("a"), value("b")})}});
  EXPECT_EQ(page["align"]["heat"], json::array({json::array({"inf", "inf"}), json::array({"inf", "inf"})}));
}

TEST(Report, DataIsCarriedWholeAndHoldsNoMarkup) {
  const json data = {{"graph", {{"name", {"</script><img>", "<!--", "a\"b"}}}}, {"sentence", "<b>&'\""}};
  const std::string page = render_report(data);
  EXPECT_EQ(json::parse(data_block(page)), data);
  EXPECT_THAT(data_block(page), Not(HasSubstr("<")));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;&amp;&#39;&quot;</h1>"));
}

TEST(Report, BrokenUtf8AndNanDoNotThrow) {
  const json data = {{"sentence", "a\xff"}, {"x", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_THAT(render_report(data), HasSubstr("a\xEF\xBF\xBD</h1>"));
}

TEST(Report, AllowsOnlyItsOwnScript) {
  const std::string page = render_report(json::object());
  EXPECT_THAT(page, HasSubstr("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, Not(testing::ContainsRegex("(src|href)=\"https?:")));
}

}  // namespace
}  // namespace unmoor
