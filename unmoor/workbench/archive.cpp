#include "unmoor/workbench/archive.h"

#include <algorithm>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

// The dtype of all values of a map, if each is a tensor of one element of it.
std::optional<DType> value_dtype(const Map& map) {
  std::optional<DType> dtype;
  for (const Data& value : map.values) {
    const bool is_single = value.is_tensor() && value.tensor().shape().elements() == 1;
    if (!is_single || (dtype && *dtype != value.tensor().dtype())) return std::nullopt;
    dtype = value.tensor().dtype();
  }
  return dtype;
}

bool same_keys(const Tensor& a, const Tensor& b) {
  if (a.shares_storage(b)) return true;
  if (a.type() != b.type()) return false;
  return a.dtype() == DType::String ? a.strings() == b.strings() : integers(a) == integers(b);
}

// Whether the maps have one dtype and equal keys, so that their values make a matrix.
bool is_matrix(const std::vector<Data>& items) {
  if (items.empty() || !items[0].is_map()) return false;
  const Map& first = items[0].map();
  const auto dtype = value_dtype(first);
  return dtype && std::ranges::all_of(items, [&](const Data& item) {
           return item.is_map() && value_dtype(item.map()) == dtype && same_keys(item.map().keys, first.keys);
         });
}

// The values of maps that is_matrix holds for, a row each.
Tensor value_rows(std::span<const Data> maps) {
  const Map& first = maps[0].map();
  Tensor rows(
      TensorType{*value_dtype(first), Shape{static_cast<int64_t>(maps.size()), static_cast<int64_t>(first.values.size())}});
  int64_t to = 0;
  for (const Data& map : maps) {
    for (const Data& value : map.map().values) ElementCopy(value.tensor(), rows)(0, to++);
  }
  return rows;
}

// Appends items up to the width, then "…".
template <class Item>
std::string joined(size_t count, size_t width, Item item) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (text.size() > width) return cat(text, ", …");
    text += cat(i == 0 ? "" : ", ", item(i));
  }
  return text;
}

std::string element_text(const Tensor& tensor, size_t i) {
  if (tensor.dtype() == DType::String) return shortened(tensor.strings()[i], 32);
  if (bits_of(tensor.dtype()) < 8 || tensor.dtype() == DType::C64 || tensor.dtype() == DType::C128) return "?";
  Tensor one(TensorType{tensor.dtype(), Shape()});
  ElementCopy(tensor, one)(static_cast<int64_t>(i), 0);
  return is_float(tensor.dtype()) ? short_number(doubles(one)[0]) : cat(integers(one)[0]);
}

}  // namespace

void add_to_archive(const std::string& name, const Data& data, NamedTensors& tensors) {
  if (data.is_tensor()) {
    tensors[name] = data.tensor();
  } else if (data.is_sequence()) {
    const auto& items = data.sequence().items;
    if (is_matrix(items)) {
      tensors[cat(name, "/keys")] = items[0].map().keys;
      tensors[cat(name, "/values")] = value_rows(items);
      return;
    }
    for (size_t i = 0; i < items.size(); ++i) add_to_archive(cat(name, "/", i), items[i], tensors);
  } else if (data.is_map()) {
    const Map& map = data.map();
    tensors[cat(name, "/keys")] = map.keys;
    if (value_dtype(map)) {
      tensors[cat(name, "/values")] = value_rows(std::span(&data, 1)).reshaped(Shape{static_cast<int64_t>(map.values.size())});
      return;
    }
    for (size_t i = 0; i < map.values.size(); ++i) add_to_archive(cat(name, "/values/", i), map.values[i], tensors);
  }
}

std::string short_value(const Data& data, size_t width) {
  if (data.is_tensor()) {
    const Tensor& tensor = data.tensor();
    if (tensor.shape().rank() == 0) return element_text(tensor, 0);
    return cat("[", joined(tensor.elements(), width, [&](size_t i) { return element_text(tensor, i); }), "]");
  }
  if (data.is_sequence()) {
    const auto& items = data.sequence().items;
    return cat("[", joined(items.size(), width, [&](size_t i) { return short_value(items[i], width); }), "]");
  }
  if (!data.is_map()) return "nothing";
  const Map& map = data.map();
  const auto entry = [&](size_t i) { return cat(element_text(map.keys, i), ": ", short_value(map.values[i], width)); };
  return cat("{", joined(map.values.size(), width, entry), "}");
}

}  // namespace unmoor
