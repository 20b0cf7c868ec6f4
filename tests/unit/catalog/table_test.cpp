#include "unmoor/catalog/table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
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

TEST(CatalogTable, element_types_are_spelled_as_the_catalogue_does_or_not_read) {
  const Imported found = imported(
      "| Operator | Supported data types |\n|---|---|\n| Add | tensor(float), tensor(float16) |\n| Abs | N/A |\n| Neg | all |\n"
      "| SequenceAt | seq(tensor(int64)) |\n| Relu | floating point |\n| Mul | T: fp32 |\n| Exp | f32/bf16 |\n");
  EXPECT_EQ(found.types.at(found.ops["Add"][0]["dtypes"]["T"].get<size_t>()), json({"float16", "float32"}));
  EXPECT_EQ(found.types.at(found.ops["SequenceAt"][0]["dtypes"]["T"].get<size_t>()), json({"seq(int64)"}));
  EXPECT_EQ(found.types.at(found.ops["Exp"][0]["dtypes"]["T"].get<size_t>()), json({"bfloat16", "float32"}));
  for (const char* op : {"Abs", "Neg"}) EXPECT_FALSE(found.ops[op][0].contains("dtypes")) << op;
  EXPECT_EQ(found.unread.size(), 2U);
}

TEST(CatalogTable, opsets_are_numbers_ranges_and_lists) {
  const Imported found = imported(
      "Op type,Since opset\nA,7-13\nB,9+\nC,\"1, 6, 13\"\nD,opset 11\nE,>= 10\nF,N/A\nG,13-7\nH,1.2\nI,new\nJ,7 \xE2\x80\x93 13\n");
  EXPECT_EQ(found.ops["A"][0], json({{"since", 7}, {"until", 13}}));
  EXPECT_EQ(found.ops["J"][0], json({{"since", 7}, {"until", 13}}));
  EXPECT_EQ(found.ops["B"][0], json({{"since", 9}}));
  EXPECT_EQ(found.ops["C"][0], json({{"since", 1}}));
  EXPECT_EQ(found.ops["D"][0], json({{"since", 11}}));
  EXPECT_EQ(found.ops["E"][0], json({{"since", 10}}));
  EXPECT_EQ(found.ops["F"][0], json({{"since", 1}}));
  for (const char* op : {"G", "H", "I"}) EXPECT_FALSE(found.ops.contains(op)) << op;
  EXPECT_EQ(found.unread.size(), 3U);
}

TEST(CatalogTable, the_head_tells_the_separator) {
  const Imported commas = imported("Operator,Types\nAdd,fp32; fp16\n");
  EXPECT_EQ(commas.types, json::array({json::array({"float16", "float32"})}));
  const Imported semicolons = imported("Operator;Types;Remarks\nAdd;fp32, fp16;a, b\n");
  EXPECT_EQ(semicolons.ops["Add"][0]["limits"][0]["text"], "a, b");
  EXPECT_EQ(semicolons.types, json::array({json::array({"float16", "float32"})}));
  EXPECT_EQ(imported("Operator\tTypes\nAdd\tfp32, fp16; bf16\n").types[0].size(), 3U);
}

TEST(CatalogTable, heads_are_read_by_their_words) {
  const Imported support = imported("Operator name,Operator support,Supported opset,Supported data types\nAdd,no,7,fp32\n");
  EXPECT_EQ(support.ops["Add"][0]["state"], "unsupported");
  EXPECT_EQ(support.ops["Add"][0]["since"], 7);
  EXPECT_EQ(imported("Supported operators,Operator data types\nAdd,fp16\n").types, json({{"float16"}}));
  EXPECT_THROW((void)imported("Operator,FP32 support,FP16 support\nAdd,yes,no\n"), Error);
  EXPECT_THROW((void)imported("<table><tr><th colspan=\"2\">Operator<th>Types<tr><td>Add<td>x<td>fp32</table>"), Error);
}

TEST(CatalogTable, marks_that_may_mean_either_are_not_guessed) {
  EXPECT_TRUE(imported("Operator,Support\nAdd,x\nMul,\n").ops.contains("Add"));  // A list of what there is.
  const Imported mixed = imported("Operator,Support\nAdd,x\nMul,yes\nDiv,-\nExp,N/A\n");
  EXPECT_EQ(mixed.ops.size(), 1U);
  EXPECT_EQ(mixed.unread.size(), 1U);
}

TEST(CatalogTable, a_large_table_is_read_in_the_time_that_its_size_takes) {
  const auto seconds = [](const std::string& text) {
    const auto start = std::chrono::steady_clock::now();
    (void)imported(text);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const std::vector<std::string> names{"float32", "float16", "bfloat16", "float64", "bool",  "string", "int8",      "int16",
                                       "int32",   "int64",   "uint8",    "uint16",  "int4", "uint4",  "complex64", "uint64"};
  const auto sets = [&](size_t rows) {  // Each row has a set of its own.
    std::string text = "Operator,Types\n";
    for (size_t i = 1; i <= rows; ++i) {
      text += fmt::format("Op{},\"", i);
      for (size_t bit = 0; bit < names.size(); ++bit) text += (i >> bit & 1) != 0 ? names[bit] + " " : "";
      text += "\"\n";
    }
    return text;
  };
  EXPECT_LT(seconds(sets(32'000)), 5);  // A search through all the sets before takes minutes.
  std::string quotes = "Operator,Notes\nAdd,a";
  quotes.append(1 << 20, '"');
  EXPECT_LT(seconds(quotes), 5);
  std::string entities = "<table><tr><th>Operator<th>Notes<tr><td>Add<td>";
  for (int i = 0; i < 200'000; ++i) entities += "&nbsp;&lt;";
  EXPECT_LT(seconds(entities), 5);
}

TEST(CatalogTable, what_is_no_table_is_refused) {
  for (const char* text : {"", "Operator", "<table>", "<table><tr><th>Operator", "a,b\n1,2\n", "|\n|\n", "<table><tr><td"})
    EXPECT_THROW((void)imported(text), Error) << text;
}

}  // namespace
}  // namespace unmoor
