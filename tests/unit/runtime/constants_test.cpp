#include "unmoor/runtime/constants.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor {
namespace {

constexpr size_t page = 4096;

// Pages that this process has mapped, whatever the system has in its cache.
size_t resident_pages(const std::byte* from, size_t count) {
  const int file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  size_t resident = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t entry = 0;
    const auto at = static_cast<off_t>((reinterpret_cast<uintptr_t>(from) / page + i) * sizeof entry);
    if (::pread(file, &entry, sizeof entry, at) == sizeof entry) resident += entry >> 63;
  }
  ::close(file);
  return resident;
}

TEST(TensorBuffer, what_an_aligned_copy_was_made_of_leaves_memory) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/weights");
  write_file(path, std::string(64 * page, 'x'));
  const auto file = MappedFile::open(path);
  const auto view = [&](size_t offset) {
    const TensorType type{DType::F32, {static_cast<int64_t>(60 * page / sizeof(float))}};
    return Tensor::view(type, file->bytes().subspan(offset, type.bytes()), file);
  };
  TensorBuffer in_place(view(page));
  EXPECT_EQ(in_place.host(), file->bytes().data() + page);
  TensorBuffer copied(view(page + 1));
  EXPECT_NE(copied.host(), file->bytes().data() + page + 1);
  EXPECT_EQ(copied.host()[5], std::byte{'x'});
  EXPECT_EQ(resident_pages(file->bytes().data() + 2 * page, 58), 0U);
  EXPECT_EQ(file->bytes()[5 * page], std::byte{'x'});  // It comes back.
}

}  // namespace
}  // namespace unmoor
