#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "unmoor/backends/cpu/packed_cache_file.h"
#include "unmoor/hal/device.h"

namespace unmoor::cpu {

// Weights as kernels packed them, in files of the user's cache folder: whoever opens the same model next maps them.
// docs/decisions/weights-cache.md says what names them and which files are not believed. Any trouble with it only means that
// weights are packed again. Any thread.
class PackedCache {
 public:
  struct Settings {
    uint64_t most_bytes = uint64_t{8} << 30;  // Of all files; those used longest ago go first.
    std::string folder = {};                  // Where its own folder lies. Empty: the user's cache folder.
  };
  // Below these a file costs more than packing again.
  static constexpr size_t least_weights = size_t{64} << 10;
  static constexpr size_t least_file = size_t{4} << 20;

  // "off" (nothing), "on", or how much all files may take: "2G". Fails with InvalidArgument on other text.
  static std::optional<Settings> settings_of(const std::string& text);

  PackedCache(Settings settings, std::shared_ptr<ThreadPool> pool);
  // Writes what was to be kept, unless that takes seconds.
  ~PackedCache();
  PackedCache(const PackedCache&) = delete;
  PackedCache& operator=(const PackedCache&) = delete;

  struct Answer {
    std::shared_ptr<Buffer> packed;  // Read-only, and shared with its file's mapping. Null: to be packed.
    std::optional<FastHash> key;     // To keep what is packed under. None: not to be kept.
  };
  // `constant` as packed in this way into so many bytes.
  Answer find(std::span<const std::byte> constant, const std::string& kind, size_t bytes);
  struct Item {
    FastHash key;
    std::shared_ptr<Buffer> packed;  // Held until it is written.
  };
  // Writes them as one file, soon and in the background, if they are large enough together.
  void keep(std::vector<Item> items);

  // What it did, in a sentence; empty if nothing.
  std::string note() const;

 private:
  struct Place {
    std::shared_ptr<const PackedFile> file;  // Shared with the buffers that look into it.
    PackedFile::Weights weights;
  };
  using Items = std::vector<Item>;

  std::optional<FastHash> key_of(std::span<const std::byte> constant, const std::string& kind, size_t bytes);
  void look_into_folder();
  void mark_used(const std::string& path);
  void complain(const std::string& what);
  void write_waiting();
  std::string write(const Items& items, const std::string& folder) const;  // Empty, or why not.
  bool goes_on() const;

  const Settings settings_;
  const std::shared_ptr<ThreadPool> pool_;  // The device's.
  mutable std::mutex mutex_;                // Of all below.
  bool looked_ = false;                     // Into the folder, since the last plan.
  std::string folder_;                      // Empty: there is none to be used.
  std::map<FastHash, Place> known_;
  std::set<std::string> files_;  // Opened, or not to be believed.
  std::set<std::string> used_;
  size_t found_bytes_ = 0;
  size_t packed_bytes_ = 0;
  std::string problem_;
  std::condition_variable wake_;
  Items waiting_;
  std::thread writer_;
  std::atomic<bool> ending_{false};
  std::chrono::steady_clock::time_point deadline_;  // Set before ending_.
};

}  // namespace unmoor::cpu
