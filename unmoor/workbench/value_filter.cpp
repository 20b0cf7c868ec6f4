#include "unmoor/workbench/value_filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "unmoor/workbench/result.h"

namespace unmoor {

bool matches_glob(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;  // The last one met, and where what it stands for ends so far.
  size_t resumed = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resumed = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resumed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool ValueFilter::takes(const std::string& name) {
  if (const auto known = answers_.find(name); known != answers_.end()) return known->second;
  const auto named = [&name](const std::string& pattern) { return pattern == name || matches_glob(pattern, name); };
  const bool matched = patterns_.empty() || std::ranges::any_of(patterns_, named);
  const bool taken = matched && matched_++ % every_ == 0;
  taken_ += taken ? 1 : 0;
  answers_[name] = taken;
  return taken;
}

std::string ValueFilter::text() const {
  std::string text;
  for (const std::string& pattern : patterns_) text += fmt::format("{}--values {}", text.empty() ? "" : " ", shell_word(pattern));
  if (every_ > 1) text += fmt::format("{}--every {}", text.empty() ? "" : " ", every_);
  return text;
}

}  // namespace unmoor
