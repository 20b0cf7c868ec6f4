#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// A module of ours, compiled into the program.
struct PythonModule {
  std::string name;  // As others import it.
  std::string_view source;
};

// Runs modules in a process of the user's Python, each after what it imports; the last does the work: it reads `request` from its
// standard input and writes the answer, which comes back. The process is isolated from the working folder and from the user's own
// modules (-I). `who` names the tool in errors. Fails with Device if there is no Python, it fails or is silent for long, and with
// Unsupported on an answer of more than `most` bytes. Any thread.
std::string run_python(const std::string& python, const std::string& who, const std::vector<PythonModule>& modules, const std::string& request,
                       size_t most);

}  // namespace unmoor
