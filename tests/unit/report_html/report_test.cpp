#include "unmoor/workbench/report.h"

#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "unmoor/base/error.h"
#include "unmoor/workbench/causes/table.h"
#include "unmoor/workbench/report_language.h"

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

// A document as migrate makes it, of so many nodes.
json document_of(size_t nodes) {
  json data{{"schema", 1}, {"tool", "migrate"}, {"sentence", "The model does not run on x yet."}};
  std::mt19937 random(1);
  const auto five = [&random] { return std::strtod(fmt::format("{:.5g}", std::uniform_real_distribution<double>(0, 1)(random)).c_str(), nullptr); };
  for (size_t i = 0; i < nodes; ++i) {
    const std::string name = fmt::format("/encoder/layer.{}/attention/part_{}/MatMul", i / 12, i % 12);
    data["graph"]["name"].push_back(name);
    data["graph"]["op"].push_back("MatMul");
    data["graph"]["category"].push_back("matmul");
    data["graph"]["block"].push_back(fmt::format("layer.{}", i / 12));
    data["plan"]["device"].push_back(i % 2);
    data["plan"]["refusals"].push_back({{{"device", "gpu:0"}, {"reason", "size"}, {"detail", fmt::format("sums of {} products", i % 50)}}});
    for (const char* column : {"single", "entire", "over", "over_entire"}) data["align"][column].push_back(five());
    json metrics;
    for (const char* key : {"max_abs", "mean_abs", "max_rel", "mean_rel", "cosine", "rel_l2", "rmse", "nmse", "sqnr_db", "kl", "ulp_max", "over", "excess_e"})
      metrics[key] = five();
    data["align"]["values"].push_back({{"name", name + "_output_0"}, {"node", name}, {"op", "MatMul"}, {"dtype", "float32"}, {"single", metrics}, {"entire", metrics}, {"verdict", "match"}});
    data["profile"]["ms"].push_back(five());
  }
  return data;
}

// Processor time, which others on the machine do not lengthen much; the best of some runs.
double render_ms(const json& data, const char* language) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t start = std::clock();
    EXPECT_FALSE(render_report(data, language).empty());
    best = std::min(best, 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

// Sanitizers and debug builds take many times as long.
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Report, IsMadeIn150MillisecondsOf3000Nodes) {
  const json data = document_of(3000);
  for (const char* language : report_languages) {
    const double ms = render_ms(data, language);
    RecordProperty(language, fmt::format("{:.0f} ms", ms));
    EXPECT_LE(ms, 150) << language;
  }
}
#endif

TEST(Report, SpeaksChineseAndCarriesTheSameData) {
  json data = document_of(3);
  data["figures"] = {{{"id", "scan"}, {"value", "2 of 3"}, {"label", "of the nodes run there"}, {"note", "2 of 3 on gpu:0"}}};
  data["next"] = {{{"text", "1 node runs on the host: a b"}, {"command", "unmoor scan 'of the nodes run there'"}, {"effect", "nobody knows"}}};
  data["readings"]["heat"] = "explained by rounding";
  const std::string page = render_report(data, "zh");
  EXPECT_EQ(json::parse(data_block(page)), data);
  EXPECT_THAT(page, HasSubstr("<html lang=\"zh-CN\">"));
  EXPECT_THAT(page, HasSubstr("模型还不能在 x 上运行。</h1>"));
  EXPECT_THAT(page, HasSubstr("gpu:0 上 2 / 3"));
  EXPECT_THAT(page, HasSubstr("1 个节点在主机上运行：a b"));
  EXPECT_THAT(page, HasSubstr("<code>unmoor scan &#39;of the nodes run there&#39;</code>"));
  EXPECT_THAT(page, HasSubstr("nobody knows"));
  EXPECT_THAT(page, HasSubstr("\"explained by rounding\":\"舍入可解释\""));
  EXPECT_THAT(render_report(data), Not(HasSubstr("id=\"words\"")));
  EXPECT_THROW(render_report(data, "fr"), Error);
}

TEST(Report, PlainPartInChineseIsTheGoldenOne) {
  EXPECT_EQ(static_part(render_report(json::parse(read_golden("page.json")), "zh")), read_golden("page.zh.html"));
}

TEST(Phrases, EveryCauseHasASentenceAndAnAdviceInChinese) {
  const Phrases phrases(report_words("en"), report_words("zh"));
  for (const auto& entry : causes::all_entries()) {
    EXPECT_TRUE(phrases.translated(fmt::format("The target {}.", entry.text))) << entry.id;
    EXPECT_TRUE(phrases.translated(fmt::format("The target {}, and {} (axis 1).", entry.text, entry.text))) << entry.id;
    EXPECT_TRUE(phrases.translated(entry.advice)) << entry.id;
  }
}

TEST(Phrases, HostileTextsTakeNoTime) {
  const Phrases phrases(report_words("en"), report_words("zh"));
  std::string nested;
  for (int i = 0; i < 60; ++i) nested += "x; it can be written as ";
  for (const std::string& text : {nested, std::string(2000, '('), std::string(1 << 20, ' '), std::string("{n} nodes")}) {
    const std::clock_t start = std::clock();
    EXPECT_FALSE(phrases.translated(text));
    EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 2);
  }
}

}  // namespace
}  // namespace unmoor
