#pragma once

namespace unmoor::cli {

// From now on Ctrl-C and SIGTERM ask what runs to stop, so that files and child processes are cleared away. What has not stopped a few seconds
// later, or at the second signal, ends at once.
void watch_signals();
// Ends this process by the signal that asked for a stop, as if nobody had caught it. Returns if there was none.
void end_by_signal();

}  // namespace unmoor::cli
