#!/usr/bin/env python3
"""Writes data/catalog/aten_parts.json: which calls PyTorch makes of each call that it takes apart by itself before a device sees it, and which
operators of ONNX do the same as a call (tools/aten_onnx.py).

  tools/trace_parts.py [OUTPUT]

Needs torch, expecttest and the packages of tools/requirements.txt. Programs of torch.export and TorchScript hold such calls as the model wrote them
(aten::linear, aten::conv2d); what has no kernel of its own is run on the samples of PyTorch's own tests, in inference, and its calls are kept."""
import collections
import pathlib
import sys
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db

import aten_onnx
from catalog_files import write
from trace_aten import Calls

SAMPLES = 12  # Of one operator and element type: forms of its arguments repeat.
# A kernel that is written for the CPU alone stands for the one that each device has.
ONE_FOR_ALL = {"aten::_scaled_dot_product_flash_attention_for_cpu": "aten::_scaled_dot_product_fused_attention_overrideable"}
DTYPES = (torch.float32, torch.int64)
F = torch.nn.functional
T = torch.ones
# What the samples of PyTorch's tests lack, as models call it.
MORE = [lambda: F.dropout(T(2, 3), 0.5, False), lambda: F.dropout2d(T(1, 2, 3, 3), 0.5, False), lambda: F.alpha_dropout(T(2, 3), 0.5, False),
        lambda: F.linear(T(2, 3), T(4, 3), T(4)), lambda: F.linear(T(2, 5, 3), T(4, 3)), lambda: torch.matmul(T(2, 3), T(3, 4)),
        lambda: torch.matmul(T(2, 5, 3), T(2, 3, 4)), lambda: F.multi_head_attention_forward(
            T(3, 2, 4), T(3, 2, 4), T(3, 2, 4), 4, 2, T(12, 4), T(12), None, None, False, 0.0, T(4, 4), T(4), training=False, need_weights=False)]


def name_of(function):
    schema = function._schema
    return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")


class Split(torch.fx.Interpreter):
    """Runs a graph of calls as a model writes them, and keeps for each of them what reaches the device."""

    def __init__(self, graph, found):
        super().__init__(graph)
        self.found = found

    def call_function(self, target, args, kwargs):
        if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
            return super().call_function(target, args, kwargs)
        with torch.no_grad(), Calls() as calls:
            result = super().call_function(target, args, kwargs)
        name = name_of(target)
        if name not in calls.names:
            self.found[name].append({ONE_FOR_ALL.get(each, each) for each in calls.names if not each.startswith("aten::empty")})
        return result


def trace(function, arguments, named, found):
    values = [each for each in arguments if isinstance(each, torch.Tensor)]

    def run(*tensors):
        left = iter(tensors)
        return function(*[next(left) if isinstance(each, torch.Tensor) else each for each in arguments], **named)
    with torch.no_grad():
        graph = make_fx(run, pre_dispatch=True, tracing_mode="real")(*values)
    Split(graph, found).run(*values)


def samples():
    for info in op_db:
        for dtype in DTYPES:
            if dtype not in info.supported_dtypes("cpu"):
                continue
            try:
                for number, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=False)):
                    if number == SAMPLES:
                        break
                    yield info.name, info.op, [sample.input, *sample.args], {**sample.kwargs, **({"training": False} if "training" in sample.kwargs else {})}
            except Exception as problem:  # Any: samples that need what is not here.
                print(info.name, type(problem).__name__, file=sys.stderr)
    for each in MORE:
        yield "more", each, [], {}


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "data" / "catalog" / "aten_parts.json"
    found, failed = collections.defaultdict(list), collections.Counter()
    with torch.backends.mkldnn.flags(enabled=False):
        for name, function, arguments, named in samples():
            try:
                trace(function, arguments, named, found)
            except Exception:  # Any: what cannot be traced tells nothing.
                failed[name] += 1
    ops = {}
    for name, traces in found.items():
        always = set.intersection(*traces)
        entry = {"calls": sorted(always), "sometimes": sorted(set.union(*traces) - always), "cases": len(traces)}
        if not set.union(*traces):
            entry["note"] = "no call: it concerns shapes alone, or hands its input on"
        ops[name] = {key: value for key, value in entry.items() if value != []}
    for name, alternatives in aten_onnx.entries().items():
        ops.setdefault(name, {})["onnx"] = alternatives
    version = torch.__version__
    header = {"schema": 1, "platform": "aten-parts", "version": version.split("+")[0], "vocabulary": "map",
              "sources": [{"how": f"traced with torch {version} on the samples of its own operator tests, in inference", "date": "2026-12-01"},
                          {"what": "operators of ONNX that do the same, by the definitions of PyTorch and ONNX", "date": "2026-12-01"}],
              "date": "2026-12-01"}
    write(output, header, ops)
    print(f"{len(ops)} calls that are taken apart, from {sum(len(each) for each in found.values())} traces; {sum(failed.values())} samples were not traced")


if __name__ == "__main__":
    main()
