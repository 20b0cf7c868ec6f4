#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/onnx.h"

// Any bytes as a model file: an Error, or a graph whose every byte can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("model", 0);
  static const std::string path = unmoor::cat("/proc/self/fd/", file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  try {
    const unmoor::Model model = unmoor::read_onnx(path);
    size_t sum = 0;
    for (const auto& value : model.graph.values()) {
      if (!value.constant || !value.constant->is_tensor()) continue;
      for (const std::byte byte : value.constant->tensor().bytes()) sum += std::to_integer<size_t>(byte);
    }
    volatile size_t kept = sum;  // So that the bytes are really read.
    static_cast<void>(kept);
  } catch (const unmoor::Error& error) {
    if (error.kind() == unmoor::ErrorKind::Internal) __builtin_trap();
  }
  return 0;
}
