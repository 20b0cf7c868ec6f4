#include <algorithm>

#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

// Places of an operator's tables and positions, and how it calls pairs that lie side by side.
struct Rotary {
  size_t cos, sin;
  std::optional<size_t> positions;
  const char* interleaved;
};

std::optional<Rotary> rotary_of(const Situation& at) {
  if (at.op() == "RotaryEmbedding") return Rotary{1, 2, 3, "interleaved"};
  if (at.op() == "com.microsoft:RotaryEmbedding") return Rotary{2, 3, 1, "interleaved"};
  if (at.op() != "com.microsoft:GroupQueryAttention" || at.call.integer("do_rotary", 0) == 0) return std::nullopt;
  return Rotary{7, 8, std::nullopt, "rotary_interleaved"};
}

std::vector<Change> other_pairs(const Situation& at) {
  const auto rotary = rotary_of(at);
  if (!rotary) return {};
  const int64_t own = at.call.integer(rotary->interleaved, 0);
  return {with_attribute(at, rotary->interleaved, 1 - own, own == 0 ? "neighbours" : "halves")};
}

std::vector<Change> other_sign(const Situation& at) {
  const auto rotary = rotary_of(at);
  if (!rotary || !at.has_floats(rotary->sin)) return {};
  return {with_input(at, rotary->sin, mapped(at.tensor(rotary->sin), [](double value) { return -value; }))};
}

// Rows of a table moved by one; the last row repeats.
Tensor moved(const Tensor& table, int64_t by) {
  const Shape& shape = table.shape();
  const auto rows = shape[shape.rank() - 2];
  const auto width = static_cast<size_t>(shape[shape.rank() - 1]);
  const std::vector<double> from = doubles(table);
  std::vector<double> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const auto row = static_cast<int64_t>(i / std::max<size_t>(width, 1)) % rows;
    const int64_t wanted = std::clamp<int64_t>(row + by, 0, rows - 1);
    to[i] = from[static_cast<size_t>(static_cast<int64_t>(i) + (wanted - row) * static_cast<int64_t>(width))];
  }
  Tensor result(table.type());
  store(result, to);
  return result;
}

std::vector<Change> other_position(const Situation& at) {
  const auto rotary = rotary_of(at);
  if (!rotary || !at.has_floats(rotary->cos) || !at.has_floats(rotary->sin) || at.tensor(rotary->cos).shape().rank() < 2)
    return {};
  std::vector<Change> changes;
  for (const int64_t by : {int64_t{1}, int64_t{-1}}) {
    Change change = unchanged(at);
    change.inputs[rotary->cos] = moved(at.tensor(rotary->cos), by);
    change.inputs[rotary->sin] = moved(at.tensor(rotary->sin), by);
    change.detail = by > 0 ? "one late" : "one early";
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

void add_rotary_causes(std::vector<Entry>& table) {
  const std::vector<std::string_view> ops{"RotaryEmbedding", "com.microsoft:RotaryEmbedding",
                                          "com.microsoft:GroupQueryAttention"};
  table.push_back({"rotary-interleaved", "pairs other elements of a head for the rotation",
                   "Set interleaved as the model has it.", 1, true, ops, other_pairs});
  table.push_back({"rotary-sign", "rotates the other way round", "Negate the sines, or swap the halves that the target rotates.",
                   1, true, ops, other_sign});
  table.push_back({"rotary-offset", "rotates by the angle of a neighbouring position",
                   "Check whether positions count from 0 or from 1.", 1, true, ops, other_position});
}

}  // namespace unmoor::causes
