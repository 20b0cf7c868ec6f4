#include "unmoor/base/error.h"

#include <array>
#include <charconv>

namespace unmoor {

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidModel: return "invalid model";
    case ErrorKind::InvalidArgument: return "invalid argument";
    case ErrorKind::Unsupported: return "unsupported";
    case ErrorKind::Device: return "device";
    case ErrorKind::OutOfMemory: return "out of memory";
    case ErrorKind::Io: return "io";
    case ErrorKind::Internal: return "internal";
    case ErrorKind::Stopped: return "stopped";
  }
  return "unknown";
}

void Error::note(std::string_view where) {
  text_ += "\n  ";
  text_ += where;
}

namespace {

template <class T>
void append_number(std::string& text, T number) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

}  // namespace

void append_text(std::string& text, std::string_view part) { text.append(part); }
void append_text(std::string& text, double part) { append_number(text, part); }
void append_text(std::string& text, long long part) { append_number(text, part); }
void append_text(std::string& text, unsigned long long part) { append_number(text, part); }

}  // namespace unmoor
