#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace unmoor {

// A file mapped read-only. Immutable; any thread may read it. Pages are read from disk when touched: a file that somebody shortens
// meanwhile ends the process with SIGBUS, so files are to be replaced, not written over.
class MappedFile {
 public:
  // Fails with Io, naming the path and the system's reason. A folder, a pipe or an unreadable file is an error.
  static std::shared_ptr<const MappedFile> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  // Tells the kernel how pages will be touched: single ones while parsing, in order afterwards.
  void advise_random() const;
  void advise_normal() const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  std::span<const std::byte> bytes_;
};

// The functions below may be called from any thread.

// The whole file as text. Fails with Io, also on what is no regular file.
std::string read_file(const std::string& path);


// A folder of its own for one process's temporary files; removed with its content when this goes. Those that killed processes left are removed
// a day later by whoever makes the next one.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A file that is written beside its target and then takes its place, so that a reader sees the old one or the new one. Links are
// followed and the target keeps its mode; into what is no regular file (/dev/null, a pipe) the bytes are copied. Unfinished, it
// leaves nothing. Fails with Io.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::string& beside() const { return beside_; }  // Where to write.
  void finish();

 private:
  std::string path_;    // As the user wrote it.
  std::string target_;  // Behind its links.
  std::string beside_;
  std::unique_ptr<TemporaryFolder> apart_;  // Holds the bytes for what is no regular file.
};

// The text as a NewFile. Fails with Io.
void write_file(const std::string& path, std::string_view text);

// The user's cache folder for Unmoor (XDG_CACHE_HOME, else HOME/.cache), made if missing. Empty if none can be made.
std::string cache_folder();

}  // namespace unmoor
