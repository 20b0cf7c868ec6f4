#include "unmoor/backends/cpu/packed_cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "unmoor/base/error.h"

namespace unmoor::cpu {
namespace {

template <class Take>
void each_name(const std::string& folder, const Take& take) {
  std::error_code problem;
  for (std::filesystem::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) {
    take(at->path().filename().string());
  }
}

}  // namespace

std::string weights_folder(const std::string& parent, std::string& problem) {
  if (parent.empty()) {
    problem = "there is no cache folder: XDG_CACHE_HOME and HOME name none that can be made";
    return {};
  }
  const std::string folder = cat(parent, "/weights");
  struct stat status {};
  if ((::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) || ::lstat(folder.c_str(), &status) != 0) {
    problem = cat(folder, ": ", std::generic_category().message(errno));
    return {};
  }
  const bool own = S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!own) problem = cat(folder, " is not a folder that this user alone may write to");
  return own ? folder : std::string();
}

std::vector<std::string> weights_files(const std::string& folder, const std::string& start) {
  std::vector<std::string> paths;
  each_name(folder, [&](const std::string& name) {
    if (name.starts_with(start) && name.ends_with(weights_ending)) paths.push_back(cat(folder, "/", name));
  });
  std::ranges::sort(paths);
  return paths;
}

void shrink_weights_folder(const std::string& folder, uint64_t most_bytes) {
  each_name(folder, [&](const std::string& name) {
    if (name.ends_with(unfinished_ending)) ::unlink(cat(folder, "/", name).c_str());
  });
  struct File {
    timespec used;
    uint64_t bytes;
    std::string path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  for (const std::string& path : weights_files(folder, "")) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    files.push_back({status.st_mtim, static_cast<uint64_t>(status.st_size), path});
    total += files.back().bytes;
  }
  std::ranges::sort(files, [](const File& a, const File& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const File& file : files) {
    if (total <= most_bytes) break;
    if (::unlink(file.path.c_str()) != 0) continue;
    total -= file.bytes;
  }
}

}  // namespace unmoor::cpu
