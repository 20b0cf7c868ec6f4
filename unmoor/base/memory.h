#pragma once

#include <cstddef>
#include <string_view>

namespace unmoor {

// How much memory tensors and host buffers may hold together, in bytes: what the machine has, or the control group that this process
// runs in, unless UNMOOR_MEMORY_LIMIT or set_memory_limit says otherwise. Any thread.
size_t memory_limit();
void set_memory_limit(size_t bytes);
// "1500000", "512M", "1.5G" (powers of 1024) as bytes. Fails with InvalidArgument on other text.
size_t parse_memory(std::string_view text);

// Fails with OutOfMemory if `bytes` more would pass the limit; says how much was asked for, is in use, and allowed, and how to raise it.
void check_memory(size_t bytes);
size_t memory_in_use();  // Bytes that TakenMemory objects hold.

// Memory as the limit counts it, for as long as this lives. Counting fails as check_memory does.
class TakenMemory {
 public:
  TakenMemory() = default;
  explicit TakenMemory(size_t bytes);
  ~TakenMemory();
  TakenMemory(TakenMemory&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = 0; }
  TakenMemory& operator=(TakenMemory&& other) noexcept;
  TakenMemory(const TakenMemory&) = delete;
  TakenMemory& operator=(const TakenMemory&) = delete;

 private:
  size_t bytes_ = 0;
};

}  // namespace unmoor
