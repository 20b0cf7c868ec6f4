#include <protozero/pbf_writer.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/onnx/fields.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/formats/onnx/tensors.h"
#include "unmoor/formats/onnx/types.h"
#include "unmoor/formats/onnx/wire.h"
#include "unmoor/formats/onnx/write_tensor.h"

namespace unmoor {
namespace {

using namespace onnx;
using protozero::pbf_writer;

constexpr int deepest = 16;

Data read_map(std::string_view bytes, TensorReader& tensors, int depth);

void check_depth(int depth) {
  if (depth > deepest) fail(ErrorKind::InvalidModel, "the data is nested more than ", deepest, " deep");
}

// The items of a SequenceProto or an OptionalProto.
std::vector<Data> read_items(std::string_view bytes, TensorReader& tensors, int depth) {
  check_depth(depth);
  std::vector<Data> items;
  Message message(bytes, "SequenceProto");
  while (message.next()) {
    switch (message.field()) {
      case holder_field::tensor:
        items.emplace_back(tensors.read(message.bytes()).tensor);
        break;
      case holder_field::sparse_tensor:
        items.emplace_back(tensors.read_sparse(message.bytes()).tensor);
        break;
      case holder_field::sequence:
        items.emplace_back(Sequence{read_items(message.bytes(), tensors, depth + 1)});
        break;
      case holder_field::map:
        items.push_back(read_map(message.bytes(), tensors, depth + 1));
        break;
      case holder_field::optional: {
        auto held = read_items(message.bytes(), tensors, depth + 1);
        items.push_back(held.empty() ? Data() : held[0]);
        break;
      }
      default:
        message.skip();
    }
  }
  return items;
}

Data read_map(std::string_view bytes, TensorReader& tensors, int depth) {
  check_depth(depth);
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  Map map;
  Message message(bytes, "MapProto");
  while (message.next()) {
    switch (message.field()) {
      case map_field::keys:
        message.append(numbers);
        break;
      case map_field::string_keys:
        texts.emplace_back(message.bytes());
        break;
      case map_field::values:
        map.values = read_items(message.bytes(), tensors, depth + 1);
        break;
      default:
        message.skip();
    }
  }
  if (numbers.size() + texts.size() != map.values.size())
    fail(ErrorKind::InvalidModel, "a map has other numbers of keys and values");
  const auto count = static_cast<int64_t>(map.values.size());
  map.keys = texts.empty() ? Tensor::from<int64_t>({count}, std::span<const int64_t>(numbers))
                           : Tensor::of_strings({count}, std::move(texts));
  return map;
}

Data read_as(const Type& type, std::string_view bytes, TensorReader& tensors) {
  if (std::holds_alternative<SequenceType>(type)) return Sequence{read_items(bytes, tensors, 0)};
  if (const auto* wanted = std::get_if<MapType>(&type)) {
    Data map = read_map(bytes, tensors, 0);
    if (!map.map().values.empty() || wanted->key != DType::String) return map;
    return Map{Tensor::of_strings({0}, {}), {}};  // Nothing else tells what the keys of an empty one are.
  }
  if (std::holds_alternative<OptionalType>(type)) {
    auto items = read_items(bytes, tensors, 0);
    return items.empty() ? Data() : items[0];
  }
  return tensors.read(bytes).tensor;
}

// Nothing in such a file says which message it is: what cannot be a TensorProto is read as a SequenceProto.
Data read_either(std::string_view bytes, TensorReader& tensors) {
  try {
    return tensors.read(bytes).tensor;
  } catch (const Error& as_tensor) {
    try {
      return Sequence{read_items(bytes, tensors, 0)};
    } catch (const Error&) {
      throw as_tensor;
    }
  }
}

void write_items(pbf_writer& writer, const std::vector<Data>& items, std::string_view name) {
  writer.add_string(holder_field::name, name.data(), name.size());
  const bool has_sequences = !items.empty() && items[0].is_sequence();
  writer.add_enum(holder_field::elem_type, static_cast<int32_t>(has_sequences ? HeldKind::Sequence : HeldKind::Tensor));
  for (const auto& item : items) {
    if (item.is_tensor() && !has_sequences) {
      write_tensor(pbf_writer(writer, holder_field::tensor), item.tensor(), "");
    } else if (item.is_sequence() && has_sequences) {
      pbf_writer inner(writer, holder_field::sequence);
      write_items(inner, item.sequence().items, "");
    } else {
      fail(ErrorKind::Unsupported, "only tensors and sequences of them can be written");
    }
  }
}

}  // namespace

Data read_onnx_tensor(const std::string& path, const Type* type) {
  const auto file = MappedFile::open(path);
  TensorReader tensors(file);
  const std::string_view bytes{reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
  try {
    return type != nullptr ? read_as(*type, bytes, tensors) : read_either(bytes, tensors);
  } catch (Error& error) {
    error.note(cat("in '", path, "'"));
    throw;
  }
}

void write_onnx_tensor(const Data& data, const std::string& name, const std::string& path) {
  std::string bytes;
  pbf_writer writer(bytes);
  if (data.is_tensor()) {
    write_tensor(std::move(writer), data.tensor(), name);
  } else if (data.is_sequence()) {
    write_items(writer, data.sequence().items, name);
  } else {
    fail(ErrorKind::Unsupported, "only tensors and sequences of them can be written, not a map or nothing");
  }
  if (bytes.size() > most_bytes) {
    fail(ErrorKind::Unsupported, "'", name, "' takes ", bytes.size(), " bytes, more than the 2 GiB that protobuf can hold");
  }
  write_file(path, bytes);
}

}  // namespace unmoor
