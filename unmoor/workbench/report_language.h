#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// The languages that a page can be in, the tools' own first: "en", "zh".
inline constexpr const char* report_languages[] = {"en", "zh"};

// All words of the page in one of them (report/words*.json); made once. Fails with InvalidArgument on another language. Any thread.
const nlohmann::json& report_words(std::string_view language);

// The sentences that tools write, in another language. Each stands in the words under `said` by the same key in both languages, with
// marks for what is told: {x} is anything and stays as it is, {x#} a number, {x@} one word, {x*} another of these sentences. Immutable.
class Phrases {
 public:
  Phrases(const nlohmann::json& from, const nlohmann::json& to);  // Two files of words.

  // Empty if no sentence fits. Takes time linear in the text.
  std::optional<std::string> translated(std::string_view text) const { return translated(text, 0); }

 private:
  struct Mark {
    std::string name;
    char kind = ' ';
  };
  struct Form {
    std::vector<std::string> between;  // What stands before, between and behind the marks: one more than those.
    std::vector<Mark> marks;
  };
  struct Sentence {
    Form ours;
    Form theirs;
  };
  static Form parsed(const std::string& sentence);
  std::optional<std::string> translated(std::string_view text, int depth) const;
  std::optional<std::string> fitted(const Sentence& sentence, std::string_view text, int depth) const;

  std::vector<Sentence> sentences_;
};

// The data's head as HTML tells it: its sentences in the other language, names, files and commands as they are; of the parts only that
// they are there.
nlohmann::json spoken_head(const nlohmann::json& data, const Phrases& phrases);

// What a page in another language carries beside its data: the page's words, and under `said` every sentence of the data that has a
// translation.
nlohmann::json spoken_words(const nlohmann::json& data, const nlohmann::json& words, const Phrases& phrases);

}  // namespace unmoor
