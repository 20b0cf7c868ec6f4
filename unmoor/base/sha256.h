#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace unmoor {

// SHA-256 (FIPS 180-4) of bytes given piece by piece. One thread at a time.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  // The hash of all bytes so far, as 64 hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

 private:
  void add_block(const std::byte* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};  // Bytes that do not fill a block yet.
  uint64_t size_ = 0;
};

}  // namespace unmoor
