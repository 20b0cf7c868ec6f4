#pragma once

#include <memory>
#include <span>
#include <string>

namespace unmoor {

// A shared library opened at run time. Never closed: vendor libraries do not survive it. Immutable; any thread.
class Library {
 public:
  // The first of `names` that opens, or null with the loader's words for each in `reason`.
  static std::unique_ptr<Library> open(std::span<const char* const> names, std::string& reason);

  // Null if the library has no such symbol.
  void* symbol(const char* symbol_name) const;
  // The file the loader chose.
  std::string path() const;

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace unmoor
