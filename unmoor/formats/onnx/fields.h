#pragma once

#include <cstdint>

// Field numbers of ONNX's protobuf messages, from onnx.proto and onnx-data.proto.
namespace unmoor::onnx {

namespace model_field {
enum : uint32_t {
  ir_version = 1,
  producer_name = 2,
  producer_version = 3,
  graph = 7,
  opset_import = 8,
  metadata_props = 14,
  functions = 25
};
}
namespace opset_field {
enum : uint32_t { domain = 1, version = 2 };
}
namespace entry_field {
enum : uint32_t { key = 1, value = 2 };
}
namespace graph_field {
enum : uint32_t { node = 1, name = 2, initializer = 5, input = 11, output = 12, value_info = 13, sparse_initializer = 15 };
}
namespace function_field {
enum : uint32_t {
  name = 1,
  input = 4,
  output = 5,
  attribute = 6,
  node = 7,
  opset_import = 9,
  domain = 10,
  attribute_proto = 11,
  value_info = 12,
  overload = 13,
};
}
namespace node_field {
enum : uint32_t { input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7, overload = 8 };
}
namespace attribute_field {
enum : uint32_t {
  name = 1,
  f = 2,
  i = 3,
  s = 4,
  t = 5,
  g = 6,
  floats = 7,
  ints = 8,
  strings = 9,
  tensors = 10,
  graphs = 11,
  tp = 14,
  type_protos = 15,
  type = 20,
  ref_attr_name = 21,
  sparse_tensor = 22,
  sparse_tensors = 23,
};
}
namespace value_field {
enum : uint32_t { name = 1, type = 2 };
}
namespace type_field {
enum : uint32_t { tensor = 1, sequence = 4, map = 5, opaque = 7, sparse_tensor = 8, optional = 9 };
}
// Of a tensor type; `element` also of a sequence or an optional.
namespace element_field {
enum : uint32_t { element = 1, shape = 2 };
}
namespace map_type_field {
enum : uint32_t { key = 1, value = 2 };
}
namespace shape_field {
enum : uint32_t { dim = 1 };
}
namespace dim_field {
enum : uint32_t { value = 1, param = 2 };
}
namespace tensor_field {
enum : uint32_t {
  dims = 1,
  data_type = 2,
  segment = 3,
  float_data = 4,
  int32_data = 5,
  string_data = 6,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  external_data = 13,
  data_location = 14,
};
}
namespace sparse_field {
enum : uint32_t { values = 1, indices = 2, dims = 3 };
}
// Of SequenceProto and OptionalProto, which differ only in whether a field is repeated.
namespace holder_field {
enum : uint32_t { name = 1, elem_type = 2, tensor = 3, sparse_tensor = 4, sequence = 5, map = 6, optional = 7 };
}
namespace map_field {
enum : uint32_t { name = 1, key_type = 2, keys = 3, string_keys = 4, values = 5 };
}

// AttributeProto.AttributeType.
enum class AttributeKind : int64_t {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  Type = 13,
  Types = 14,
};

// SequenceProto.DataType and OptionalProto.DataType.
enum class HeldKind : int64_t { Undefined = 0, Tensor = 1, SparseTensor = 2, Sequence = 3, Map = 4, Optional = 5 };

}  // namespace unmoor::onnx
