#include "cli/signals.h"

#include <csignal>
#include <unistd.h>

#include "unmoor/base/stop.h"

namespace unmoor::cli {
namespace {

constexpr unsigned patience_s = 3;

void ask_for_stop(int signal) {
  if (requested_stop() == 0) {
    request_stop(signal);
    ::alarm(patience_s);
  } else {
    end_by_signal();
  }
}

void lose_patience(int) { end_by_signal(); }

void handle(int signal, void (*handler)(int)) {
  struct sigaction before {};
  ::sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;  // As under nohup.
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void watch_signals() {
  handle(SIGALRM, lose_patience);
  handle(SIGINT, ask_for_stop);
  handle(SIGTERM, ask_for_stop);
}

void end_by_signal() {
  const int signal = requested_stop();
  if (signal == 0) return;
  struct sigaction otherwise {};
  otherwise.sa_handler = SIG_DFL;
  ::sigaction(signal, &otherwise, nullptr);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::kill(::getpid(), signal);
}

}  // namespace unmoor::cli
