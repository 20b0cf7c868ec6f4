#include "unmoor/base/fast_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace unmoor {
namespace {

TEST(FastHash, every_bit_and_every_length_counts) {
  for (const size_t size : {size_t{1}, size_t{8}, size_t{63}, size_t{64}, size_t{200}}) {
    std::vector<std::byte> bytes(size);
    std::set<FastHash> seen{fast_hash(bytes)};
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      auto changed = bytes;
      changed[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_TRUE(seen.insert(fast_hash(changed)).second) << "bit " << bit << " of " << size << " bytes";
    }
  }
  std::set<FastHash> lengths;
  const std::vector<std::byte> zeros(300);
  for (size_t size = 0; size <= zeros.size(); ++size) lengths.insert(fast_hash(std::span(zeros).first(size)));
  EXPECT_EQ(lengths.size(), zeros.size() + 1);
}

TEST(FastHash, words_that_change_places_and_other_seeds_count) {
  EXPECT_NE(fast_hash("0123456789abcdef"), fast_hash("89abcdef01234567"));
  std::string far(1024, 'x');
  far[0] = 'y';
  std::string near(1024, 'x');
  near[64] = 'y';  // The same lane, a block later.
  EXPECT_NE(fast_hash(far), fast_hash(near));
  const FastHash plain = fast_hash("a");
  EXPECT_EQ(plain, fast_hash("a"));
  EXPECT_NE(plain, fast_hash("a", {1, 0}));
  EXPECT_NE(plain, fast_hash("a", {0, 1}));
  EXPECT_NE(plain.low, fast_hash("b").low);
  EXPECT_NE(plain.high, fast_hash("b").high);
}

}  // namespace
}  // namespace unmoor
