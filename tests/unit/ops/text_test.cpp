#include "unmoor/ops/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ops/one_call.h"

namespace unmoor {
namespace {

using test::refusal;
using test::result;
using test::run;
using test::text_result;
using test::whole_result;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string upper(std::string_view text, std::string_view locale = "") { return with_case(text, LetterCase::Upper, locale); }
std::string lower(std::string_view text, std::string_view locale = "") { return with_case(text, LetterCase::Lower, locale); }

TEST(LetterCase, maps_letters_of_all_scripts_one_to_one) {
  EXPECT_EQ(upper("é дa ς ß"), "É ДA Σ ß");
  EXPECT_EQ(lower("ÀÉÎ ДОМ Σ"), "àéî дом σ");
  EXPECT_EQ(upper("𐐨"), "𐐀");  // Beyond 16 bits.
}

TEST(LetterCase, follows_turkish_where_the_locale_is) {
  EXPECT_EQ(upper("istanbul", "tr_TR.UTF-8"), "İSTANBUL");
  EXPECT_EQ(lower("ISPARTA", "az"), "ısparta");
  EXPECT_EQ(upper("istanbul", "en_US"), "ISTANBUL");
  for (const char* locale : {"C", "POSIX", "de", "deu", "sr_RS@latin", "en-GB"}) EXPECT_EQ(upper("i", locale), "I") << locale;
  EXPECT_THROW(upper("i", "English"), Error);
}

TEST(LetterCase, refuses_what_is_no_utf8) {
  for (const char* broken : {"\xff", "\xc3", "a\xe2\x82", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_THROW(upper(broken), Error) << broken;
  }
  EXPECT_EQ(upper(""), "");
}

TEST(StringNormalizer, compares_without_case_unless_told) {
  EXPECT_THAT(text_result("StringNormalizer string[3]{Été,ÉTÉ,hiver} stopwords=[été]"), ElementsAre("hiver"));
  EXPECT_THAT(text_result("StringNormalizer string[3]{Été,été,hiver} stopwords=[été] is_case_sensitive=1"),
              ElementsAre("Été", "hiver"));
  EXPECT_THAT(
      text_result("StringNormalizer string[2]{Monday,monday} stopwords=[MONDAY] is_case_sensitive=1 case_change_action=UPPER"),
      ElementsAre("MONDAY", "MONDAY"));
}

TEST(StringNormalizer, keeps_one_empty_text_of_nothing) {
  EXPECT_THAT(text_result("StringNormalizer string[2]{a,A} stopwords=[a]"), ElementsAre(""));
  EXPECT_EQ(run("StringNormalizer string[1,2]{a,A} stopwords=[a]")[0].tensor().shape(), (Shape{1, 1}));
  EXPECT_THAT(text_result("StringNormalizer string[3]{\"\",a,b} stopwords=[a]"), ElementsAre("", "b"));
  EXPECT_THAT(refusal("StringNormalizer string[2,2] stopwords=[a]"), HasSubstr("[2,2], not [C] or [1,C]"));
  EXPECT_THAT(refusal("StringNormalizer string[2] case_change_action=TITLE"), HasSubstr("TITLE"));
}

TEST(StringSplit, takes_runs_of_blanks_as_one) {
  const auto out = run("StringSplit string[2]{\" a\xe3\x80\x80  b\tc \",\"   \"} outputs=2");
  EXPECT_THAT(out[0].tensor().strings(), ElementsAre("a", "b", "c", "", "", ""));
  EXPECT_THAT(integers(out[1].tensor()), ElementsAre(3, 0));
  EXPECT_EQ(out[0].tensor().shape(), (Shape{2, 3}));
}

TEST(StringSplit, keeps_empty_parts_between_delimiters) {
  EXPECT_THAT(text_result("StringSplit string[1]{-a--b-} delimiter=\"-\""), ElementsAre("", "a", "", "b", ""));
  EXPECT_THAT(text_result("StringSplit string[1]{aXXbXXc} delimiter=XX maxsplit=1"), ElementsAre("a", "bXXc"));
  EXPECT_THAT(text_result("StringSplit string[1]{\"\"} delimiter=x"), ElementsAre(""));
}

TEST(StringSplit, leaves_the_rest_after_the_last_split) {
  EXPECT_THAT(text_result("StringSplit string[1]{\"  a  b  c  \"} maxsplit=1"), ElementsAre("a", "b  c"));
  EXPECT_THAT(text_result("StringSplit string[1]{\"  a  b\"} maxsplit=0"), ElementsAre("a  b"));
}

TEST(RegexFullMatch, speaks_re2) {
  EXPECT_THAT(whole_result("RegexFullMatch string[3]{abc,xabc,abcx} pattern=\"abc\""), ElementsAre(1, 0, 0));
  EXPECT_THAT(whole_result("RegexFullMatch string[2]{éa,aa} pattern=\".a\""), ElementsAre(1, 1));
  EXPECT_THAT(refusal("RegexFullMatch string[1]{a} pattern=\"(a\""), HasSubstr("missing )"));
  EXPECT_THAT(refusal("RegexFullMatch string[1]{a} pattern=\"a(?=b)\""), HasSubstr("invalid perl operator"));
  EXPECT_THAT(refusal("RegexFullMatch string[1]{a}"), HasSubstr("'pattern' is missing"));
  // Exponential time in engines that go back and forth.
  const std::string many(200, 'a');
  EXPECT_THAT(whole_result(cat("RegexFullMatch string[1]{", many, "} pattern=\"(a*)*(a*)*b\"")), ElementsAre(0));
}

const std::string pool = " min_gram_length=1 max_gram_length=2 ngram_counts=[0,2] ngram_indexes=[3,0,1] pool_int64s=[5,6,5,6]";

TEST(TfIdfVectorizer, counts_words_once_and_pairs_at_every_skip) {
  EXPECT_THAT(result(cat("TfIdfVectorizer i64[4]{5,6,5,6} mode=TF max_skip_count=0", pool)), ElementsAre(2, 2, 0, 2));
  EXPECT_THAT(result(cat("TfIdfVectorizer i64[4]{5,6,5,6} mode=TF max_skip_count=2", pool)), ElementsAre(2, 3, 0, 2));
}

TEST(TfIdfVectorizer, weighs_by_place_in_the_pool) {
  const std::string weights = " max_skip_count=0 weights=[10,100,1000]";
  EXPECT_THAT(result(cat("TfIdfVectorizer i64[4]{5,6,5,6} mode=TFIDF", weights, pool)), ElementsAre(200, 2000, 0, 20));
  EXPECT_THAT(result(cat("TfIdfVectorizer i64[4]{5,6,5,6} mode=IDF", weights, pool)), ElementsAre(100, 1000, 0, 10));
}

TEST(TfIdfVectorizer, refuses_a_pool_that_does_not_fit) {
  const auto refused = [](const std::string& rest) {
    return refusal(cat("TfIdfVectorizer i64[1]{5} mode=TF max_skip_count=0 ", rest));
  };
  EXPECT_THAT(refused("min_gram_length=1 max_gram_length=1 ngram_counts=[0,9] ngram_indexes=[0] pool_int64s=[5]"),
              HasSubstr("ngram_counts has the value 9"));
  EXPECT_THAT(refused("min_gram_length=1 max_gram_length=2 ngram_counts=[0,0] ngram_indexes=[0] pool_int64s=[5]"),
              HasSubstr("2-grams from 0 to 1"));
  EXPECT_THAT(refused("min_gram_length=1 max_gram_length=1 ngram_counts=[0] ngram_indexes=[-1] pool_int64s=[5]"),
              HasSubstr("value -1"));
  EXPECT_THAT(refused("min_gram_length=1 max_gram_length=1 ngram_counts=[0] ngram_indexes=[0,1] pool_int64s=[5]"),
              HasSubstr("2 numbers for 1"));
  EXPECT_THAT(refused("min_gram_length=1 max_gram_length=1 ngram_counts=[0] ngram_indexes=[0] pool_strings=[a]"),
              HasSubstr("the pool is strings"));
  EXPECT_THAT(refused("min_gram_length=2 max_gram_length=1 ngram_counts=[0] ngram_indexes=[0] pool_int64s=[5]"),
              HasSubstr("max_gram_length is 1"));
}

}  // namespace
}  // namespace unmoor
