#include "unmoor/catalog/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

using nlohmann::json;

struct Imported {
  json ops;
  json types;
  std::vector<std::string> unread;
};

Imported imported(const std::string& text) {
  Imported result;
  ImportedOps into{&result.ops, &result.types};
  import_rows(read_table(text), into);
  result.unread = into.unread;
  return result;
}

const std::string csv =
    "Operator,Supported,Data types,Remarks\nAdd,yes,\"fp32, fp16\",\nConv,partial,fp32,\"2-D only, no "
    "\"\"SAME\"\"\"\nLoop,no,,\nTopK,,,\nGelu,maybe,,\n";
const std::string markdown =
    "Some words.\n\n| ONNX op | Status | Types |\n|---|:--:|---|\n| `Add` | ✅ | float32 / float16 |\n| Loop | ❌ | |\n\nMore | "
    "words.\n";
const std::string html =
    "<p>x</p><TABLE "
    "class=a><tr><th>Operator</th><th>Support</th></tr><tr><td><b>Add</b></td><td>Yes</td></tr><tr><td>Loop<td>not "
    "supported</tr></table>";

TEST(CatalogTable, comma_separated_values_with_quotes) {
  const Imported found = imported(csv);
  EXPECT_EQ(found.ops["Add"][0]["dtypes"]["T"], 0);
  EXPECT_EQ(found.types[0], json({"float16", "float32"}));
  EXPECT_EQ(found.ops["Conv"][0]["limits"][0]["text"], "2-D only, no \"SAME\"");
  EXPECT_EQ(found.ops["Loop"][0]["state"], "unsupported");
  EXPECT_FALSE(found.ops.contains("TopK"));  // An empty cell says nothing.
  ASSERT_EQ(found.unread.size(), 1U);
  EXPECT_NE(found.unread[0].find("Gelu"), std::string::npos);
}

TEST(CatalogTable, markdown_and_html) {
  for (const auto& text : {markdown, html}) {
    const Imported found = imported(text);
    EXPECT_EQ(found.ops.size(), 2U) << text;
    EXPECT_FALSE(found.ops["Add"][0].contains("state"));
    EXPECT_EQ(found.ops["Loop"][0]["state"], "unsupported");
    EXPECT_TRUE(found.unread.empty());
  }
}

TEST(CatalogTable, what_is_no_table_is_refused) {
  for (const char* text : {"", "Operator", "<table>", "<table><tr><th>Operator", "a,b\n1,2\n", "|\n|\n", "<table><tr><td"})
    EXPECT_THROW((void)imported(text), Error) << text;
}

}  // namespace
}  // namespace unmoor
