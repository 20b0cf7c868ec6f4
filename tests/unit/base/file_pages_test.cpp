#include "unmoor/base/file_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor {
namespace {

constexpr size_t page = 4096;

size_t resident_pages(std::span<const std::byte> bytes) {
  const auto start = reinterpret_cast<uintptr_t>(bytes.data());
  size_t count = 0;
  // What this process has mapped, not what the system has in its cache: mincore tells the latter.
  const int file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  for (uintptr_t at = start / page; at * page < start + bytes.size(); ++at) {
    uint64_t entry = 0;
    if (::pread(file, &entry, sizeof entry, static_cast<off_t>(at * sizeof entry)) != sizeof entry)
      ADD_FAILURE() << "no page map";
    count += entry >> 63;
  }
  ::close(file);
  return count;
}

size_t sum_of(std::span<const std::byte> bytes) {
  size_t sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<size_t>(byte);
  return sum;
}

TEST(FilePages, bytes_of_a_mapped_file_know_their_place_until_it_is_unmapped) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a");
  write_file(path, std::string(3 * page, 'x'));
  auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const auto place = place_in_file(bytes.subspan(100, 50));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->offset, 100U);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(place->file, identity_of(status));
  EXPECT_TRUE(place->is_fresh);  // It was written just now.
  EXPECT_FALSE(place_in_file(bytes.subspan(10, 0)));
  EXPECT_FALSE(place_in_file({bytes.data() + 10, bytes.size()}));  // Not wholly inside.
  file = nullptr;
  EXPECT_FALSE(place_in_file({bytes.data() + 100, 50}));
}

TEST(FilePages, a_file_that_is_written_again_is_another_one) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a");
  write_file(path, "first");
  const auto first = MappedFile::open(path);
  write_file(path, "other");
  const auto other = MappedFile::open(path);
  EXPECT_FALSE(place_in_file(first->bytes())->file == place_in_file(other->bytes())->file);
}

TEST(FilePages, released_pages_leave_memory_and_come_back_when_they_are_read) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a");
  write_file(path, std::string(64 * page, 'x'));
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const size_t sum = sum_of(bytes);
  EXPECT_EQ(resident_pages(bytes), 64U);
  release_file_pages(bytes.subspan(100, 10 * page));  // The pages at both ends hold other bytes, too.
  EXPECT_EQ(resident_pages(bytes), 64U - 9);
  EXPECT_EQ(sum_of(bytes), sum);
}

TEST(FilePages, memory_that_is_no_file_keeps_what_it_holds) {
  std::vector<std::byte> memory(64 * page, std::byte{7});
  EXPECT_FALSE(place_in_file(memory));
  release_file_pages(memory);
  EXPECT_EQ(sum_of(memory), 7 * memory.size());
}

}  // namespace
}  // namespace unmoor
