#pragma once

#include <string>
#include <vector>

#include "unmoor/catalog/versions.h"
#include "unmoor/engines/engine.h"
#include "unmoor/workbench/machine.h"

namespace unmoor {

// The files of shared libraries that this process has mapped, `lib*.so*` alone: what a driver compiled for itself is no library.
// Sorted. Empty where the system does not tell.
std::vector<std::string> mapped_libraries();

// A vendor's library by the name that programs ask the loader for, and its copies.
struct LibraryCopies {
  std::string name = {};                    // "libcudnn.so.9"
  std::vector<std::string> paths = {};      // On the loader's path, in its order: LD_LIBRARY_PATH, its cache, its default folders.
  std::vector<std::string> real = {};       // What each is behind its links. Two names of one file are one copy.
  std::vector<std::string> elsewhere = {};  // In vendors' folders where the loader does not look.
  std::string used = {};                    // The path that wins; empty if there are only copies elsewhere.
  std::string real_used() const;
};
// Those of a machine, by name. Folders for newer processors (glibc-hwcaps) are not looked into.
std::vector<LibraryCopies> library_copies(const Machine& machine);
// "1.0.0" of libOpenCL.so.1.0.0, "1" of libLLVM-15.so.1; empty if nothing stands behind .so.
std::string version_in_name(const std::string& file);
// The first word behind `mark` that starts as a version does: "535.104.05". Empty if there is none.
std::string version_after(const std::string& text, std::string_view mark);

// What a machine's Python is made of.
struct PythonFacts {
  struct Package {
    std::string name;
    std::string version;
    std::string path;    // The folder that holds it.
    std::string sha256;  // Of its list of files with their hashes; empty if it has none.
  };
  struct Extension {  // A package built against PyTorch's C++ library, and PyTorch itself.
    std::string name;
    std::string version;
    bool new_abi;  // Built with _GLIBCXX_USE_CXX11_ABI=1.
  };
  std::string interpreter;  // As it was named; empty if none was asked.
  std::string version;
  std::string path;
  std::vector<Package> packages;  // Those by which engines come, and what these need.
  std::vector<Extension> extensions;
  std::string problem;  // Why the packages are not known; empty if they are, or none was asked.
};
PythonFacts python_facts(const Machine& machine);
// The versions of drivers, runtimes, compilers, processors and Python packages of a machine that the catalogue has rules for.
// What is not there, or cannot be read, gives none.
std::vector<VersionFact> version_facts(const Machine& machine, const PythonFacts& python);

// Engines as the collector found them there; none where they were not looked for.
std::vector<FoundEngine> collected_engines(const Machine& machine);

// What a command prints, at most 16 MiB. `end` says how it failed, and is empty if it did not; a command that cannot be started
// fails so too. Given up after `patience_s` seconds of silence.
std::string output_of(const std::vector<std::string>& command, const std::vector<std::string>& environment, double patience_s,
                      std::string& end);

}  // namespace unmoor
