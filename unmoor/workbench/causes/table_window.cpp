#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

const std::vector<std::string_view>& window_ops() {
  static const std::vector<std::string_view> ops{"Conv",        "ConvTranspose", "unmoor:FusedConv", "MaxPool",
                                                 "AveragePool", "LpPool",        "QLinearConv",      "ConvInteger"};
  return ops;
}

std::vector<Change> padding_counted(const Situation& at) {
  const int64_t own = at.call.integer("count_include_pad", 0);
  return {with_attribute(at, "count_include_pad", 1 - own, own == 0 ? "" : "left out where the model counts it")};
}

std::vector<Change> other_ceil(const Situation& at) {
  const int64_t own = at.call.integer("ceil_mode", 0);
  return {with_attribute(at, "ceil_mode", 1 - own, own == 0 ? "up" : "down")};
}

std::vector<Change> other_side(const Situation& at) {
  const std::string kind = at.call.text("auto_pad", "NOTSET");
  if (kind == "SAME_UPPER") return {with_attribute(at, "auto_pad", std::string("SAME_LOWER"))};
  if (kind == "SAME_LOWER") return {with_attribute(at, "auto_pad", std::string("SAME_UPPER"))};
  const auto pads = at.call.integers("pads");
  std::vector<int64_t> swapped = pads;
  std::rotate(swapped.begin(), swapped.begin() + static_cast<std::ptrdiff_t>(swapped.size() / 2), swapped.end());
  if (swapped == pads) return {};
  return {with_attribute(at, "pads", swapped)};
}

// The windows of all axes, or of one, a place earlier or later, where the padding leaves room for it.
std::vector<Change> shifted(const Situation& at) {
  std::vector<Change> changes;
  const auto pads = at.call.integers("pads");
  const size_t axes = pads.size() / 2;
  if (axes == 0 || at.call.text("auto_pad", "NOTSET") != "NOTSET") return {};
  for (const int64_t by : {int64_t{1}, int64_t{-1}}) {
    for (size_t which = 0; which <= (axes > 1 ? axes : 0); ++which) {
      std::vector<int64_t> moved = pads;
      for (size_t axis = 0; axis < axes; ++axis) {
        if (which != axes && axes > 1 && which != axis) continue;
        moved[axis] += by;
        moved[axis + axes] -= by;
      }
      if (std::ranges::any_of(moved, [](int64_t pad) { return pad < 0; })) continue;
      changes.push_back(with_attribute(
          at, "pads", moved, cat(by > 0 ? "earlier" : "later", which < axes && axes > 1 ? cat(", spatial axis ", which) : "")));
    }
  }
  return changes;
}

std::vector<Change> other_text(const Situation& at, const char* key, const char* otherwise,
                               std::initializer_list<const char*> values) {
  std::vector<Change> changes;
  const std::string own = at.call.text(key, otherwise);
  for (const char* const value : values) {
    if (own != value) changes.push_back(with_attribute(at, key, std::string(value), value));
  }
  return changes;
}

std::vector<Change> other_coordinates(const Situation& at) {
  return other_text(at, "coordinate_transformation_mode", "half_pixel",
                    {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"});
}

// Which neighbour; and taking the nearest at all where the model interpolates.
std::vector<Change> other_nearest(const Situation& at) {
  if (at.call.text("mode", "nearest") != "nearest")
    return {with_attribute(at, "mode", std::string("nearest"), "no interpolation")};
  return other_text(at, "nearest_mode", "round_prefer_floor", {"floor", "round_prefer_ceil", "round_prefer_floor", "ceil"});
}

std::vector<Change> other_antialias(const Situation& at) {
  if (at.call.text("mode", "nearest") == "nearest") return {};
  const int64_t own = at.call.integer("antialias", 0);
  return {with_attribute(at, "antialias", 1 - own, own == 0 ? "on" : "off")};
}

}  // namespace

void add_window_causes(std::vector<Entry>& table) {
  table.push_back({"resize-coordinates",
                   "resizes with another rule for coordinates",
                   "Set the target's coordinate mode to the model's.",
                   1,
                   true,
                   {"Resize"},
                   other_coordinates});
  table.push_back({"resize-nearest",
                   "takes another neighbour when it resizes",
                   "Set the target's rounding of coordinates to the model's.",
                   1,
                   true,
                   {"Resize"},
                   other_nearest});
  table.push_back({"resize-antialias",
                   "resizes with the antialiasing filter on or off against the model",
                   "Set antialias as the model has it.",
                   1,
                   true,
                   {"Resize"},
                   other_antialias});
  table.push_back({"count-include-pad",
                   "counts padding in averages, or leaves it out, against the model",
                   "Set count_include_pad as the model has it.",
                   1,
                   true,
                   {"AveragePool", "LpPool"},
                   padding_counted});
  table.push_back({"ceil-mode",
                   "rounds the number of windows the other way",
                   "Set ceil_mode as the model has it.",
                   1,
                   true,
                   {"MaxPool", "AveragePool", "LpPool"},
                   other_ceil});
  table.push_back({"same-side", "puts the odd element of padding on the other side",
                   "Give the padding as numbers instead of SAME.", 1, true, window_ops(), other_side});
  table.push_back({"window-shifted", "has its windows shifted by one element",
                   "Give the padding as numbers, the same on both sides.", 1, true, window_ops(), shifted});
}

}  // namespace unmoor::causes
