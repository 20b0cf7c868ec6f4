#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace unmoor::gpu {

// Compiled kernels on disk, in the user's cache folder, found by the whole text that they depend on. Damaged, truncated and foreign
// files are never handed out. Any thread, any process.
class BinaryCache {
 public:
  // In `folder`, which is made if missing; without a folder nothing is kept.
  explicit BinaryCache(std::string folder, size_t most_bytes = size_t{256} << 20);

  std::optional<std::vector<std::byte>> find(const std::string& key) const;
  // A cache that cannot be written is no error: the kernel is compiled again next time.
  void store(const std::string& key, std::span<const std::byte> binary) const;
  // Removes the files unused for longest until the rest fits.
  void trim() const;

 private:
  std::string path_of(const std::string& key) const;

  std::string folder_;
  size_t most_bytes_;
};

}  // namespace unmoor::gpu
