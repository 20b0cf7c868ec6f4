#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct zip;

namespace unmoor {

using ZipBytes = std::vector<std::byte>;

// A zip file, read entry by entry. No entry gives more bytes than it says, none may say more than its stored bytes can hold, and
// together they may not store more than the file has: entries that share their bytes cannot multiply them. One thread at a time.
class ZipReader {
 public:
  struct Entry {
    std::string name;     // As it stands in the file.
    uint64_t bytes = 0;   // Unpacked.
    uint64_t stored = 0;  // In the file.
  };

  // Fails with InvalidModel on what is no zip file or a damaged one, with Io on what cannot be read.
  explicit ZipReader(const std::string& path);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }  // In the order of the file.
  // The place of the entry of that name; no value if there is none, the first if there are two.
  const size_t* find(std::string_view name) const;
  // The whole entry. Fails with InvalidModel on a damaged one or one of more than `most` bytes, with OutOfMemory as check_memory does.
  std::shared_ptr<const ZipBytes> read(size_t place, uint64_t most = UINT64_MAX);

 private:
  struct Discard {
    void operator()(zip* archive) const;
  };

  std::string path_;
  std::unique_ptr<zip, Discard> archive_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> places_;
  uint64_t room_ = 0;  // What entries that are still to be read may have stored.
};

}  // namespace unmoor
