#include "unmoor/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

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
  // False if what was written could not be kept.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

constexpr int reading = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // Without waiting for somebody who writes into a pipe.

// The size of a file opened for reading. Fails on what is no regular file: it would block, or never end.
size_t regular_size(const Descriptor& file, const std::string& path) {
  if (file.number() < 0) fail_on("cannot open", path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_on("cannot read", path);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::Io, "cannot read '", path, "': it is not a regular file");
  return static_cast<size_t>(status.st_size);
}

bool write_all(const Descriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Writes into what is no file of bytes, such as /dev/stdout or /dev/null: a rename would put a file in its place.
void write_into(const std::string& path, std::string_view text) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0 || !write_all(file, text) || !file.close()) fail_on("cannot write", path);
}

// `mode` as of the file that was there, or 0.
bool replace_file(const std::string& beside, const std::string& target, std::string_view text, mode_t mode) {
  Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file.number() >= 0 && (mode == 0 || ::fchmod(file.number(), mode & 07777) == 0) && write_all(file, text) && file.close() &&
         ::rename(beside.c_str(), target.c_str()) == 0;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), reading));
  const size_t size = regular_size(file, path);
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
  const Descriptor file(::open(path.c_str(), reading));
  // The size is a first guess: what the system makes up, as in /proc, says 0.
  std::string text(regular_size(file, path) + 1, '\0');
  size_t held = 0;
  while (true) {
    const ssize_t got = ::read(file.number(), text.data() + held, text.size() - held);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_on("cannot read", path);
    held += static_cast<size_t>(got);
    if (got == 0) break;
    if (held == text.size()) text.resize(2 * text.size() + 4096);
  }
  text.resize(held);
  return text;
}

void write_file(const std::string& path, std::string_view text) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) return write_into(path, text);
  std::error_code problem;
  const auto linked = exists ? std::filesystem::canonical(path, problem) : std::filesystem::path(path);
  const std::string target = problem ? path : linked.string();
  static std::atomic<unsigned> count{0};  // Threads may write the same file.
  const std::string beside = cat(target, '.', static_cast<long long>(::getpid()), '.', count++, ".part");
  if (replace_file(beside, target, text, exists ? status.st_mode : 0)) return;
  const int reason = errno;
  ::unlink(beside.c_str());
  errno = reason;
  fail_on("cannot write", path);
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
