#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace unmoor {

// The values used last, at most `limit` of them; whichever was not used for longest goes first. For a few dozen: they are searched in order.
// One thread at a time.
template <class Key, class Value>
class Recent {
 public:
  explicit Recent(size_t limit) : limit_(limit) {}

  // Null if it is not there (any more); valid until the next call.
  Value* find(const Key& key) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&key](const auto& entry) { return entry.first == key; });
    if (found == entries_.end()) return nullptr;
    std::rotate(found, found + 1, entries_.end());
    return &entries_.back().second;
  }
  Value& put(Key key, Value value) {
    if (entries_.size() >= limit_) entries_.erase(entries_.begin());
    entries_.emplace_back(std::move(key), std::move(value));
    return entries_.back().second;
  }
  const std::vector<std::pair<Key, Value>>& entries() const { return entries_; }

 private:
  size_t limit_;
  std::vector<std::pair<Key, Value>> entries_;  // The one used last at the end.
};

}  // namespace unmoor
