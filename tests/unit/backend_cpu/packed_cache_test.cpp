#include "unmoor/backends/cpu/packed_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>

#include "unmoor/backends/cpu/packed_cache_folder.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/file_lock.h"
#include "unmoor/base/stop.h"
#include "unmoor/hal/host.h"

namespace unmoor::test {
namespace {

namespace fs = std::filesystem;
using cpu::PackedCache;

constexpr size_t weights_bytes = PackedCache::least_file / 2;  // Two of them make a file.

std::vector<std::byte> constant_of(uint8_t value) {
  std::vector<std::byte> bytes(5000, std::byte{value});
  for (size_t i = 0; i < bytes.size(); i += 3) bytes[i] = std::byte(i % 251);
  return bytes;
}

std::shared_ptr<Buffer> packed_of(uint8_t value, size_t bytes = weights_bytes) {
  auto buffer = make_host_buffer(bytes);
  for (size_t i = 0; i < bytes; ++i) buffer->host()[i] = std::byte(static_cast<uint8_t>(i * 7 + value));
  return buffer;
}

bool holds(const std::shared_ptr<Buffer>& found, uint8_t value) {
  const auto wanted = packed_of(value);
  return found != nullptr && found->bytes() == wanted->bytes() &&
         std::memcmp(found->host(), wanted->host(), wanted->bytes()) == 0;
}

class PackedCacheTest : public testing::Test {
 protected:
  std::shared_ptr<PackedCache> open(uint64_t most_bytes = uint64_t{1} << 30) const {
    return std::make_shared<PackedCache>(PackedCache::Settings{most_bytes, folder_.path()}, std::make_shared<ThreadPool>(2));
  }
  // Packs these, as a plan does, and waits until they are written.
  void fill(const std::vector<uint8_t>& values, uint64_t most_bytes = uint64_t{1} << 30) const {
    const auto cache = open(most_bytes);
    std::vector<PackedCache::Item> items;
    for (const uint8_t value : values) {
      const auto answer = cache->find(constant_of(value), "kind", weights_bytes);
      EXPECT_TRUE(answer.key);
      EXPECT_EQ(answer.packed, nullptr);
      items.push_back({*answer.key, packed_of(value)});
    }
    cache->keep(std::move(items));
  }
  std::shared_ptr<Buffer> found(uint8_t value) const { return open()->find(constant_of(value), "kind", weights_bytes).packed; }
  std::vector<std::string> files() const { return cpu::weights_files(cat(folder_.path(), "/weights"), ""); }
  std::string only_file() const {
    const auto all = files();
    EXPECT_EQ(all.size(), 1U);
    return all.at(0);
  }
  std::string note_after_looking() const {
    const auto cache = open();
    (void)cache->find(constant_of(1), "kind", weights_bytes);
    return cache->note();
  }

