#include "unmoor/formats/onnx/types.h"

#include <algorithm>
#include <array>
#include <string>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/fields.h"

namespace unmoor::onnx {
namespace {

constexpr int deepest_type = 16;
constexpr size_t highest_rank = 64;

// By code, from 1.
constexpr std::array<DType, 26> dtypes{
    DType::F32,    DType::U8,     DType::I8,       DType::U16,        DType::I16,    DType::I32,        DType::I64,
    DType::String, DType::Bool,   DType::F16,      DType::F64,        DType::U32,    DType::U64,        DType::C64,
    DType::C128,   DType::BF16,   DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::U4,
    DType::I4,     DType::F4E2M1, DType::F8E8M0,   DType::U2,         DType::I2};

void read_dim(Message dim, Shape& shape) {
  int64_t value = Shape::unknown;
  std::string_view symbol;
  while (dim.next()) {
    switch (dim.field()) {
      case dim_field::value:
        value = dim.integer();
        break;
      case dim_field::param:
        symbol = dim.bytes();
        break;
      default:
        dim.skip();
    }
  }
  if (shape.rank() >= highest_rank) fail(ErrorKind::InvalidModel, "a shape has more than ", highest_rank, " dimensions");
  shape.push_back(std::max(value, Shape::unknown));
  if (value < 0 && !symbol.empty() && symbol != "?") shape.set_symbol(shape.rank() - 1, std::string(symbol));
}

TensorType read_tensor_type(Message message) {
  TensorType type{DType::F32, Shape::of_unknown_rank()};
  while (message.next()) {
    switch (message.field()) {
      case element_field::element:
        if (const int64_t code = message.integer(); code != 0) type.dtype = dtype_of(code);
        break;
      case element_field::shape: {
        type.shape = Shape();
        Message shape(message.bytes(), "TensorShapeProto");
        while (shape.next()) {
          if (shape.field() == shape_field::dim) {
            read_dim(Message(shape.bytes(), "Dimension"), type.shape);
          } else {
            shape.skip();
          }
        }
        break;
      }
      default:
        message.skip();
    }
  }
  return type;
}

std::shared_ptr<const Type> shared(Type type) { return std::make_shared<const Type>(std::move(type)); }

Type read_type(std::string_view bytes, int depth);

std::shared_ptr<const Type> read_element(Message message, int depth) {
  std::shared_ptr<const Type> element;
  while (message.next()) {
    if (message.field() == element_field::element) {
      element = shared(read_type(message.bytes(), depth + 1));
    } else {
      message.skip();
    }
  }
  return element;
}

MapType read_map(Message message, int depth) {
  MapType type;
  while (message.next()) {
    switch (message.field()) {
      case map_type_field::key:
        type.key = dtype_of(message.integer());
        break;
      case map_type_field::value:
        type.value = shared(read_type(message.bytes(), depth + 1));
        break;
      default:
        message.skip();
    }
  }
  return type;
}

Type read_type(std::string_view bytes, int depth) {
  if (depth > deepest_type) fail(ErrorKind::InvalidModel, "a type is nested more than ", deepest_type, " deep");
  Type type = TensorType{DType::F32, Shape::of_unknown_rank()};
  Message message(bytes, "TypeProto");
  while (message.next()) {
    switch (message.field()) {
      case type_field::tensor:
        type = read_tensor_type(Message(message.bytes(), "TypeProto.Tensor"));
        break;
      case type_field::sequence:
        type = SequenceType{read_element(Message(message.bytes(), "TypeProto.Sequence"), depth)};
        break;
      case type_field::optional:
        type = OptionalType{read_element(Message(message.bytes(), "TypeProto.Optional"), depth)};
        break;
      case type_field::map:
        type = read_map(Message(message.bytes(), "TypeProto.Map"), depth);
        break;
      case type_field::sparse_tensor:
        fail(ErrorKind::Unsupported, "values of sparse tensor type are not supported");
      case type_field::opaque:
        fail(ErrorKind::Unsupported, "values of opaque type are not supported");
      default:
        message.skip();
    }
  }
  return type;
}

// protozero drops an embedded message that nothing was added to, so empty ones are added as such.
void write_shape(protozero::pbf_writer& type, const Shape& shape) {
  if (shape.rank() == 0) {
    type.add_message(element_field::shape, std::string());
    return;
  }
  protozero::pbf_writer writer(type, element_field::shape);
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == Shape::unknown && shape.symbol(axis).empty()) {
      writer.add_message(shape_field::dim, std::string());
      continue;
    }
    protozero::pbf_writer dim(writer, shape_field::dim);
    if (shape[axis] != Shape::unknown) {
      dim.add_int64(dim_field::value, shape[axis]);
    } else {
      dim.add_string(dim_field::param, shape.symbol(axis));
    }
  }
}

void write_element(protozero::pbf_writer writer, const std::shared_ptr<const Type>& element) {
  write_type(protozero::pbf_writer(writer, element_field::element),
             element ? *element : Type(TensorType{DType::F32, Shape::of_unknown_rank()}));
}

}  // namespace

DType dtype_of(int64_t code) {
  if (code == 27 || code == 28) fail(ErrorKind::Unsupported, "6-bit floats (element type ", code, ") are not supported");
  if (code < 1 || code > static_cast<int64_t>(dtypes.size()))
    fail(ErrorKind::InvalidModel, "element type ", code, " is not known");
  return dtypes[static_cast<size_t>(code - 1)];
}

int64_t code_of(DType dtype) { return std::ranges::find(dtypes, dtype) - dtypes.begin() + 1; }

Type read_type(std::string_view bytes) { return read_type(bytes, 0); }

void write_type(protozero::pbf_writer writer, const Type& type) {
  if (const auto* tensor = std::get_if<TensorType>(&type)) {
    protozero::pbf_writer inner(writer, type_field::tensor);
    inner.add_int32(element_field::element, static_cast<int32_t>(code_of(tensor->dtype)));
    if (tensor->shape.has_rank()) write_shape(inner, tensor->shape);
  } else if (const auto* sequence = std::get_if<SequenceType>(&type)) {
    write_element(protozero::pbf_writer(writer, type_field::sequence), sequence->element);
  } else if (const auto* optional = std::get_if<OptionalType>(&type)) {
    write_element(protozero::pbf_writer(writer, type_field::optional), optional->element);
  } else if (const auto* map = std::get_if<MapType>(&type)) {
    protozero::pbf_writer inner(writer, type_field::map);
    inner.add_int32(map_type_field::key, static_cast<int32_t>(code_of(map->key)));
    write_type(protozero::pbf_writer(inner, map_type_field::value),
               map->value ? *map->value : Type(TensorType{DType::F32, Shape::of_unknown_rank()}));
  }
}

}  // namespace unmoor::onnx
