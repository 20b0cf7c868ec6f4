"""Runs cases of operators by `unmoor run` and by ONNX Runtime, and compares."""

import argparse
import dataclasses
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]


class Constant:
    """An input that is an initializer of the model."""

    def __init__(self, value, onnx_type=None):
        self.tensor = (
            numpy_helper.from_array(np.asarray(value))
            if onnx_type is None
            else helper.make_tensor("", onnx_type, np.shape(value), np.asarray(value).reshape(-1))
        )


@dataclasses.dataclass
class Case:
    op: str
    inputs: list  # Arrays, Constants, or None where absent.
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    tolerance: float = 1e-4  # Of floats: relative, and absolute as a part of the largest value.
    steps: float = 0.01  # Share of whole numbers that may be one step off, where the result is quantised.
    padded: bool = False  # Sequences by row, which ONNX Runtime leaves unset once all have ended.
    note: str = ""

    def __post_init__(self):
        self.inputs = [x if x is None or isinstance(x, Constant) else np.asarray(x) for x in self.inputs]

    def name(self):
        shapes = [("-" if x is None else str(list(x.tensor.dims if isinstance(x, Constant) else x.shape))) for x in self.inputs]
        attributes = {k: v for k, v in self.attributes.items() if not isinstance(v, onnx.GraphProto)}
        return f"{self.op} {' '.join(shapes)} {attributes} {self.note}"


def model_of(cases):
    """One model with a node for each case, and its inputs."""
    nodes, values, constants, results, feeds = [], [], [], [], {}
    for i, case in enumerate(cases):
        names = []
        for k, given in enumerate(case.inputs):
            name = "" if given is None else f"case{i}_in{k}"
            names.append(name)
            if isinstance(given, Constant):
                tensor = onnx.TensorProto()
                tensor.CopyFrom(given.tensor)
                tensor.name = name
                constants.append(tensor)
            elif given is not None:
                feeds[name] = given
                values.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(given.dtype), given.shape))
        while names and not names[-1]:
            names.pop()
        outputs = [f"case{i}_out{k}" for k in range(case.outputs)]
        results += [helper.make_empty_tensor_value_info(name) for name in outputs]
        nodes.append(helper.make_node(case.op, names, outputs, name=f"case{i}", domain="com.microsoft", **case.attributes))
    graph = helper.make_graph(nodes, "cases", values, results, constants)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10), feeds


def by_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def by_unmoor(unmoor, device, model, feeds):
    """Outputs by name; a text if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        path, given, taken = (pathlib.Path(folder) / name for name in ("cases.onnx", "inputs.npz", "outputs.npz"))
        path.write_bytes(model.SerializeToString())
        np.savez(given, **{name: value.astype(str) if value.dtype.kind == "O" else value for name, value in feeds.items()})
        command = [unmoor, "run", str(path), "-i", str(given), "-o", str(taken), "--on", device]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return (done.stderr + done.stdout).strip()[-600:]
        with np.load(taken) as archive:
            return {name: archive[name] for name in archive.files}


def difference(case, got, want):
    """A complaint about one output, or None."""
    texts = got.dtype.kind in "OUS" and want.dtype.kind in "OUS"
    if got.shape != want.shape or (got.dtype != want.dtype and not texts):
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if want.size == 0:
        return None
    if case.padded:
        ended = [column for column in range(got.shape[1]) if (got[:, column:] == 0).all()]
        got, want = (x[:, : ended[0] + 1] if ended else x for x in (got, want))
    if want.dtype.kind in "OUS":
        wrong = [f"{a!r}, not {b!r}" for a, b in zip(got.reshape(-1), want.reshape(-1)) if str(a) != str(b)]
        return wrong[0] if wrong else None
    if want.dtype.kind != "f":
        off = np.abs(got.astype(np.int64) - want.astype(np.int64))
        allowed = max(case.steps * want.size, 1) if case.steps else 0
        return (
            f"{(off > 0).sum()} of {want.size} elements differ, by up to {off.max()}"
            if off.max() > 1 or (off > 0).sum() > allowed
            else (f"{(off > 0).sum()} elements differ" if off.any() and not case.steps else None)
        )
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "finite in other places"
    a, b = a[np.isfinite(b)], b[np.isfinite(b)]
    sizes = np.abs(b[np.abs(b) < 1e30])  # What a search forbids has the lowest score there is.
    bound = case.tolerance * (np.abs(b) + (sizes.max() if sizes.size else 0)) + 1e-30
    return (
        f"off by up to {np.abs(a - b).max():.3g}, {np.max(np.abs(a - b) / bound):.3g} times what is allowed"
        if (np.abs(a - b) > bound).any()
        else None
    )


def compare(unmoor, device, cases):
    """Complaints about cases of one operator. Runs them in one model; one by one if that fails."""
    model, feeds = model_of(cases)
    want = by_onnxruntime(model, feeds)
    got = by_unmoor(unmoor, device, model, feeds)
    complaints = []
    if isinstance(got, str):
        for case in cases:
            alone, inputs = model_of([case])
            result = by_unmoor(unmoor, device, alone, inputs)
            if isinstance(result, str):
                complaints.append(f"{case.name()}: {result}")
        return complaints or [f"{cases[0].op}: all cases together: {got}"]
    for i, case in enumerate(cases):
        for k in range(case.outputs):
            wrong = difference(case, got[f"case{i}_out{k}"], want[f"case{i}_out{k}"])
            if wrong:
                complaints.append(f"{case.name()}: output {k}: {wrong}")
    return complaints


def run_cases(about, all_cases):
    """A program that compares cases, operator by operator."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unmoor", default="unmoor", help="the command to test")
    parser.add_argument("--on", default="reference", help="device")
    parser.add_argument("--only", help="one operator")
    options = parser.parse_args()
    by_op = {}
    for case in all_cases():
        by_op.setdefault(case.op, []).append(case)
    failed = 0
    for op, cases in by_op.items():
        if options.only and op != options.only:
            continue
        complaints = compare(options.unmoor, options.on, cases)
        failed += len(complaints)
        print(f"{op}: {len(cases)} cases, {len(complaints)} differ", flush=True)
        print("".join(f"    {complaint}\n" for complaint in complaints), end="", flush=True)
    return 1 if failed else 0
