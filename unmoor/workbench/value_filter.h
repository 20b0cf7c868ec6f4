#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// Whether a text is what a pattern says: * stands for any text, ? for one byte, everything else for itself. Takes at most the
// product of their lengths.
bool matches_glob(std::string_view pattern, std::string_view text);

// Which values of a run are looked at: of those that a pattern names, the first and every n-th after it, in the order in which
// they are asked for. A name is answered the same whenever it is asked again. One thread at a time.
class ValueFilter {
 public:
  ValueFilter() = default;  // All.
  // No pattern: all names. `every` is 1 or more.
  ValueFilter(std::vector<std::string> patterns, size_t every) : patterns_(std::move(patterns)), every_(every) {}

  bool takes(const std::string& name);
  bool takes_all() const { return patterns_.empty() && every_ == 1; }
  size_t asked() const { return answers_.size(); }  // Names so far, and those of them that were taken.
  size_t taken() const { return taken_; }
  std::string text() const;  // "--values 'a*' --every 3"

 private:
  std::vector<std::string> patterns_;
  size_t every_ = 1;
  std::map<std::string, bool, std::less<>> answers_;
  size_t matched_ = 0;
  size_t taken_ = 0;
};

}  // namespace unmoor
