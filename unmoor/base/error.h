#pragma once

#include <concepts>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace unmoor {

enum class ErrorKind {
  InvalidModel,     // A file that is not what it should be.
  InvalidArgument,  // A request that makes no sense: a wrong shape, an unknown name.
  Unsupported,      // Meaningful, but nothing here can do it.
  Device,           // A device, driver or library that is missing or failed.
  OutOfMemory,
  Io,
  Internal,
  Stopped,          // Somebody asked for the end: see stop.h.
};

std::string_view name(ErrorKind kind);

// The one exception type. Layers add notes as it passes, innermost first.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  ErrorKind kind() const { return kind_; }
  const char* what() const noexcept override { return text_.c_str(); }
  // Appends where it happened, as in "in Conv 'conv_3'".
  void note(std::string_view where);

 private:
  ErrorKind kind_;
  std::string text_;
};

// How `cat` writes a value. Other types join in with `std::string to_text(const T&)` in their namespace.
void append_text(std::string& text, std::string_view part);
void append_text(std::string& text, double part);
void append_text(std::string& text, long long part);
void append_text(std::string& text, unsigned long long part);

// Joins its arguments into one text.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string text;
  const auto add = [&text](const auto& part) {
    using T = std::decay_t<decltype(part)>;
    if constexpr (std::is_same_v<T, char>) {
      text += part;
    } else if constexpr (std::is_same_v<T, bool>) {
      text += part ? "true" : "false";
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      append_text(text, std::string_view(part));
    } else if constexpr (std::is_floating_point_v<T>) {
      append_text(text, static_cast<double>(part));
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      append_text(text, static_cast<long long>(part));
    } else if constexpr (std::is_integral_v<T>) {
      append_text(text, static_cast<unsigned long long>(part));
    } else {
      append_text(text, std::string_view(to_text(part)));
    }
  };
  (add(parts), ...);
  return text;
}

template <class... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, cat(parts...));
}

}  // namespace unmoor
