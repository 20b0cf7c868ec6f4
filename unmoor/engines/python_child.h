#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "unmoor/base/child.h"
#include "unmoor/runtime/wire.h"

namespace unmoor {

// The interpreter to use: `given`, else UNMOOR_PYTHON, else that of the active virtual or conda environment, else python3 as PATH
// has it.
std::string find_python(const std::string& given);

// A Python process that runs our modules of unmoor/engines/python and answers messages: a JSON object and bytes each way. What
// engines print goes to the error stream. One thread at a time. Only .cpp files of this layer include this.
class PythonChild {
 public:
  // `who` names the engine in errors. Fails with Device if there is no such interpreter or it does not start.
  PythonChild(const std::string& python, std::string who);

  // False if the child has gone or was silent for `patience_s`: then report_end says how.
  bool send(const Message& message, double patience_s);
  // Fails with Device on bytes that are no message.
  bool receive(Message& message, double patience_s);
  // Fails with Device: how the child ended and the last lines that it printed.
  [[noreturn]] void report_end();
  const std::string& python() const { return python_; }

 private:
  void start();
  [[noreturn]] void fail_at_start();
  std::string last_words();

  std::string who_;
  std::string python_;
  Child child_;
};

}  // namespace unmoor