  TemporaryFolder folder_;
};

void flip_byte(const std::string& path, size_t at) {
  const int file = ::open(path.c_str(), O_RDWR);
  uint8_t byte = 0;
  ASSERT_EQ(::pread(file, &byte, 1, static_cast<off_t>(at)), 1);
  byte ^= 1;
  ASSERT_EQ(::pwrite(file, &byte, 1, static_cast<off_t>(at)), 1);
  ::close(file);
}

TEST_F(PackedCacheTest, what_one_kept_the_next_finds) {
  fill({1, 2});
  EXPECT_EQ(files().size(), 1U);
  const auto first = found(1);
  EXPECT_TRUE(holds(first, 1));
  EXPECT_TRUE(holds(found(2), 2));
  EXPECT_EQ(found(3), nullptr);
  fs::remove_all(folder_.path() + "/weights");
  EXPECT_TRUE(holds(first, 1));  // The mapping lives on.
}

TEST_F(PackedCacheTest, another_kind_size_or_constant_is_not_mistaken) {
  fill({1, 2});
  const auto cache = open();
  EXPECT_NE(cache->find(constant_of(1), "kind", weights_bytes).packed, nullptr);
  EXPECT_EQ(cache->find(constant_of(1), "other kind", weights_bytes).packed, nullptr);
  EXPECT_EQ(cache->find(constant_of(1), "kind", weights_bytes + 64).packed, nullptr);
  auto changed = constant_of(1);
  changed[4001] ^= std::byte{1};
  EXPECT_EQ(cache->find(changed, "kind", weights_bytes).packed, nullptr);
}

TEST_F(PackedCacheTest, bytes_of_a_file_are_told_apart_by_file_and_place) {
  const std::string path = folder_.path() + "/model";
  write_file(path, std::string(20000, 'x'));
  {
    const auto fresh = MappedFile::open(path);
    EXPECT_FALSE(
        open()->find(fresh->bytes().first(5000), "kind", weights_bytes).key);  // Its time stamps may not tell the next change.
  }
  ::usleep(2100000);
  const auto file = MappedFile::open(path);
  const auto cache = open();
  const auto here = cache->find(file->bytes().first(5000), "kind", weights_bytes);
  const auto there = cache->find(file->bytes().subspan(5000, 5000), "kind", weights_bytes);
  ASSERT_TRUE(here.key && there.key);
  EXPECT_NE(*here.key, *there.key);
  EXPECT_EQ(here.key, open()->find(MappedFile::open(path)->bytes().first(5000), "kind", weights_bytes).key);
}

TEST_F(PackedCacheTest, few_weights_are_not_written) {
  fill({1});
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(open()->find(constant_of(1), "kind", PackedCache::least_weights - 1).key);
}

TEST_F(PackedCacheTest, damage_anywhere_is_noticed_and_written_anew) {
  fill({1, 2});
  const std::string path = only_file();
  const size_t size = fs::file_size(path);
  for (const size_t at : {size_t{0}, size_t{9}, size_t{20}, size_t{33}, size_t{41}, size_t{50}, size_t{70}, size_t{90},
                          size_t{4096}, size_t{4096} + weights_bytes - 1, size - weights_bytes, size - 1}) {
    fs::copy_file(path, folder_.path() + "/whole", fs::copy_options::overwrite_existing);
    flip_byte(path, at);
    const bool one = holds(found(1), 1);
    const bool two = fs::exists(path) && holds(found(2), 2);
    EXPECT_FALSE(one && two) << "byte " << at;
    fs::copy_file(folder_.path() + "/whole", path, fs::copy_options::overwrite_existing);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_TRUE(holds(found(1), 1)) << "byte " << at;
  }
  flip_byte(path, 50);
  fill({1, 2});
  EXPECT_TRUE(holds(found(1), 1));
}

TEST_F(PackedCacheTest, a_file_that_was_cut_short_or_grew_is_ignored) {
  fill({1, 2});
  const std::string path = only_file();
  const size_t size = fs::file_size(path);
  for (const size_t length : {size + 4096, size - 4096, size_t{4096}, size_t{64}, size_t{1}, size_t{0}}) {
    fs::resize_file(path, length);
    EXPECT_EQ(found(1), nullptr) << length;
  }
  EXPECT_NE(note_after_looking().find("is cut short"), std::string::npos);
}

TEST_F(PackedCacheTest, files_that_others_may_write_are_ignored) {
  fill({1, 2});
  const std::string path = only_file();
  for (const fs::perms others : {fs::perms::others_write, fs::perms::group_write}) {
    fs::permissions(path, others, fs::perm_options::add);
    EXPECT_EQ(found(1), nullptr);
    EXPECT_NE(note_after_looking().find("may be written by others"), std::string::npos);
    fs::permissions(path, others, fs::perm_options::remove);
  }
  EXPECT_TRUE(holds(found(1), 1));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
    EXPECT_EQ(found(1), nullptr);
    EXPECT_NE(note_after_looking().find("belongs to somebody else"), std::string::npos);
  }
  fs::rename(path, folder_.path() + "/elsewhere");
  fs::create_symlink(folder_.path() + "/elsewhere", path);
  EXPECT_EQ(found(1), nullptr);
}

TEST_F(PackedCacheTest, a_folder_that_others_may_write_is_not_used) {
  fill({1, 2});
  fs::permissions(folder_.path() + "/weights", fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(found(1), nullptr);
  const auto cache = open();
  EXPECT_FALSE(cache->find(constant_of(3), "kind", weights_bytes).key);
  cache->keep({{{1, 2}, packed_of(3)}, {{3, 4}, packed_of(4)}});
  EXPECT_EQ(files().size(), 1U);
  EXPECT_NE(note_after_looking().find("not a folder that this user alone may write to"), std::string::npos);
}

TEST_F(PackedCacheTest, the_file_used_longest_ago_makes_room) {
  const uint64_t room = 3 * weights_bytes * 2 + 3 * 4096;  // For three files.
  for (const uint8_t first : std::initializer_list<uint8_t>{1, 3, 5}) fill({first, static_cast<uint8_t>(first + 1)}, room);
  EXPECT_EQ(files().size(), 3U);
  ::usleep(20000);
  EXPECT_TRUE(holds(found(1), 1));  // Used now.
  fill({7, 8}, room);
  EXPECT_EQ(files().size(), 3U);
  EXPECT_TRUE(holds(found(1), 1));
  EXPECT_EQ(found(3), nullptr);
  EXPECT_TRUE(holds(found(5), 5));
  EXPECT_TRUE(holds(found(7), 7));
}

TEST_F(PackedCacheTest, more_than_the_cache_may_hold_is_not_written) {
  fill({1, 2}, PackedCache::least_file);
  EXPECT_TRUE(files().empty());
}

TEST_F(PackedCacheTest, what_a_killed_writer_left_goes_with_the_next_one) {
  fill({1, 2});
  write_file(folder_.path() + "/weights/x.weights.part", "half");
  fill({3, 4});
  EXPECT_FALSE(fs::exists(folder_.path() + "/weights/x.weights.part"));
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(PackedCacheTest, a_full_disk_leaves_nothing_and_harms_nobody) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);  // So that a write past the limit fails as one to a full disk does.
  const rlimit small{weights_bytes, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  fill({1, 2});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_TRUE(files().empty());
  for (const auto& entry : fs::directory_iterator(folder_.path() + "/weights")) EXPECT_EQ(entry.path().filename(), "lock");
}

TEST_F(PackedCacheTest, a_stop_ends_the_writing) {
  request_stop(15);
  fill({1, 2});
  request_stop(0);
  EXPECT_TRUE(files().empty());
}

TEST_F(PackedCacheTest, processes_side_by_side_write_one_good_file) {
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      fill({1, 2});
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(
        WIFEXITED(status));  // One that came late found what it asked for, which `fill` does not expect: any status will do.
  }
  EXPECT_EQ(files().size(), 1U);
  EXPECT_TRUE(holds(found(1), 1));
  EXPECT_TRUE(holds(found(2), 2));
}

TEST(PackedCacheSettings, are_a_switch_or_a_size) {
  EXPECT_FALSE(PackedCache::settings_of("off"));
  EXPECT_EQ(PackedCache::settings_of("on")->most_bytes, uint64_t{8} << 30);
  EXPECT_EQ(PackedCache::settings_of("512M")->most_bytes, uint64_t{512} << 20);
  for (const char* text : {"", "maybe", "0", "-1G", "1X"}) EXPECT_THROW((void)PackedCache::settings_of(text), Error) << text;
}

}  // namespace
}  // namespace unmoor::test
