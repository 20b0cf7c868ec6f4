#include "unmoor/base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "unmoor/base/error.h"

extern char** environ;

namespace unmoor {
namespace {

constexpr size_t kept_error_bytes = 16 * 1024;
constexpr int unknown_status = -1;

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(ErrorKind::Io, "cannot make a pipe: ", std::generic_category().message(errno));
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  int take(size_t end) { return std::exchange(ends[end], -1); }
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& extra) {
  std::vector<std::string> result = extra;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto key = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const auto& own : extra) replaced = replaced || own.starts_with(key);
    if (!replaced) result.push_back(text);
  }
  return result;
}

// Writes to a pipe; if nobody reads it any more, EPIPE is all that happens. The signal that comes with it is kept from a program
// that handles or dies of it.
ssize_t write_quietly(int pipe, std::span<const std::byte> bytes) {
  sigset_t broken;
  sigset_t before;
  sigset_t waiting;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::sigpending(&waiting);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  const ssize_t written = ::write(pipe, bytes.data(), bytes.size());
  const int reason = errno;
  constexpr timespec at_once{};
  if (written < 0 && reason == EPIPE && ::sigismember(&waiting, SIGPIPE) == 0) ::sigtimedwait(&broken, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = reason;
  return written;
}

using Clock = std::chrono::steady_clock;
bool is_over(Clock::time_point since, double seconds) {
  return seconds > 0 && std::chrono::duration<double>(Clock::now() - since).count() > seconds;
}

ChildEnd from_wait(int status) {
  ChildEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.status = WEXITSTATUS(status);
  }
  return end;
}

}  // namespace

std::string ChildEnd::text() const {
  if (running) return "still running";
  if (signal == 0 && status == unknown_status) return "gone, nobody knows how";
  if (signal == 0) return cat("exit status ", status);
  const char* const abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? cat("killed by signal ", signal) : cat("killed by SIG", abbreviation);
}

Child::Child(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  Pipe input;
  Pipe output;
  Pipe error;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.ends[0], 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.ends[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, error.ends[1], 2);
  auto arguments = command;
  auto variables = merged_environment(environment);
  const auto argument_list = pointers(arguments);
  const auto variable_list = pointers(variables);
  const int problem =
      ::posix_spawnp(&id_, arguments.at(0).c_str(), &actions, nullptr, argument_list.data(), variable_list.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) {
    id_ = -1;
    fail(ErrorKind::Io, "cannot start '", command[0], "': ", std::generic_category().message(problem));
  }
  input_ = input.take(1);
  output_ = output.take(0);
  error_ = error.take(0);
  ::fcntl(error_, F_SETFL, O_NONBLOCK);
  ::fcntl(input_, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
  close_input();
  if (!end_) finish(0.2);
  if (output_ >= 0) ::close(output_);
  if (error_ >= 0) ::close(error_);
}

bool Child::write(std::span<const std::byte> bytes, double seconds) {
  auto progress = Clock::now();
  while (!bytes.empty()) {
    if (input_ < 0) return false;
    const ssize_t written = write_quietly(input_, bytes);
    if (written > 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
      progress = Clock::now();
    } else if (written < 0 && errno == EAGAIN) {
      if (is_over(progress, seconds)) return false;
      std::array<pollfd, 2> watched{pollfd{input_, POLLOUT, 0}, pollfd{error_, POLLIN, 0}};
      ::poll(watched.data(), watched.size(), 100);
      drain_errors();
    } else if (written < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Child::read(std::span<std::byte> bytes, double seconds) {
  auto progress = Clock::now();
  while (!bytes.empty()) {
    std::array<pollfd, 2> watched{pollfd{output_, POLLIN, 0}, pollfd{error_, POLLIN, 0}};
    const int ready = ::poll(watched.data(), watched.size(), 100);
    drain_errors();
    if (ready > 0 && (watched[0].revents & (POLLIN | POLLHUP)) != 0) {
      const ssize_t got = ::read(output_, bytes.data(), bytes.size());
      if (got == 0) return false;
      if (got < 0 && errno != EINTR && errno != EAGAIN) return false;
      if (got > 0) {
        bytes = bytes.subspan(static_cast<size_t>(got));
        progress = Clock::now();
      }
    } else if (is_over(progress, seconds)) {
      return false;
    }
  }
  return true;
}

void Child::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void Child::drain_errors() {
  constexpr int most_parts = 64;  // A child that writes without end must not keep its reader here.
  std::array<char, 4096> part{};
  for (int i = 0; i < most_parts && error_ >= 0; ++i) {
    const ssize_t got = ::read(error_, part.data(), part.size());
    if (got < 0) return;
    if (got == 0) ::close(std::exchange(error_, -1));
    errors_.append(part.data(), static_cast<size_t>(got));
    if (errors_.size() > kept_error_bytes) errors_.erase(0, errors_.size() - kept_error_bytes);
  }
}

std::string Child::errors() {
  drain_errors();
  return errors_;
}

ChildEnd Child::end() {
  if (end_) return *end_;
  int status = 0;
  const pid_t found = ::waitpid(id_, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return {.running = true, .status = 0, .signal = 0};
  drain_errors();
  // A program that ignores SIGCHLD has its children reaped by the system: this one is gone, and nobody knows how.
  end_ = found == id_ ? from_wait(status) : ChildEnd{.running = false, .status = unknown_status, .signal = 0};
  return *end_;
}

ChildEnd Child::finish(double seconds) {
  const auto start = Clock::now();
  while (end().running) {
    if (std::chrono::duration<double>(Clock::now() - start).count() > seconds) {
      kill();
      break;
    }
    drain_errors();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return end();
}

void Child::kill() {
  if (!end().running) return;
  ::kill(id_, SIGKILL);
  int status = 0;
  pid_t found = 0;
  while ((found = ::waitpid(id_, &status, 0)) < 0 && errno == EINTR) {
  }
  drain_errors();
  end_ = found == id_ ? from_wait(status) : ChildEnd{.running = false, .status = 0, .signal = SIGKILL};
}

std::string own_program() {
  if (const char* const given = std::getenv("UNMOOR_WORKER")) return given;
  std::error_code problem;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", problem);
  return problem ? std::string("unmoor") : path.string();
}

double child_patience(double otherwise) {
  const char* const given = std::getenv("UNMOOR_PATIENCE");
  const double seconds = given == nullptr ? 0 : std::strtod(given, nullptr);
  return seconds > 0 ? seconds : otherwise;
}

}  // namespace unmoor
