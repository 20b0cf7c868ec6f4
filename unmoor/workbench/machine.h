#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// What was read of a machine, as collect.sh writes it down: files under their own paths, and in /outputs what tools printed, or
// TOOL.failed if they failed. A value; any thread may read it.
class Machine {
 public:
  // This machine. `python` is the interpreter whose packages are asked for; empty: none. Runs the vendors' tools where they are, each
  // with a time limit. Fails with Io if nothing can be written for a moment, with Device if the shell does not run.
  static Machine here(const std::string& python);
  // What was collected elsewhere: a folder, or an archive as tar makes it, with gzip or without. Fails with Io on what cannot be read,
  // with InvalidArgument on what is something else or has more than a machine's files (64 MiB, 20,000 files).
  static Machine read(const std::string& path);
  explicit Machine(std::map<std::string, std::string, std::less<>> files) : files_(std::move(files)) {}

  bool has(std::string_view path) const { return files_.contains(path); }
  // Empty where there is no such file.
  const std::string& text(std::string_view path) const;
  // Its lines, without those that are empty.
  std::vector<std::string> lines(std::string_view path) const;
  // Names in a folder, sorted.
  std::vector<std::string> names(std::string_view folder) const;
  // A variable of whoever collected; empty if it was not set.
  std::string variable(std::string_view name) const;
  bool has_variable(std::string_view name) const;
  // What a tool printed when it failed, with how it ended first; empty if it did not.
  const std::string& failure(std::string_view tool) const;

 private:
  std::map<std::string, std::string, std::less<>> files_;  // By path, which begins with a slash.
};

// A program for a POSIX shell that collects another machine's files for Machine::read. Any thread.
std::string collector_script();

// Files of a tar archive by path, those of folders and links left out. `most_bytes` and `most_files` bound what is unpacked.
// Fails with Io, and with InvalidArgument on what is no such archive, is cut, exceeds the bounds or leaves its folder.
std::map<std::string, std::string, std::less<>> read_tar(const std::string& path, size_t most_bytes, size_t most_files);

}  // namespace unmoor
