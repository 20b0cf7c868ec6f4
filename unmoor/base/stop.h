#pragma once

namespace unmoor {

// Asks what runs in this process to end: its next step, round of a Loop, or wait for a child process fails with Stopped. `signal` is why; 0 takes
// the request back. Any thread, and signal handlers.
void request_stop(int signal);
int requested_stop();  // 0 if nobody asked.
// Fails with Stopped, naming the signal, if somebody asked.
void check_stop();

}  // namespace unmoor
