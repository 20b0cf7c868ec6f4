"""Cases of one node for ort_ml_cases.py, their types and values."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ML = "ai.onnx.ml"
F32, F64, I64, I32 = np.float32, np.float64, np.int64, np.int32
NUMBERS = (F32, F64, I64, I32)


class Cases:
    """Collects cases as (name, model, inputs, expected outputs or None for ONNX Runtime's, why it departs)."""

    def __init__(self):
        self.all = []

    def add(self, op, what, inputs, outputs, attributes, opset=3, expected=None, departs=None, domain=ML):
        name = f"{op}_{sum(each[0].startswith(op.lower() + '_') for each in self.all):03}_{what}".lower()
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(op, [f"in{i}" for i in range(len(inputs))], [f"out{i}" for i in range(len(outputs))], name=op, domain=domain,
                                **attributes)
        graph = helper.make_graph([node], name, [helper.make_value_info(f"in{i}", type_of(x)) for i, x in enumerate(inputs)],
                                  [helper.make_value_info(f"out{i}", declared) for i, declared in enumerate(outputs)])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(domain, opset)])
        self.all.append((name, model, inputs, expected, departs))


def tensor(dtype):
    return helper.make_tensor_type_proto(dtype, None)


FLOAT, DOUBLE, INT64, STRING = (tensor(each) for each in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING))


def map_type(key, value):
    return helper.make_map_type_proto(key, tensor(value))


def type_of(value):
    if isinstance(value, dict):
        key, item = next(iter(value.items()))
        text = isinstance(key, str)
        return map_type(TensorProto.STRING if text else TensorProto.INT64,
                        TensorProto.STRING if isinstance(item, str) else helper.np_dtype_to_tensor_dtype(np.asarray(item).dtype))
    value = np.asarray(value)
    dtype = TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(dtype, value.shape)


def as_proto(value, wanted_type=None):
    """A value as ONNX's test data holds it; maps with their entries in the order given."""
    if isinstance(value, list):
        proto = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP)
        proto.map_values.extend(as_proto(each) for each in value)
        return proto
    if isinstance(value, dict):
        proto = onnx.MapProto()
        texts = isinstance(next(iter(value), 0), str)
        proto.key_type = TensorProto.STRING if texts else TensorProto.INT64
        if texts:
            proto.string_keys.extend(key.encode() for key in value)
        else:
            proto.keys.extend(value)
        proto.values.elem_type = onnx.SequenceProto.TENSOR
        proto.values.tensor_values.extend(numpy_helper.from_array(np.asarray(each, dtype=object if isinstance(each, str) else None))
                                          for each in value.values())
        return proto
    value = np.asarray(value)
    return numpy_helper.from_array(value.astype(object) if value.dtype.kind in "US" else value)


def features(rng, dtype, *shape):
    if dtype in (F32, F64):
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(-4, 5, size=shape).astype(dtype)


def rounded(values, digits=3):
    return [round(float(each), digits) for each in np.asarray(values).ravel()]
