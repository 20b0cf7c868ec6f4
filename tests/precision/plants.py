"""What planted causes are made of: nodes run by ONNX Runtime, rounding in NumPy, and folders in ONNX's test layout."""
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

F = np.float32
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
onnxruntime.set_default_logger_severity(4)


def rounded(x, grid, cut=False):
    """float32 values on another grid: float16, bfloat16 or tf32; nearest even, or cut off towards zero."""
    x = np.asarray(x, F)
    if grid == "float16":
        near = x.astype(np.float16)
        if cut:
            away = np.abs(near.astype(F)) > np.abs(x)
            near = np.where(away, np.nextafter(near, np.float16(0)), near)
        return near.astype(F)
    drop = {"bfloat16": 16, "tf32": 13}[grid]
    bits = x.view(np.uint32).astype(np.uint64)
    if not cut:
        bits = bits + (1 << (drop - 1)) - 1 + (bits >> drop & 1)
    return (bits >> drop << drop).astype(np.uint32).view(F).reshape(x.shape)


class Case:
    """One node with what goes in. `weights` are the names of the inputs that the model holds as constants."""

    def __init__(self, op, arrays, weights=(), opset=20, outputs=1, domain="", **attributes):
        self.op, self.opset, self.domain, self.attributes, self.outputs = op, opset, domain, attributes, outputs
        self.arrays = arrays  # None where an optional input is absent.
        self.weights = set(weights)

    def changed(self, arrays=None, **attributes):
        """The same node with other inputs (by place) or attributes; None takes an attribute away."""
        merged = {**self.attributes, **attributes}
        new = list(self.arrays)
        for i, array in (arrays or {}).items():
            new[i] = array
        return Case(self.op, new, self.weights, self.opset, self.outputs, self.domain, **{k: v for k, v in merged.items() if v is not None})

    def model(self, constants=True):
        names = [f"i{k}" if array is not None else "" for k, array in enumerate(self.arrays)]
        while names and not names[-1]:
            names.pop()
        node = helper.make_node(self.op, names, [f"o{k}" for k in range(self.outputs)], domain=self.domain, name="node", **self.attributes)
        typed = lambda k: helper.make_tensor_value_info(names[k], helper.np_dtype_to_tensor_dtype(self.arrays[k].dtype), self.arrays[k].shape)
        given = [k for k, name in enumerate(names) if name and not (constants and k in self.weights)]
        held = [numpy_helper.from_array(self.arrays[k], names[k]) for k in sorted(self.weights) if constants and k < len(names) and names[k]]
        outputs = [helper.make_empty_tensor_value_info(f"o{k}") for k in range(self.outputs)]
        opsets = [helper.make_opsetid("", self.opset)] + ([helper.make_opsetid(self.domain, 1)] if self.domain else [])
        graph = helper.make_graph([node], "g", [typed(k) for k in given], outputs, held)
        return helper.make_model(graph, opset_imports=opsets, ir_version=10), [self.arrays[k] for k in given]

    def run(self):
        """The first output by ONNX Runtime, without its graph optimizations."""
        model, given = self.model(constants=False)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {i.name: array for i, array in zip(session.get_inputs(), given)})[0]

    def write(self, folder, target):
        folder = Path(folder)
        sets = folder / "test_data_set_0"
        sets.mkdir(parents=True)
        model, given = self.model()
        for tensor in [target]:
            model.graph.output[0].CopyFrom(helper.make_tensor_value_info("o0", helper.np_dtype_to_tensor_dtype(tensor.dtype), None))
        onnx.save(model, str(folder / "model.onnx"))
        for k, array in enumerate(given):
            (sets / f"input_{k}.pb").write_bytes(numpy_helper.from_array(array, f"i{k}").SerializeToString())
        (sets / "output_0.pb").write_bytes(numpy_helper.from_array(np.ascontiguousarray(target), "o0").SerializeToString())
        return folder


class Plant:
    """A case, and what a target with the cause gives. `ids` may be a pair."""

    def __init__(self, ids, case, target):
        self.ids = (ids,) if isinstance(ids, str) else tuple(ids)
        self.case, self.target = case, np.asarray(target)
