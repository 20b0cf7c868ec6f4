#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// Parts of the text family.
void add_string_normalizer(OpSet& ops);
void add_regex_full_match(OpSet& ops);
void add_tf_idf_vectorizer(OpSet& ops);
void add_contrib_tokenizer(OpSet& ops);  // com.microsoft: Tokenizer.

// UTF-8 as code points, and back. Fails with InvalidArgument on bytes that are no UTF-8.
std::u32string code_points(std::string_view text);
std::string utf8(std::u32string_view points);

// How letters change case.
enum class LetterCase : uint8_t { Lower, Upper };
// Unicode's one-to-one mapping, of UTF-8 text. `locale` is a name such as "en_US" or "tr_TR.UTF-8", or empty; Turkish and Azeri
// pair i with İ and ı with I. Fails with InvalidArgument on bytes that are no UTF-8, and on what is no name of a locale.
std::string with_case(std::string_view text, LetterCase letter_case, std::string_view locale);

}  // namespace unmoor
