#include "unmoor/base/demangle.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

constexpr size_t longest = 512;
constexpr size_t most_references = 24;  // k references back make at most 3^(k/3) times the text: here some megabytes.

bool is_symbol_letter(char each) { return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_' || each == '.' || each == '$'; }

// How many parts of a mangled name may stand for earlier parts, or more: S_, S0_, T_, and whatever looks like one.
size_t references(std::string_view symbol) {
  size_t count = 0;
  for (size_t i = 1; i < symbol.size(); ++i) {
    const auto before = static_cast<unsigned char>(symbol[i - 1]);
    if (symbol[i] == '_' && (std::isupper(before) != 0 || std::isdigit(before) != 0)) ++count;
  }
  return count;
}

// The symbol as a person writes it; empty if it is none.
std::string plain_name(const std::string& symbol) {
  if (symbol.size() > longest || references(symbol) > most_references) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && name != nullptr ? name.get() : "";
}

}  // namespace

std::string demangled(std::string_view message) {
  std::string result;
  for (size_t at = 0; at < message.size();) {
    const bool begins = message.substr(at).starts_with("_Z") && (at == 0 || !is_symbol_letter(message[at - 1]));
    if (!begins) {
      result += message[at++];
      continue;
    }
    size_t end = at;
    while (end < message.size() && is_symbol_letter(message[end])) ++end;
    const std::string symbol(message.substr(at, end - at));
    const std::string name = plain_name(symbol);
    result += name.empty() ? symbol : cat(name, " [", symbol, "]");
    at = end;
  }
  return result;
}

}  // namespace unmoor
