#include <algorithm>
#include <numeric>

#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

// [directions, blocks·size, …] with its blocks in another order; `order` repeats for every so many blocks.
Tensor reordered(const Tensor& tensor, const std::vector<size_t>& order, size_t blocks) {
  const std::vector<double> from = doubles(tensor);
  std::vector<double> to(from.size());
  const size_t block = from.size() / static_cast<size_t>(tensor.shape()[0]) / blocks;
  const size_t total = from.size() / std::max<size_t>(block, 1);
  for (size_t i = 0; i < total; ++i) {
    const size_t base = i / order.size() * order.size();
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>((base + order[i % order.size()]) * block), block,
                to.begin() + static_cast<std::ptrdiff_t>(i * block));
  }
  Tensor result(tensor.type());
  store(result, to);
  return result;
}

constexpr size_t many_weights = 200'000;  // Beyond this only the orders that frameworks have are tried.

std::vector<std::vector<size_t>> orders(const Situation& at, size_t gates) {
  if (gates == 4 && at.tensor(1).elements() > many_weights) return {{0, 2, 3, 1}, {0, 3, 1, 2}, {0, 1, 3, 2}, {2, 0, 3, 1}};
  std::vector<std::vector<size_t>> all;
  std::vector<size_t> order(gates);
  std::iota(order.begin(), order.end(), 0);
  while (std::next_permutation(order.begin(), order.end())) all.push_back(order);
  return all;
}

std::string letters(const std::vector<size_t>& order, std::string_view own) {
  std::string text;
  for (const size_t i : order) text += own[i];
  return text;
}

std::vector<Change> other_gates(const Situation& at) {
  const size_t gates = at.op() == "LSTM" ? 4 : 3;
  if (!at.has_floats(1) || !at.has_floats(2) || at.tensor(1).elements() == 0 || at.tensor(2).elements() == 0) return {};
  std::vector<Change> changes;
  for (const auto& order : orders(at, gates)) {
    Change change = unchanged(at);
    change.inputs[1] = reordered(at.tensor(1), order, gates);
    change.inputs[2] = reordered(at.tensor(2), order, gates);
    if (at.has_floats(3) && at.tensor(3).elements() > 0) change.inputs[3] = reordered(at.tensor(3), order, 2 * gates);
    change.detail = letters(order, gates == 4 ? "iofc" : "zrh");
    changes.push_back(std::move(change));
  }
  return changes;
}

std::vector<Change> other_reset(const Situation& at) {
  const int64_t own = at.call.integer("linear_before_reset", 0);
  return {with_attribute(at, "linear_before_reset", 1 - own, own == 0 ? "after" : "before")};
}

}  // namespace

void add_recurrent_causes(std::vector<Entry>& table) {
  table.push_back({"gate-order",
                   "reads its gates in another order",
                   "Reorder the blocks of W, R and B as the target takes them.",
                   1,
                   true,
                   {"LSTM", "GRU"},
                   other_gates});
  table.push_back({"reset-after",
                   "applies the reset gate on the other side of the recurrent product",
                   "Set linear_before_reset (reset_after, in frameworks) as the model has it.",
                   1,
                   true,
                   {"GRU"},
                   other_reset});
}

}  // namespace unmoor::causes
