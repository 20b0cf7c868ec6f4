#include "unmoor/base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include "unmoor/base/error.h"
#include "unmoor/base/stop.h"

extern char** environ;

namespace unmoor {
namespace {

constexpr size_t kept_error_bytes = 16 * 1024;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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

ChildEnd from_wait(int status) {
  ChildEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.status = WEXITSTATUS(status);
  }
  return end;
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

}  // namespace

std::string ChildEnd::text() const {
  if (running) return "still running";
  if (silence > 0) return cat("killed after ", silence, " s of silence");
  if (signal == 0) return status < 0 ? std::string("ended, and nobody knows how") : cat("exit status ", status);
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
  for (const int end : {input_, output_, error_}) ::fcntl(end, F_SETFL, O_NONBLOCK);
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
    check_stop();
    if (input_ < 0) return false;
    const ssize_t written = write_quietly(input_, bytes);
    if (written > 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
      progress = Clock::now();
    } else if (written < 0 && errno == EAGAIN) {
      std::array<pollfd, 2> watched{pollfd{input_, POLLOUT, 0}, pollfd{error_, POLLIN, 0}};
      ::poll(watched.data(), watched.size(), 100);
      drain_errors();
      if (seconds > 0 && seconds_since(progress) > seconds) {
        silence_ = seconds;
        return false;
      }
    } else if (written < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

size_t Child::read_some(std::span<std::byte> bytes, double seconds) {
  const auto start = Clock::now();
  bool ended = false;
  while (!bytes.empty()) {
    check_stop();
    const ssize_t got = ::read(output_, bytes.data(), bytes.size());
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0 || (errno != EINTR && errno != EAGAIN)) return 0;
    if (ended) return 0;  // Somebody else holds its end of the pipe.
    std::array<pollfd, 2> watched{pollfd{output_, POLLIN, 0}, pollfd{error_, POLLIN, 0}};
    const int ready = ::poll(watched.data(), watched.size(), 100);
    drain_errors();
    if (ready == 0) ended = !end().running;
    if (seconds > 0 && watched[0].revents == 0 && seconds_since(start) > seconds) {
      silence_ = seconds;
      return 0;
    }
  }
  return 0;
}

bool Child::read(std::span<std::byte> bytes, double seconds) {
  while (!bytes.empty()) {
    const size_t got = read_some(bytes, seconds);
    if (got == 0) return false;
    bytes = bytes.subspan(got);
  }
  return true;
}

void Child::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void Child::drain_errors() {
  std::array<char, 4096> part{};
  // A child that writes faster than this reads waits for the next call.
  for (size_t taken = 0; error_ >= 0 && taken < 16 * kept_error_bytes;) {
    const ssize_t got = ::read(error_, part.data(), part.size());
    if (got < 0) break;
    if (got == 0) {
      ::close(error_);
      error_ = -1;
      break;
    }
    taken += static_cast<size_t>(got);
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
  if (found == 0 || (found < 0 && errno == EINTR)) return {.running = true};
  drain_errors();
  end_ = found == id_ ? from_wait(status) : ChildEnd{.status = -1};  // Where SIGCHLD is ignored, nobody can wait for it.
  return *end_;
}

ChildEnd Child::finish(double seconds) {
  const auto start = Clock::now();
  while (end().running) {
    if (silence_ > 0 || seconds_since(start) > seconds) {
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
  pid_t found = -1;
  while ((found = ::waitpid(id_, &status, 0)) < 0 && errno == EINTR) {
  }
  drain_errors();
  end_ = found == id_ ? from_wait(status) : ChildEnd{.status = -1};
  end_->silence = silence_;
}

void die_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

namespace {

bool can_run(const std::filesystem::path& program) {
  std::error_code problem;
  return std::filesystem::is_regular_file(program, problem) && ::access(program.c_str(), X_OK) == 0;
}

std::string found_in_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const auto candidate = std::filesystem::path(rest.substr(0, end)) / program;
    if (end > 0 && can_run(candidate)) return candidate.string();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace

std::string own_program() {
  if (const char* const given = std::getenv("UNMOOR_WORKER"); given != nullptr && *given != '\0') return given;
  constexpr const char* name = "unmoor";
  constexpr const char* self = "/proc/self/exe";
  std::error_code problem;
  const auto path = std::filesystem::read_symlink(self, problem);
  if (problem) return name;
  // The system appends a word to the path of a program that was replaced while it runs; the link itself still starts it.
  constexpr std::string_view gone = " (deleted)";
  std::string file = path.filename().string();
  const bool replaced = file.ends_with(gone) && !can_run(path);
  if (replaced) file.resize(file.size() - gone.size());
  std::string own = replaced ? self : path.string();
  if (file == name) return own;
  if (const auto beside = path.parent_path() / name; can_run(beside)) return beside.string();
  const std::string installed = found_in_path(name);
  return installed.empty() ? own : installed;
}

double child_patience(double otherwise) {
  const char* const given = std::getenv("UNMOOR_PATIENCE");
  const double seconds = given == nullptr ? 0 : std::strtod(given, nullptr);
  return seconds > 0 ? seconds : otherwise;
}

}  // namespace unmoor
