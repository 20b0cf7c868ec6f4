#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

struct stat;

namespace unmoor {

// What tells one content of one file from every other, as far as the file system says: it changes with every write.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;  // Of the inode: nobody can set this one back.

  bool operator==(const FileIdentity&) const = default;
};
FileIdentity identity_of(const struct stat& status);

// Where bytes lie in a file that a MappedFile maps.
struct FilePlace {
  FileIdentity file;
  size_t offset = 0;
  // The file was changed shortly before it was mapped: its times may be too coarse to tell the next change from that one.
  bool is_fresh = false;
};

// Both may be called from any thread, while the MappedFile of these bytes lives. Empty where they are in no such file.
std::optional<FilePlace> place_in_file(std::span<const std::byte> bytes);
// Gives the memory of those pages back that lie wholly in these bytes, if they are of a MappedFile: whoever reads them again gets
// them from the file again. Bytes in other memory stay as they are.
void release_file_pages(std::span<const std::byte> bytes);

// For MappedFile: what it maps, while it does.
void note_mapping(std::span<const std::byte> bytes, const FileIdentity& file);
void forget_mapping(std::span<const std::byte> bytes);

}  // namespace unmoor
