#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unmoor/ops/cases.h"

namespace unmoor {

// The words of a case text. Blanks inside quotes, brackets and braces do not separate.
std::vector<std::string> words_of(std::string_view text);
// `text` cut at commas outside of quotes, brackets and braces.
std::vector<std::string> items_of(std::string_view text);
// True for "key=value".
bool is_attribute_word(std::string_view word);

// Reads one word that has no alternatives and no `T`. All fail with InvalidArgument, quoting the word.
Case::Input parse_input(std::string_view word);
// `like` is the operator's default, which settles integer or float; null if it has none.
Attribute parse_attribute_value(std::string_view value, const Attribute* like);

}  // namespace unmoor
