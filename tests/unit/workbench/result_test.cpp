#include "unmoor/workbench/result.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "unmoor/base/child.h"

namespace unmoor {
namespace {

const std::string replaced = "\xEF\xBF\xBD";

TEST(Printable, ordinary_text_of_any_script_stays) {
  for (const std::string text : {"", "a b\tc\nd", "späti", "日本語/レイヤー", "🚢"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, what_acts_on_a_terminal_is_replaced) {
  EXPECT_EQ(printable("\x1b[31mred"), replaced + "[31mred");
  EXPECT_EQ(printable("a\rb\x07\x7f"), "a" + replaced + "b" + replaced + replaced);
  EXPECT_EQ(printable("\xC2\x9b" "2J"), replaced + "2J") << "an escape sequence in one character";
  EXPECT_EQ(printable("a\xE2\x80\xAE" "b"), "a" + replaced + "b") << "text that turns around";
}

TEST(Printable, broken_utf8_is_replaced) {
  EXPECT_EQ(printable("a\xff" "b"), "a" + replaced + "b");
  EXPECT_EQ(printable("\xe6\x97"), replaced + replaced);
  EXPECT_EQ(printable("\xc0\x9b"), replaced + replaced) << "a control character written too long";
  EXPECT_EQ(printable("\xed\xa0\x80"), replaced + replaced + replaced) << "half a pair";
}

TEST(Shortened, names_stay_on_one_line) {
  EXPECT_EQ(shortened("a\nmatch: fine", 40), "a match: fine");
  EXPECT_EQ(shortened(std::string(100, 'x'), 20).size(), 20U);
}

TEST(Wrapped, lines_fit_80_columns_and_the_rest_is_indented) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "words ";
  const std::string lines = wrapped(text);
  size_t from = 0;
  for (size_t end = 0; (end = lines.find('\n', from)) != std::string::npos; from = end + 1) EXPECT_LE(end - from, 80U);
  EXPECT_NE(lines.find("\n    words"), std::string::npos);
  EXPECT_EQ(wrapped("short"), "short\n");
}

TEST(Measured, five_digits_are_kept_and_what_is_no_number_is_text) {
  EXPECT_EQ(measured(1.23456789).dump(), "1.2346");
  EXPECT_EQ(measured(123456789).dump(), "123460000.0");
  EXPECT_EQ(measured(-1.23456789e-30).dump(), "-1.2346e-30");
  EXPECT_EQ(measured(0).dump(), "0.0");
  EXPECT_EQ(measured(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(measured(-std::numeric_limits<double>::infinity()), "-inf");
}

// What a shell makes of a word.
std::string read_by_bash(const std::string& word) {
  Child child({"bash", "-c", "printf %s " + word});
  child.close_input();
  std::string text;
  std::byte next{};
  while (child.read({&next, 1}, 60)) text += static_cast<char>(next);
  return text;
}

TEST(ShellWord, a_shell_reads_back_exactly_the_text) {
  for (const std::string text : {"model.onnx", "my model.onnx", "it's", "'; rm -rf ~; '", "$(id) `id` \"x\" \\", "a\nb", "\x1b[31m'\\\x03", "späti", "*", "~"}) {
    EXPECT_EQ(read_by_bash(shell_word(text)), text) << shell_word(text);
  }
  EXPECT_EQ(shell_word("model.onnx"), "model.onnx");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("\x03").find('\x03'), std::string::npos) << "no control character is pasted";
}

}  // namespace
}  // namespace unmoor
