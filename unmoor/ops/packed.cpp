#include "unmoor/ops/packed.h"

#include "unmoor/base/error.h"

namespace unmoor {

void require_packed_bits(const OpCall& call, int64_t bits) {
  if (bits == 2 || bits == 4 || bits == 8) return;
  fail(ErrorKind::Unsupported, title(call), ": weights of ", bits, " bits are not supported; 2, 4 and 8 are");
}

void require_block(const OpCall& call, int64_t block) {
  if (block >= 16 && (block & (block - 1)) == 0) return;
  fail(ErrorKind::InvalidModel, title(call), ": block_size is ", block, ", not a power of two from 16 on");
}

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

ValueId add_unpacked(Formula& f, ValueId bytes, int64_t bits, std::vector<int64_t> shape) {
  const ValueId whole = f.wide(bytes);
  if (bits == 8) return f.reshaped(whole, std::move(shape));
  const auto base = static_cast<double>(int64_t{1} << bits);
  ValueId lane = f.reshaped(whole, {-1, 1});
  std::vector<ValueId> lanes;
  for (int64_t i = 0; i < 8 / bits; ++i) {  // Each lane is what is left after division by the base.
    const ValueId rest = f.add("Floor", {f.quotient(lane, f.number(base))});
    lanes.push_back(f.difference(lane, f.product(rest, f.number(base))));
    lane = rest;
  }
  return f.reshaped(f.add("Concat", std::move(lanes), {{"axis", int64_t{1}}}), std::move(shape));
}

}  // namespace unmoor
