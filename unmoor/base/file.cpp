#include "unmoor/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

[[noreturn]] void fail_on(std::string_view what, const std::string& path) {
  fail(ErrorKind::Io, what, " '", path, "': ", std::generic_category().message(errno));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) fail_on("cannot open", path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_on("cannot read", path);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::Io, "cannot read '", path, "': it is not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, {}));
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (at == MAP_FAILED) fail_on("cannot map", path);
  return std::shared_ptr<const MappedFile>(new MappedFile(path, {static_cast<const std::byte*>(at), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::advise_random() const {
  if (!bytes_.empty()) ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_RANDOM);
}

void MappedFile::advise_normal() const {
  if (!bytes_.empty()) ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_NORMAL);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_on("cannot open", path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) fail_on("cannot read", path);
  return text;
}

void write_file(const std::string& path, std::string_view text) {
  std::string beside = cat(path, ".", static_cast<long long>(::getpid()), ".part");
  const Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.number() < 0) fail_on("cannot write", path);
  while (!text.empty()) {
    const ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int reason = errno;
      ::unlink(beside.c_str());
      errno = reason;
      fail_on("cannot write", path);
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(beside.c_str());
    errno = reason;
    fail_on("cannot write", path);
  }
}

std::string cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (home != nullptr && *home == '/') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  std::error_code problem;
  std::filesystem::create_directories(folder / "unmoor", problem);
  return problem ? std::string() : (folder / "unmoor").string();
}

TemporaryFolder::TemporaryFolder() {
  std::error_code problem;
  auto base = std::filesystem::temp_directory_path(problem);
  if (problem) base = "/tmp";
  std::string name = (base / "unmoor-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fail_on("cannot make a temporary folder", name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace unmoor
