#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace unmoor::cpu {

// The folder of packed weights below `parent`, made for its owner alone if it is missing. Empty, and `problem` says why, if
// others may write to it or it cannot be made.
std::string weights_folder(const std::string& parent, std::string& problem);

// Paths of the files of packed weights whose name starts with `start`.
std::vector<std::string> weights_files(const std::string& folder, const std::string& start);

// Removes those used longest ago, whatever their names start with, until the rest takes no more than `most_bytes`. Also what
// writers left that were killed. For the holder of the folder's lock.
void shrink_weights_folder(const std::string& folder, uint64_t most_bytes);

inline constexpr const char* weights_ending = ".weights";
inline constexpr const char* unfinished_ending = ".part";

}  // namespace unmoor::cpu
