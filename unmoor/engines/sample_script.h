#pragma once

#include <memory>
#include <optional>
#include <string>

#include "unmoor/runtime/runner.h"

namespace unmoor {

// The samples that a user's Python file yields: it has a function samples(), whose items are dicts of NumPy arrays by name. Runs
// in a child process of the user's Python; one sample is made ahead of none. One thread at a time.
class SampleScript {
 public:
  // `python` as in EngineRequest. Fails with Device where Python or what the file needs is missing, with InvalidArgument where it
  // has no such function.
  SampleScript(std::string file, const std::string& python);
  ~SampleScript();

  // Nothing at the end. Fails with Device if the file raises or its process ends, with InvalidArgument on what is no dict of arrays.
  std::optional<NamedData> next();

 private:
  struct Connection;
  std::string file_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace unmoor
