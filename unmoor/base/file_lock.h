#pragma once

#include <optional>
#include <string>

namespace unmoor {

// A file that one holder at a time locks, among all threads and processes of the machine that ask. The file stays when the lock
// goes. One thread.
class FileLock {
 public:
  // Makes the file, for its owner alone, if it is missing. Nothing if somebody else holds it, or if it cannot be locked here.
  static std::optional<FileLock> try_lock(const std::string& path);

  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int file) : file_(file) {}

  int file_;
};

}  // namespace unmoor
