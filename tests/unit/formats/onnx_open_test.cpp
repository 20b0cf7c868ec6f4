#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "tests/unit/formats/model_text.h"

namespace unmoor {
namespace {

using namespace model_text;

// The head of a field of `length` bytes that follow.
std::string head(uint32_t field, uint64_t length) {
  std::string text;
  for (uint64_t key = (uint64_t{field} << 3) | 2, more = 1; more != 0; key >>= 7) {
    more = key >> 7;
    text += static_cast<char>((key & 127) | (more != 0 ? 128 : 0));
  }
  for (uint64_t rest = length, more = 1; more != 0; rest >>= 7) {
    more = rest >> 7;
    text += static_cast<char>((rest & 127) | (more != 0 ? 128 : 0));
  }
  return text;
}

// A model whose only weight is a hole of `bytes` zeros in a sparse file: y = x + w.
void write_large_model(const std::string& path, uint64_t bytes) {
  std::string tensor = number(1, static_cast<int64_t>(bytes / 4)) + number(2, 1) + model_text::bytes(8, "w") + head(9, bytes);
  std::string rest = node("Add", {"x", "w"}, {"y"}) + input("x", {static_cast<int64_t>(bytes / 4)}) + output("y");
  std::string start = head(5, tensor.size() + bytes) + tensor;
  start = number(1, 8) + opset(21) + head(7, start.size() + bytes + rest.size()) + start;
  std::ofstream file(path, std::ios::binary);
  file << start;
  file.seekp(static_cast<std::streamoff>(start.size() + bytes));
  file << rest;
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t whole = 0;
  size_t resident = 0;
  file >> whole >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// Opening costs what the structure costs: weights are neither read nor copied. 50 ms are meant; the limit leaves room for slow machines and
// sanitizers, and still is far below what a pass over the weights takes.
TEST(OnnxOpen, a_model_of_400_megabytes_opens_without_its_weights) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/large.onnx";
  constexpr uint64_t size = 400'000'000;
  write_large_model(path, size);
  ASSERT_GT(std::filesystem::file_size(path), size);
  const double before = cpu_seconds();
  const size_t resident = resident_bytes();
  const Model model = read_onnx(path);
  EXPECT_LT(cpu_seconds() - before, 0.1);
  EXPECT_LT(resident_bytes(), resident + 40'000'000);
  ASSERT_EQ(model.graph.nodes().size(), 1U);
  const auto* const weight = model.graph.constant_tensor(model.graph.nodes()[0].inputs[1]);
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->bytes().size(), size);
}

}  // namespace
}  // namespace unmoor
