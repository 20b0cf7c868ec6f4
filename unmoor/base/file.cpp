#include "unmoor/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "unmoor/base/descriptor.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file_pages.h"

namespace unmoor {
namespace {

[[noreturn]] void fail_on(std::string_view what, const std::string& path) {
  fail(ErrorKind::Io, what, " '", path, "': ", std::generic_category().message(errno));
}

constexpr int reading = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // Without waiting for somebody who writes into a pipe.

// The status of a file opened for reading. Fails on what is no regular file: it would block, or never end.
struct stat regular_status(const Descriptor& file, const std::string& path) {
  if (file.number() < 0) fail_on("cannot open", path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_on("cannot read", path);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::Io, "cannot read '", path, "': it is not a regular file");
  return status;
}

size_t regular_size(const Descriptor& file, const std::string& path) { return static_cast<size_t>(regular_status(file, path).st_size); }

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), reading));
  const struct stat status = regular_status(file, path);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, {}));
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (at == MAP_FAILED) fail_on("cannot map", path);
  std::shared_ptr<const MappedFile> mapped(new MappedFile(path, {static_cast<const std::byte*>(at), size}));
  note_mapping(mapped->bytes(), identity_of(status));
  return mapped;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
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

namespace {

// Fails with Io, naming `path`, the file that the user asked for.
void write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_on("cannot write", path);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

constexpr std::string_view folder_start = "unmoor-";

// Removes what processes left that were killed: folders of ours whose process is gone, a day after their last change.
void remove_left_folders(const std::filesystem::path& base) {
  std::error_code problem;
  for (std::filesystem::directory_iterator at(base, problem), end; !problem && at != end; at.increment(problem)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(folder_start)) continue;
    const long process = std::strtol(name.c_str() + folder_start.size(), nullptr, 10);
    struct stat status {};
    const bool ours = ::lstat(at->path().c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
    constexpr time_t day = 24 * 60 * 60;
    if (process <= 0 || !ours || status.st_mtime + day > std::time(nullptr)) continue;
    std::error_code ignored;
    if (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) std::filesystem::remove_all(at->path(), ignored);
  }
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path), target_(path) {
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (there && S_ISDIR(status.st_mode)) fail(ErrorKind::Io, "cannot write '", path, "': it is a folder");
  if (there && !S_ISREG(status.st_mode)) {
    apart_ = std::make_unique<TemporaryFolder>();
    beside_ = apart_->path() + "/content";
    return;
  }
  std::error_code problem;
  if (const auto real = std::filesystem::weakly_canonical(path, problem); !problem) target_ = real.string();
  static std::atomic<unsigned> count{0};  // Threads may write the same file.
  beside_ = cat(target_, ".", static_cast<long long>(::getpid()), ".", count++, ".part");
}

NewFile::~NewFile() {
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

void NewFile::finish() {
  if (apart_ != nullptr) {
    const Descriptor file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.number() < 0) fail_on("cannot write", path_);
    const auto content = MappedFile::open(beside_);
    write_all(file.number(), {reinterpret_cast<const char*>(content->bytes().data()), content->bytes().size()}, path_);
    return;
  }
  struct stat status {};
  if (::stat(target_.c_str(), &status) == 0) ::chmod(beside_.c_str(), status.st_mode & 07777);
  if (::rename(beside_.c_str(), target_.c_str()) != 0) fail_on("cannot write", path_);
  beside_.clear();
}

void write_file(const std::string& path, std::string_view text) {
  NewFile made(path);
  {
    Descriptor file(::open(made.beside().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.number() < 0) fail_on("cannot write", path);
    write_all(file.number(), text, path);
    if (!file.close()) fail_on("cannot write", path);
  }
  made.finish();
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
  remove_left_folders(base);
  std::string name = (base / cat(folder_start, static_cast<long long>(::getpid()), "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) fail_on("cannot make a temporary folder", name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace unmoor
