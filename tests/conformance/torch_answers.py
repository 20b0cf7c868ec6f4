"""PyTorch's and SciPy's answers to conformance cases, in float64: a table from ONNX operator to expression.

An entry is a function of a Call and gives the node's outputs, in order. Whatever raises does not answer: a variant that PyTorch has no function
for is left to the other answerers. Only `facts.py make` imports this.
"""
import ml_dtypes
import numpy as np
import onnx
import scipy
import torch
from onnx import helper, numpy_helper

import torch_attention
import torch_layers
import torch_moves
import torch_quantised
import torch_signal

NAME = f"torch {torch.__version__.split('+')[0]}"
SCIPY = f"scipy {scipy.__version__}"
FLOATS = {np.dtype(each) for each in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)}
INTEGERS = {np.dtype(each) for each in (np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_, np.complex64, np.complex128)}
torch.set_num_threads(1)


class Unanswered(Exception):
    """PyTorch has no such function."""


def tensor_of(value):
    if value is None:
        return None
    value = np.asarray(value)
    if value.dtype in FLOATS:
        return torch.from_numpy(np.array(value, np.float64))
    if value.dtype in INTEGERS:
        return torch.from_numpy(np.array(value))
    raise Unanswered(f"a tensor of {value.dtype}")


class Call:
    """A node with its inputs as tensors, floats in float64; call[i] is an input, None if absent; call("axis") an attribute or its default."""

    def __init__(self, model, inputs):
        self.node = model.graph.node[0]
        self.op = self.node.op_type
        given = dict(zip([each.name for each in model.graph.input], inputs))
        given.update({each.name: numpy_helper.to_array(each) for each in model.graph.initializer})
        raw = [given[name] if name else None for name in self.node.input]
        self.widened = any(x is not None and np.asarray(x).dtype in FLOATS and np.asarray(x).dtype != np.float64 for x in raw)
        self.dtypes = [None if x is None else np.asarray(x).dtype for x in raw]
        self.inputs = [tensor_of(x) for x in raw]
        self.attributes = {each.name: helper.get_attribute_value(each) for each in self.node.attribute}
        version = next(each.version for each in model.opset_import if each.domain == self.node.domain)
        try:
            schema = onnx.defs.get_schema(self.op, version, self.node.domain)
            self.defaults = {name: each.default_value for name, each in schema.attributes.items() if each.default_value.type}
        except onnx.defs.SchemaError:
            self.defaults = {}

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, i):
        return self.inputs[i] if i < len(self.inputs) else None

    def has(self, name):
        return name in self.attributes

    def __call__(self, name, otherwise=None):
        value = self.attributes.get(name)
        if value is None and name in self.defaults:
            value = helper.get_attribute_value(self.defaults[name])
        value = otherwise if value is None else value
        return value.decode() if isinstance(value, bytes) else value

    def wants(self, i):
        return i < len(self.node.output) and self.node.output[i] != ""

    def whole(self, i, otherwise=None):
        """An input of integers as a list."""
        return otherwise if self[i] is None else [int(each) for each in self[i].reshape(-1)]


ANSWERS = {**torch_moves.ANSWERS, **torch_layers.ANSWERS, **torch_attention.ANSWERS, **torch_signal.ANSWERS,
           **torch_quantised.ANSWERS}


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.detach().resolve_conj().numpy()
    return value


def answer(model, inputs):
    """(who, outputs); raises where there is none."""
    node = model.graph.node[0]
    key = f"{node.domain}:{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
    if key not in ANSWERS:
        raise Unanswered(key)
    call = Call(model, inputs)
    outputs = ANSWERS[key](call)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    wanted = [plain(outputs[i]) for i in range(len(node.output)) if node.output[i]]
    who = SCIPY if key in torch_signal.BY_SCIPY else NAME
    return f"{who} float64" if call.widened else who, wanted
