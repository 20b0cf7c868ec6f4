#include "unmoor/formats/torch/pickle.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "unmoor/base/error.h"

namespace unmoor {

using Id = Pickle::Id;
using Kind = Pickle::Kind;

// A machine with a stack, marks on it and a memo, as Python's own; it makes values and calls nothing. Opcodes as in CPython's
// Lib/pickletools.py.
class PickleReader {
 public:
  PickleReader(std::span<const std::byte> bytes, Pickle::Allowed allowed) : bytes_(bytes), allowed_(allowed) {
    none_ = add({Kind::None});
    false_ = add({Kind::Bool, 0});
    true_ = add({Kind::Bool, 1});
  }

  Pickle run() {
    while (true) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      if (!constant(code) && !container(code) && !memory(code) && !object(code))
        broken("opcode ", static_cast<int>(code), " makes no plain data");
    }
    pickle_.root_ = pop();
    pickle_.used_ = at_;
    return std::move(pickle_);
  }

 private:
  template <class... What>
  [[noreturn]] void broken(const What&... what) const {
    fail(ErrorKind::InvalidModel, "the pickle breaks at byte ", at_, ": ", what...);
  }

  std::string_view take(size_t count) {
    if (count > bytes_.size() - at_) broken("it ends in the middle of a value");
    if (at_ + count > Pickle::most_bytes) broken("it is longer than ", Pickle::most_bytes, " bytes");
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, count);
    at_ += count;
    return text;
  }

  uint64_t number(size_t width) {
    const std::string_view text = take(width);
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    return value;
  }

  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) broken("a line does not end");
    return take(end + 1).substr(0, end);
  }

  template <class T>
  T parsed(std::string_view text) const {
    T value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size()) broken("'", text.substr(0, 40), "' is no number");
    return value;
  }

  Id add(Pickle::Value value) {
    if (pickle_.values_.size() >= Pickle::most_values) broken("it holds more than ", Pickle::most_values, " values");
    hold(value.items.size());
    pickle_.values_.push_back(std::move(value));
    return static_cast<Id>(pickle_.values_.size() - 1);
  }

  // Places in lists, on the stack and in the memo cost a byte or two of the file each: they are bounded as values are.
  void hold(size_t places) {
    held_ += places;
    if (held_ > 8 * Pickle::most_values) broken("it holds more than ", 8 * Pickle::most_values, " references to values");
  }

  void push(Id id) {
    hold(1);
    stack_.push_back(id);
  }
  void push(Pickle::Value value) { push(add(std::move(value))); }

  Id pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) broken("its stack is empty");
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }

  std::vector<Id> popped(size_t count) {
    std::vector<Id> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  std::vector<Id> to_mark() {
    if (marks_.empty()) broken("there is no mark");
    const auto start = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Id> items(start, stack_.end());
    stack_.erase(start, stack_.end());
    marks_.pop_back();
    return items;
  }

  // Adds to a list, a set or a dict; what is added to an object is a part of its state and counts as nothing else.
  void extend(Id target, const std::vector<Id>& items, bool in_pairs) {
    Pickle::Value& value = pickle_.values_[target];
    const bool fits = in_pairs ? value.kind == Kind::Dict : value.kind == Kind::List || value.kind == Kind::Set;
    if (value.kind == Kind::Call) return;
    if (!fits || (in_pairs && items.size() % 2 != 0)) broken("items are added to what holds none");
    hold(items.size());
    value.items.insert(value.items.end(), items.begin(), items.end());
  }

  void long_integer(std::string_view text) {
    if (text.size() > 8) return push({Kind::LongInt, 0, 0, std::string(text)});
    uint64_t value = 0;
    for (size_t i = 0; i < text.size(); ++i) value |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    const bool negative = !text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0;
    if (negative && text.size() < 8) value |= ~uint64_t{0} << (8 * text.size());
    push({Kind::Int, static_cast<int64_t>(value)});
  }

  void text(Kind kind, uint64_t count) {
    if (count > bytes_.size() - at_) broken("a text of ", count, " bytes is longer than the file");
    push({kind, 0, 0, std::string(take(count))});
  }

  // 'a', "a": as repr() writes a Python 2 string; escapes stay as they are.
  void quoted() {
    const std::string_view text = line();
    if (text.size() < 2 || text.front() != text.back()) broken("a string is not quoted");
    push({Kind::Text, 0, 0, std::string(text.substr(1, text.size() - 2))});
  }

  void plain_integer() {
    const std::string_view text = line();
    if (text == "00" || text == "01") return push(text == "01" ? true_ : false_);
    push({Kind::Int, parsed<int64_t>(text)});
  }

  bool constant(unsigned char code) {
    switch (code) {
      case 0x80: (void)take(1); return true;   // Protocol.
      case 0x95: (void)take(8); return true;   // Frame.
      case 'N': push(none_); return true;
      case 0x88: push(true_); return true;
      case 0x89: push(false_); return true;
      case 'I': plain_integer(); return true;
      case 'J': push({Kind::Int, static_cast<int32_t>(number(4))}); return true;
      case 'K': push({Kind::Int, static_cast<int64_t>(number(1))}); return true;
      case 'M': push({Kind::Int, static_cast<int64_t>(number(2))}); return true;
      case 'L': {
        std::string_view text = line();
        if (text.ends_with('L')) text.remove_suffix(1);
        push({Kind::Int, parsed<int64_t>(text)});
        return true;
      }
      case 0x8a: long_integer(take(number(1))); return true;
      case 0x8b: long_integer(take(number(4))); return true;
      case 'F': push({Kind::Float, 0, parsed<double>(line())}); return true;
      case 'G': push({Kind::Float, 0, std::bit_cast<double>(__builtin_bswap64(number(8)))}); return true;
      case 'S': quoted(); return true;
      case 'T': text(Kind::Text, number(4)); return true;
      case 'U': text(Kind::Text, number(1)); return true;
      case 'V': push({Kind::Text, 0, 0, std::string(line())}); return true;
      case 'X': text(Kind::Text, number(4)); return true;
      case 0x8c: text(Kind::Text, number(1)); return true;
      case 0x8d: text(Kind::Text, number(8)); return true;
      case 'B': text(Kind::Bytes, number(4)); return true;
      case 'C': text(Kind::Bytes, number(1)); return true;
      case 0x8e: text(Kind::Bytes, number(8)); return true;
      case 0x96: text(Kind::Bytes, number(8)); return true;
      default: return false;
    }
  }

  bool container(unsigned char code) {
    switch (code) {
      case '(': hold(1), marks_.push_back(stack_.size()); return true;
      case '0': (void)pop(); return true;
      case '1': (void)to_mark(); return true;
      case '2': {
        const Id top = pop();
        push(top);
        push(top);
        return true;
      }
      case ']': push({Kind::List}); return true;
      case ')': push({Kind::Tuple}); return true;
      case '}': push({Kind::Dict}); return true;
      case 0x8f: push({Kind::Set}); return true;
      case 't': push({Kind::Tuple, 0, 0, "", to_mark()}); return true;
      case 'l': push({Kind::List, 0, 0, "", to_mark()}); return true;
      case 0x91: push({Kind::Set, 0, 0, "", to_mark()}); return true;
      case 0x85: case 0x86: case 0x87: push({Kind::Tuple, 0, 0, "", popped(code - 0x84U)}); return true;
      case 'd': {
        auto items = to_mark();
        if (items.size() % 2 != 0) broken("a dict has a key without a value");
        push({Kind::Dict, 0, 0, "", std::move(items)});
        return true;
      }
      case 'a': { const auto items = popped(1); extend(top(), items, false); return true; }
      case 's': { const auto items = popped(2); extend(top(), items, true); return true; }
      case 'e': case 0x90: { const auto items = to_mark(); extend(top(), items, false); return true; }
      case 'u': { const auto items = to_mark(); extend(top(), items, true); return true; }
      default: return false;
    }
  }

  Id top() {
    const Id id = pop();
    push(id);
    return id;
  }

  void put(uint64_t place) {
    if (memo_.size() >= Pickle::most_values) broken("it keeps more than ", Pickle::most_values, " values");
    memo_[place] = top();
  }

  void get(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) broken("it asks for a value that it did not keep");
    push(found->second);
  }

  bool memory(unsigned char code) {
    switch (code) {
      case 'p': put(parsed<uint64_t>(line())); return true;
      case 'q': put(number(1)); return true;
      case 'r': put(number(4)); return true;
      case 0x94: put(memo_.size()); return true;
      case 'g': get(parsed<uint64_t>(line())); return true;
      case 'h': get(number(1)); return true;
      case 'j': get(number(4)); return true;
      default: return false;
    }
  }

  void global(std::string_view module, std::string_view name) {
    if (!allowed_(module, name)) {
      fail(ErrorKind::InvalidModel, "the file asks Python for '", module.substr(0, 100), ".", name.substr(0, 100),
           "', and that may run any code; Unmoor runs none and reads plain data and dense tensors alone: save a state_dict, or the program by "
           "torch.export");
    }
    push({Kind::Global, 0, 0, cat(module, " ", name)});
  }

  // What a call makes. The dicts of `collections` are dicts, also of the pairs or the dict that they are handed.
  void call(Id callable, Id arguments) {
    if (pickle_[callable].kind != Kind::Global) broken("it calls what is no name");
    if (pickle_[arguments].kind != Kind::Tuple) broken("it calls something without a tuple of arguments");
    if (!pickle_[callable].text.starts_with("collections ")) return push({Kind::Call, 0, 0, "", {callable, arguments}});
    Pickle::Value dict{Kind::Dict};
    const auto& given = pickle_[arguments].items;
    if (!given.empty() && pickle_[given[0]].kind == Kind::Dict) dict.items = pickle_[given[0]].items;
    if (!given.empty() && pickle_[given[0]].kind == Kind::List) {
      for (const Id pair : pickle_[given[0]].items) {
        if (pickle_[pair].items.size() != 2) broken("a dict is made of what is no pair");
        dict.items.insert(dict.items.end(), pickle_[pair].items.begin(), pickle_[pair].items.end());
      }
    }
    push(std::move(dict));
  }

  void build() {
    const Id state = pop();
    Pickle::Value& value = pickle_.values_[top()];
    if (value.kind == Kind::Call && value.items.size() == 2) value.items.push_back(state);
  }

  bool object(unsigned char code) {
    switch (code) {
      case 'c': {
        const std::string_view module = line();
        global(module, line());
        return true;
      }
      case 0x93: {
        const auto names = popped(2);
        if (pickle_[names[0]].kind != Kind::Text || pickle_[names[1]].kind != Kind::Text) broken("a name is no text");
        const std::string module = pickle_[names[0]].text;
        global(module, std::string(pickle_[names[1]].text));
        return true;
      }
      case 'R': case 0x81: {
        const auto parts = popped(2);
        call(parts[0], parts[1]);
        return true;
      }
      case 0x92: {
        const auto parts = popped(3);
        call(parts[0], parts[1]);
        return true;
      }
      case 'b': build(); return true;
      case 'Q': {
        const Id id = pop();
        push({Kind::Persistent, 0, 0, "", {id}});
        return true;
      }
      default: return false;
    }
  }

  std::span<const std::byte> bytes_;
  Pickle::Allowed allowed_;
  size_t at_ = 0;
  Pickle pickle_;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;
  size_t held_ = 0;
  std::unordered_map<uint64_t, Id> memo_;
  Id none_ = 0, true_ = 0, false_ = 0;
};

Pickle Pickle::read(std::span<const std::byte> bytes, Allowed allowed) { return PickleReader(bytes, allowed).run(); }

}  // namespace unmoor
