#include "unmoor/formats/onnx/tensors.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/external.h"
#include "unmoor/formats/onnx/fields.h"
#include "unmoor/formats/onnx/fingerprint.h"
#include "unmoor/formats/onnx/types.h"
#include "unmoor/formats/onnx/wire.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::onnx {
namespace {

constexpr size_t highest_rank = 64;
constexpr int64_t most_elements = int64_t{1} << 48;
constexpr size_t most_dense_bytes = size_t{1} << 30;

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// Numbers whose low bits are the elements, or for types under a byte the packed bytes.
Tensor from_integers(TensorType type, const std::vector<int64_t>& numbers) {
  Tensor tensor(std::move(type));
  const std::span<std::byte> bytes = tensor.writable_bytes();
  const size_t width = numbers.empty() ? 0 : bytes.size() / numbers.size();
  for (size_t i = 0; i < numbers.size(); ++i) std::memcpy(bytes.data() + i * width, &numbers[i], width);
  return tensor;
}

// Which typed field holds elements of a type.
enum class Holder : uint8_t { Int32, Int64, Uint64, Float, Double, String };

Holder holder_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::C64:
      return Holder::Float;
    case DType::F64:
    case DType::C128:
      return Holder::Double;
    case DType::I64:
      return Holder::Int64;
    case DType::U32:
    case DType::U64:
      return Holder::Uint64;
    case DType::String:
      return Holder::String;
    default:
      return Holder::Int32;
  }
}

TensorType checked_type(const std::vector<int64_t>& dims, DType dtype) {
  if (dims.size() > highest_rank) fail(ErrorKind::InvalidModel, "rank ", dims.size(), " is more than ", highest_rank);
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) fail(ErrorKind::InvalidModel, "shape ", Shape(dims), " has a negative dimension");
    // Dimensions beside a zero count too: nothing later may overflow on them.
    if (dim > 0 && elements > most_elements / dim) fail(ErrorKind::InvalidModel, "shape ", Shape(dims), " has too many elements");
    elements *= std::max<int64_t>(dim, 1);
  }
  return {dtype, Shape(dims)};
}

}  // namespace

struct TensorReader::Fields {
  void read(std::string_view bytes);

  std::string_view name;
  std::vector<int64_t> dims;
  int64_t dtype = 0;
  std::optional<std::string_view> raw;
  std::vector<std::string_view> floats, doubles, strings;
  std::vector<int64_t> int32s, int64s, uint64s;
  bool is_external = false;
  ExternalPlace place;
};

void TensorReader::Fields::read(std::string_view bytes) {
  Message message(bytes, "TensorProto");
  while (message.next()) {
    switch (message.field()) {
      case tensor_field::name:
        name = message.bytes();
        break;
      case tensor_field::dims:
        message.append(dims);
        break;
      case tensor_field::data_type:
        dtype = message.integer();
        break;
      case tensor_field::raw_data:
        raw = message.bytes();
        break;
      case tensor_field::float_data:
        floats.push_back(message.fixed(sizeof(float)));
        break;
      case tensor_field::double_data:
        doubles.push_back(message.fixed(sizeof(double)));
        break;
      case tensor_field::int32_data:
        message.append(int32s);
        break;
      case tensor_field::int64_data:
        message.append(int64s);
        break;
      case tensor_field::uint64_data:
        message.append(uint64s);
        break;
      case tensor_field::string_data:
        strings.push_back(message.bytes());
        break;
      case tensor_field::data_location:
        is_external = message.integer() == 1;
        break;
      case tensor_field::external_data:
        read_external_entry(message.bytes(), place);
        break;
      case tensor_field::segment:
        fail(ErrorKind::Unsupported, "tensors in segments are not supported");
      default:
        message.skip();
    }
  }
}

NamedTensor TensorReader::read(std::string_view bytes) {
  Fields fields;
  try {
    fields.read(bytes);
    const DType dtype = dtype_of(fields.dtype);
    return {fields.name, decode(fields, checked_type(fields.dims, dtype))};
  } catch (Error& error) {
    error.note(cat("in tensor '", fields.name, "'"));
    throw;
  }
}

Tensor TensorReader::decode(const Fields& fields, TensorType type) {
  if (fields.is_external) return external_tensor(fields, std::move(type));
  const auto elements = static_cast<size_t>(type.shape.elements());
  const auto expect = [&type](size_t found, size_t wanted) {
    if (found != wanted) fail(ErrorKind::InvalidModel, "it holds ", found, " elements or bytes, but ", type, " takes ", wanted);
  };
  const Holder holder = holder_of(type.dtype);
  if (holder == Holder::String) {
    expect(fields.strings.size(), elements);
    return Tensor::of_strings(type.shape, {fields.strings.begin(), fields.strings.end()});
  }
  if (fields.raw) {
    expect(fields.raw->size(), type.bytes());
    return in_place(std::move(type), *fields.raw);
  }
  if (holder == Holder::Float || holder == Holder::Double) {
    const auto& parts = holder == Holder::Float ? fields.floats : fields.doubles;
    size_t size = 0;
    for (const auto part : parts) size += part.size();
    expect(size, type.bytes());
    if (parts.size() == 1) return in_place(std::move(type), parts[0]);
    Tensor tensor(std::move(type));
    std::byte* at = tensor.writable_bytes().data();
    for (const auto part : parts) at = std::ranges::copy(as_bytes(part), at).out;
    return tensor;
  }
  const auto& numbers = holder == Holder::Int64 ? fields.int64s : holder == Holder::Uint64 ? fields.uint64s : fields.int32s;
  expect(numbers.size(), bits_of(type.dtype) < 8 ? type.bytes() : elements);
  return from_integers(std::move(type), numbers);
}

