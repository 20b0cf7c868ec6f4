#!/usr/bin/env python3
"""Writes data/catalog/onnx_aten.json: which ATen calls stand for each operator of ai.onnx.

  tools/trace_aten.py [OUTPUT]

Needs torch beside the packages of tools/requirements.txt. Every operator is written with PyTorch in tools/aten_forms.py, run on ONNX's own operator
cases, and its results are compared with what ONNX expects; only of forms that agree are the calls written down. What PyTorch takes apart by itself
before a device sees it is not in the list: these are the calls that a device must have."""
import collections
import pathlib
import sys
import warnings

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests
from torch.utils._python_dispatch import TorchDispatchMode

import aten_forms
from catalog_files import write

TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
# Of the tracing itself: constants put into tensors, and views that no device is asked for.
BOOKKEEPING = {"aten::detach", "aten::lift_fresh", "aten::alias", "aten::_to_copy.default"}


class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        schema = function._schema
        op = schema.name[:-1] if schema.name.endswith("_") and not schema.name.endswith("__") else schema.name  # In place or not, it is the same kernel.
        name = op + (f".{schema.overload_name}" if schema.overload_name else "")
        if name not in BOOKKEEPING:
            self.names.add(name)
        return function(*arguments, **(named or {}))


def agrees(found, expected):
    if found is None:
        return False
    if isinstance(expected, list):
        return isinstance(found, (list, tuple)) and len(found) == len(expected) and all(map(agrees, found, expected))
    wanted = np.asarray(expected)
    found = found.detach().numpy() if isinstance(found, torch.Tensor) else np.asarray(found)
    if found.shape != wanted.shape or (found.dtype != wanted.dtype):
        return False
    return np.allclose(found.astype(np.float64), wanted.astype(np.float64), equal_nan=True, **TOLERANCE) if wanted.dtype != bool else bool((found == wanted).all())


def plain(value):
    """A value of a case: some come as protobuf messages."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def as_torch(value):
    if isinstance(value, list):
        return [as_torch(each) for each in value]
    return None if value is None else torch.from_numpy(np.array(value))


def trace(node, data):
    """The calls of one node on one set of values; None if the form does not apply or does not agree with ONNX."""
    form = aten_forms.FORMS[node.op_type]
    inputs, outputs = ([plain(each) for each in side] for side in data)
    left = iter(inputs)
    given = [next(left) if name else None for name in node.input]
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    attributes = {key: value.decode() if isinstance(value, bytes) else value for key, value in attributes.items()}
    values = [np.asarray(value).tolist() if i in form.lists and value is not None else as_torch(value) for i, value in enumerate(given)]
    with torch.no_grad(), Calls() as calls:
        found = form.function(attributes, len([name for name in node.output if name]), *values)
    found = list(found) if isinstance(found, (tuple, list)) and not form.sequence else [found]
    if not form.sequence:  # Only the outputs that the node names.
        found = [found[i] for i, name in enumerate(node.output) if name and i < len(found)]
    return calls.names if len(found) == len(outputs) and all(map(agrees, found, outputs)) else None


def collect():
    counts, seen, failed = collections.Counter(), {}, collections.Counter()
    for case in load_model_tests(kind="node"):
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].domain not in ("", "ai.onnx") or nodes[0].op_type not in aten_forms.FORMS or case.model.functions:
            continue
        op = nodes[0].op_type
        try:
            names = trace(nodes[0], case.data_sets[0])
        except Exception as problem:  # Any: a form that does not take the case; it is counted and shown.
            names = None
            if "-v" in sys.argv:
                print(case.name, type(problem).__name__, str(problem)[:200])
        if names is None:
            failed[op] += 1
            continue
        counts[op] += 1
        seen.setdefault(op, []).append(names)
    return counts, seen, failed


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False
    arguments = [each for each in sys.argv[1:] if not each.startswith("-")]
    output = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent / "data" / "catalog" / "onnx_aten.json"
    counts, seen, failed = collect()
    ops = {}
    for op, traces in seen.items():
        always = set.intersection(*traces)
        entry = {"calls": sorted(always), "sometimes": sorted(set.union(*traces) - always), "cases": counts[op]}
        if not set.union(*traces):
            entry["note"] = "no call: it concerns shapes alone, or a view"
        ops[op] = {key: value for key, value in entry.items() if value != []}
    for op, note in aten_forms.WITHOUT_CALLS.items():
        ops[op] = {"note": note, **({"control_flow": True} if op in aten_forms.CONTROL_FLOW else {})}
    header = {"schema": 1, "platform": "onnx-aten", "version": torch.__version__.split("+")[0], "vocabulary": "map",
              "sources": [{"how": f"traced with torch {torch.__version__} on the operator cases of ONNX; calls of forms whose results agree", "date": "2026-12-01"}],
              "date": "2026-12-01"}
    write(output, header, ops)
    missing = sorted(set(aten_forms.FORMS) - set(seen))
    print(f"{len(ops)} operators, {sum(counts.values())} cases agree, {sum(failed.values())} do not: {dict(failed)}")
    print(f"without a case that agrees: {missing}")


if __name__ == "__main__":
    main()
