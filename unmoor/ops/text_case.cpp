#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <cwchar>
#include <locale>

#include "unmoor/base/error.h"
#include "unmoor/ops/text.h"

namespace unmoor {
namespace {

using Utf8 = std::codecvt<char32_t, char8_t, std::mbstate_t>;
static_assert(sizeof(wchar_t) == sizeof(char32_t), "towupper_l takes whole code points");

const Utf8& facet() { return std::use_facet<Utf8>(std::locale::classic()); }

// The C library's Unicode tables, which need no locale package. Never freed.
locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr)
    fail(ErrorKind::Unsupported, "letters change case by the C library's locale C.UTF-8, which this system does not have");
  return locale;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The language of language[_TERRITORY][.codeset][@modifier]: "C", "POSIX" or two or three letters.
std::string_view language_of(std::string_view locale) {
  const auto language = locale.substr(0, locale.find_first_of("_-.@"));
  const bool is_code = (language.size() == 2 || language.size() == 3) && std::ranges::all_of(language, is_letter);
  if (!is_code && !language.empty() && language != "C" && language != "POSIX") {
    fail(ErrorKind::InvalidArgument, "'", locale, "' is no name of a locale, such as en_US");
  }
  return language;
}

constexpr char32_t dotted_capital = 0x130;  // İ
constexpr char32_t dotless_small = 0x131;   // ı

char32_t mapped(char32_t point, LetterCase letter_case, bool turkic, locale_t locale) {
  if (letter_case == LetterCase::Upper) {
    if (turkic && point == U'i') return dotted_capital;
    return static_cast<char32_t>(towupper_l(static_cast<wint_t>(point), locale));
  }
  if (turkic && point == U'I') return dotless_small;
  return static_cast<char32_t>(towlower_l(static_cast<wint_t>(point), locale));
}

}  // namespace

std::u32string code_points(std::string_view text) {
  std::u32string points(text.size(), U'\0');
  std::u8string bytes(text.begin(), text.end());
  std::mbstate_t state{};
  const char8_t* read = bytes.data();
  char32_t* written = points.data();
  const auto result =
      facet().in(state, read, bytes.data() + bytes.size(), read, points.data(), points.data() + points.size(), written);
  if (result != std::codecvt_base::ok && !text.empty()) {
    fail(ErrorKind::InvalidArgument, "a text is no UTF-8: byte ", read - bytes.data(), " of ", bytes.size(),
         " begins no character");
  }
  points.resize(static_cast<size_t>(written - points.data()));
  // The library lets halves of UTF-16 pairs pass.
  if (std::ranges::any_of(points, [](char32_t point) { return point >= 0xd800 && point <= 0xdfff; })) {
    fail(ErrorKind::InvalidArgument, "a text is no UTF-8: it holds a surrogate");
  }
  return points;
}

std::string utf8(std::u32string_view points) {
  std::u8string bytes(points.size() * 4, u8'\0');
  std::mbstate_t state{};
  const char32_t* read = points.data();
  char8_t* written = bytes.data();
  const auto result =
      facet().out(state, read, points.data() + points.size(), read, bytes.data(), bytes.data() + bytes.size(), written);
  if (result != std::codecvt_base::ok && !points.empty()) fail(ErrorKind::Internal, "a code point has no UTF-8");
  bytes.resize(static_cast<size_t>(written - bytes.data()));
  return {bytes.begin(), bytes.end()};
}

std::string with_case(std::string_view text, LetterCase letter_case, std::string_view locale) {
  const auto language = language_of(locale);
  const bool turkic = language == "tr" || language == "az";
  const locale_t tables = unicode_locale();
  std::u32string points = code_points(text);
  for (char32_t& point : points) point = mapped(point, letter_case, turkic, tables);
  return utf8(points);
}

}  // namespace unmoor
