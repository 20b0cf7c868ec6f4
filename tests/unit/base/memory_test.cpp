#include "unmoor/base/memory.h"

#include <gtest/gtest.h>

#include "unmoor/base/error.h"
#include "unmoor/tensor/tensor.h"

namespace unmoor {
namespace {

// Puts the limit back.
class Limit {
 public:
  explicit Limit(size_t bytes) { set_memory_limit(bytes); }
  ~Limit() { set_memory_limit(before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  size_t before_ = memory_limit();
};

TEST(Memory, amounts_are_read_with_their_unit) {
  EXPECT_EQ(parse_memory("1500000"), 1500000U);
  EXPECT_EQ(parse_memory("512M"), size_t{512} << 20);
  EXPECT_EQ(parse_memory("1.5G"), size_t{3} << 29);
  for (const char* text : {"", "G", "-1", "1X", "1GB", "nan", "0", "1e30"}) EXPECT_THROW((void)parse_memory(text), Error) << text;
}

TEST(Memory, a_tensor_beyond_the_limit_is_refused_before_it_is_allocated) {
  const Limit limit(memory_in_use() + (size_t{1} << 20));
  EXPECT_NO_THROW(Tensor(TensorType{DType::U8, Shape{1 << 19}}));
  try {
    const Tensor made(TensorType{DType::U8, Shape{int64_t{1} << 40}});
    FAIL() << "a tensor of a tebibyte was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
    EXPECT_NE(std::string(error.what()).find("1024 GiB of memory were asked for"), std::string::npos) << error.what();
  }
}

TEST(Memory, what_is_let_go_may_be_taken_again) {
  const size_t before = memory_in_use();
  const Limit limit(before + 1000);
  for (int i = 0; i < 3; ++i) {
    const TakenMemory taken(900);
    EXPECT_EQ(memory_in_use(), before + 900);
    EXPECT_THROW(TakenMemory(200), Error);
  }
  EXPECT_EQ(memory_in_use(), before);
}

}  // namespace
}  // namespace unmoor
