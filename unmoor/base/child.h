#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace unmoor {

// How a child process ended, in words: "exit status 3", "killed by SIGABRT", "killed after 900 s of silence", "still running".
struct ChildEnd {
  bool running = false;
  int status = 0;      // Exit status; 0 if a signal ended it, -1 if nobody knows.
  int signal = 0;
  double silence = 0;  // Seconds after which it was given up and killed; 0 if it was not.
  std::string text() const;
};

// A child process with its input, output and error piped. Started by spawn, never by a bare fork (drivers do not survive one).
// One thread at a time. Killed and reaped when this goes; a child that calls die_with_parent also dies with its parent. Reading and writing
// fail with Stopped once a stop is requested.
class Child {
 public:
  // `command` is a program and its arguments; `environment` is added to ours. Fails with Io.
  explicit Child(const std::vector<std::string>& command, const std::vector<std::string>& environment = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // False if the child has closed its end or `seconds` passed without progress (0: no limit).
  bool write(std::span<const std::byte> bytes, double seconds = 0);
  // Fills `bytes`; false if the output ended first, the child ended, or `seconds` passed without progress (0: no limit).
  bool read(std::span<std::byte> bytes, double seconds = 0);
  // What comes next, at most as long as `bytes`; 0 in the same cases.
  size_t read_some(std::span<std::byte> bytes, double seconds = 0);
  void close_input();
  // What the child wrote to its error stream so far, its last 16 KiB.
  std::string errors();
  ChildEnd end();  // Where it stands now.
  // Waits for the end up to `seconds`, then kills.
  ChildEnd finish(double seconds);
  void kill();

 private:
  void drain_errors();

  int id_ = -1;
  int input_ = -1;
  int output_ = -1;
  int error_ = -1;
  double silence_ = 0;  // Of a read or write that was given up.
  std::string errors_;
  std::optional<ChildEnd> end_;
};

// For the child's side: the system kills this process when the thread that started it ends.
void die_with_parent();

// The program to start as a worker: what UNMOOR_WORKER names, else this program if it is `unmoor` itself, else the `unmoor` that is found
// beside it or in PATH, for programs that embed the library. This program if there is none.
std::string own_program();

// How many seconds of silence from a child are taken for a hang: UNMOOR_PATIENCE if it is set to a positive number, else `otherwise`.
double child_patience(double otherwise);

}  // namespace unmoor
