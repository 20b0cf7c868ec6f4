#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// What a pickle describes, as data: nothing of it is run. Values name each other by number, so shared ones stay shared and circles
// do no harm to whoever does not walk them. Immutable; any thread.
class Pickle {
 public:
  using Id = uint32_t;
  enum class Kind : uint8_t {
    None,
    Bool,        // number
    Int,         // number
    LongInt,     // text: its bytes, the least first, where 8 do not hold it
    Float,       // real
    Text,        // text: UTF-8, or the bytes of a Python 2 string
    Bytes,       // text
    List,        // items
    Tuple,       // items
    Set,         // items
    Dict,        // items: key, value, key, value…; an OrderedDict is one too
    Global,      // text: "module name"
    Call,        // items: what is called, its argument tuple, and the state it is given, if any
    Persistent,  // items: the id of something that is stored beside the pickle
  };
  struct Value {
    Kind kind = Kind::None;
    int64_t number = 0;
    double real = 0;
    std::string text = {};
    std::vector<Id> items = {};
  };

  // Reads the first pickle of the bytes, of any protocol; `used` says how long it is. Globals that `allowed` does not take are refused
  // by name: whatever makes such a thing would run the file's code. Fails with InvalidModel on anything else that is no pickle of
  // plain data, on more than most_bytes and on more than most_values.
  using Allowed = bool (*)(std::string_view module, std::string_view name);
  static Pickle read(std::span<const std::byte> bytes, Allowed allowed);

  const Value& root() const { return values_[root_]; }
  Id root_id() const { return root_; }
  const Value& operator[](Id id) const { return values_[id]; }
  size_t size() const { return values_.size(); }
  size_t used() const { return used_; }  // Bytes.

  static constexpr size_t most_bytes = size_t{256} << 20;
  static constexpr size_t most_values = size_t{4} << 20;

 private:
  friend class PickleReader;
  std::vector<Value> values_;
  Id root_ = 0;
  size_t used_ = 0;
};

}  // namespace unmoor