Tensor TensorReader::in_place(TensorType type, std::string_view bytes) {
  own_.spans.push_back(as_bytes(bytes));
  read_ahead(as_bytes(bytes).data() + bytes.size());
  return Tensor::view(std::move(type), as_bytes(bytes), own_.file);
}

// What follows a weight is read next, and small weights follow each other: asked for in growing steps as long as they do.
void TensorReader::read_ahead(const std::byte* from) {
  if (from < read_until_) return;
  const bool is_close = read_until_ != nullptr && from - read_until_ < (1 << 16);
  window_ = is_close ? std::min<size_t>(window_ * 2, 1 << 18) : 1 << 14;
  const auto all = own_.file->bytes();
  const auto place = static_cast<size_t>(from - all.data());
  will_read(all.subspan(place, std::min(window_, all.size() - place)));
  read_until_ = from + window_;
}

Tensor TensorReader::external_tensor(const Fields& fields, TensorType type) {
  if (type.dtype == DType::String) fail(ErrorKind::InvalidModel, "strings cannot be in an external file");
  if (fields.raw) fail(ErrorKind::InvalidModel, "it has data of its own and in an external file");
  const size_t size = type.bytes();
  const ExternalPlace& place = fields.place;
  if (place.length && *place.length != size) {
    fail(ErrorKind::InvalidModel, "its external data is ", *place.length, " bytes long, but ", type, " takes ", size);
  }
  Weights& weights = open_external(place.location);
  const auto all = weights.file->bytes();
  if (place.offset > all.size() || size > all.size() - place.offset) {
    fail(ErrorKind::InvalidModel, "the external file '", place.location, "' is too short: it has ", all.size(), " bytes, but ",
         size, " at ", place.offset, " are needed");
  }
  const auto bytes = all.subspan(place.offset, size);
  weights.spans.push_back(bytes);
  return Tensor::view(std::move(type), bytes, weights.file);
}

TensorReader::Weights& TensorReader::open_external(const std::string& location) {
  if (const auto found = external_.find(location); found != external_.end()) return found->second;
  auto file = MappedFile::open(external_path(own_.file->path(), location));
  file->advise_random();
  return external_.emplace(location, Weights{std::move(file), {}}).first->second;
}

NamedTensor TensorReader::read_sparse(std::string_view bytes) {
  NamedTensor values, indices;
  std::vector<int64_t> dims;
  Message message(bytes, "SparseTensorProto");
  while (message.next()) {
    switch (message.field()) {
      case sparse_field::values:
        values = read(message.bytes());
        break;
      case sparse_field::indices:
        indices = read(message.bytes());
        break;
      case sparse_field::dims:
        message.append(dims);
        break;
      default:
        message.skip();
    }
  }
  const auto complain = [&values](const auto&... parts) {
    fail(ErrorKind::InvalidModel, parts..., ", in sparse tensor '", values.name, "'");
  };
  if (!values.tensor || !indices.tensor) complain("values or indices are missing");
  if (values.tensor.dtype() == DType::String) complain("strings cannot be sparse");
  if (bits_of(values.tensor.dtype()) < 8) complain("elements of ", values.tensor.dtype(), " cannot be sparse");
  if (indices.tensor.dtype() != DType::I64) complain("indices are ", indices.tensor.dtype(), ", not int64");
  const TensorType type = checked_type(dims, values.tensor.dtype());
  dense_bytes_ += type.bytes();
  if (dense_bytes_ > most_dense_bytes) complain("sparse tensors take more than ", most_dense_bytes, " bytes when dense");

  const size_t count = values.tensor.elements();
  const auto places = integers(indices.tensor);
  const bool is_flat = indices.tensor.shape().rank() == 1;
  if (places.size() != count * (is_flat ? 1 : dims.size()))
    complain(places.size(), " indices do not fit ", count, " values of rank ", dims.size());
  Tensor dense(type);
  const size_t width = bits_of(type.dtype) / 8;
  const auto strides = type.shape.strides();
  for (size_t i = 0; i < count; ++i) {
    int64_t place = is_flat ? places[i] : 0;
    for (size_t axis = 0; axis < dims.size() && !is_flat; ++axis) {
      const int64_t index = places[i * dims.size() + axis];
      if (index < 0 || index >= dims[axis]) complain("index ", index, " is outside of dimension ", dims[axis]);
      place += index * strides[axis];
    }
    if (place < 0 || place >= static_cast<int64_t>(dense.elements())) complain("index ", place, " is outside of ", type);
    std::memcpy(dense.writable_bytes().data() + static_cast<size_t>(place) * width, values.tensor.bytes().data() + i * width,
                width);
  }
  return {values.name, dense};
}

}  // namespace unmoor::onnx
