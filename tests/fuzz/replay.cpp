#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// A line of hexadecimal digits.
std::vector<uint8_t> bytes_of(const std::string& line) {
  std::vector<uint8_t> bytes(line.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(std::stoul(line.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

}  // namespace

// replay FILE [LINE]: runs what a fuzzer found interesting, a line of the file each, without the fuzzer. The last number printed is the line that
// a failure came from.
int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "");
  const size_t only = argc > 2 ? std::stoul(argv[2]) : 0;
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    if (++number != only && only != 0) continue;
    (void)std::fprintf(stderr, "%zu\n", number);
    const std::vector<uint8_t> bytes = bytes_of(line);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  if (number > 0) return 0;
  (void)std::fprintf(stderr, "replay: there is nothing to replay\n");
  return 1;
}
