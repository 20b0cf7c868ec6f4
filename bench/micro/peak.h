#pragma once

#include <cstddef>
#include <string>

namespace unmoor::bench {

// What one core of this processor does at best, with the clock of the moment and the best instruction set that it has. Each call
// measures anew for about 10 ms. One thread at a time.

// Floating-point operations a second: fused multiply-adds of float32, in registers alone.
double flop_rate();
// Bytes a second that a loop reads of memory of this size, over and over: the speed of the cache that it fits into.
double read_rate(size_t bytes);

// Processor time of the calling thread: true on a busy machine.
double thread_seconds();

std::string instruction_set();

// Bytes of the largest cache; 32 MiB where the system does not tell.
size_t last_cache_bytes();

}  // namespace unmoor::bench
