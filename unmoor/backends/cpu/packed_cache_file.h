#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unmoor/base/fast_hash.h"
#include "unmoor/base/threads.h"

namespace unmoor::cpu {

// A file of packed weights, mapped read-only: a header and a table with a checksum, then the weights, each at a page of its own
// and with a checksum. It is written once under another name and never changed after. Immutable; any thread.
class PackedFile {
 public:
  struct Weights {
    FastHash key;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    FastHash check;
  };

  // Null, and `problem` says why, if the file is not this user's alone to write, is not whole, or is of another kind than `kind`.
  static std::shared_ptr<const PackedFile> open(const std::string& path, FastHash kind, std::string& problem);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const Weights> table() const { return table_; }
  // Empty if they are damaged. Reads them all, with the pool's threads.
  std::span<const std::byte> read(const Weights& weights, ThreadPool& pool) const;

 private:
  PackedFile() = default;

  std::string path_;
  std::vector<Weights> table_;
  std::span<const std::byte> mapped_;
};

struct WeightsToWrite {
  FastHash key;
  std::span<const std::byte> bytes;
};
// What such a file takes.
uint64_t packed_file_bytes(std::span<const WeightsToWrite> weights);
// Writes it; asks between pieces whether to go on. Empty, or why it was not done: then nothing is left. The path must be new.
std::string write_packed_file(const std::string& path, FastHash kind, std::span<const WeightsToWrite> weights,
                              const std::function<bool()>& goes_on);

// The same for every number of threads.
FastHash hash_in_pieces(std::span<const std::byte> bytes, ThreadPool* pool);

}  // namespace unmoor::cpu
