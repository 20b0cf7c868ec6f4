#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unmoor {

// Something of a machine whose version matters: "nvidia driver" 535.104.05, "torch" 2.6.0, "nvidia gpu" 8.6 (its compute
// capability).
struct VersionFact {
  std::string component;
  std::string version;
  std::string from;  // Where it was read.
};

// Two things of a machine, and whether their makers say that they fit.
struct VersionPair {
  std::string a;        // "cuda runtime 12.6"
  std::string b;        // "nvidia driver 470.82.01"
  std::string verdict;  // fits, does not, unknown
  std::string source;   // Who says so, with its date; empty where nobody says anything.
  std::string would;    // What would fit instead, and why; empty unless it does not.
};

// Every pair of facts that the rules of data/catalog/versions speak of, those that do not fit first, then unknown ones. Any
// thread.
std::vector<VersionPair> judge_versions(const std::vector<VersionFact>& facts);

// Versions from the first to the second; an empty end is open. A version that goes on where the second ends lies within: 12.6.3
// in 12.6.
using VersionRange = std::pair<std::string, std::string>;
// Numbers by value; RC1 before 0; what follows a plus sign (a build, 2.6.0+cu126) is no part of it.
bool in_range(std::string_view version, const VersionRange& range);

}  // namespace unmoor
