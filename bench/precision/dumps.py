"""Whole models as dumps that `unmoor align` judges: what is right, by every runtime that is here, and what is planted.

Every value of a model is computed by ONNX Runtime, without and with its graph optimizations, on one thread and two, and by OpenVINO where it is
installed. Then single values of the plain run are replaced by wrong ones: the node is run again by ONNX Runtime on inputs rounded to fewer bits, or
NumPy adds in 16 bits, rounds the result, or moves one element or one column. No fault comes from align's own arithmetic. What changes a value by less
than 3 times the error it has anyway is left out, and counted.
"""
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime

UNIT = 2.0 ** -24
SHARE = 12  # Values that are planted in one run of align, at most,
ROUNDS = 4  # and such runs of a model.
GUILTY = 3  # Runs of a model with one wrong node as dumps, and one more live.
SKIPPED = ("Constant", "Identity", "If", "Loop", "Scan", "Shape")


def session(model, optimized, threads):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def showing_all(model):
    result = onnx.ModelProto()
    result.CopyFrom(model)
    shown = {each.name for each in result.graph.output}
    for node in result.graph.node:
        if node.op_type in SKIPPED:
            continue
        result.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name and name not in shown)
    return result


def run(model, inputs, optimized=False, threads=1):
    runner = session(model, optimized, threads)
    names = [each.name for each in runner.get_outputs()]
    return dict(zip(names, runner.run(names, inputs)))


def dump(folder, values):
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number, (name, value) in enumerate(values.items()):
        if not isinstance(value, np.ndarray) or value.dtype == object:
            continue
        np.save(folder / f"{number}.npy", value)
        entries.append({"name": name, "file": f"{number}.npy", "dtype": value.dtype.name, "shape": list(value.shape)})
    (folder / "manifest.json").write_text(json.dumps({"values": entries}))


def run_openvino(model, inputs):
    """Nothing if OpenVINO is not here, or does not take the model."""
    try:
        import openvino
    except ImportError:
        return None
    try:
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        made = compiled(inputs)
        return {name: np.asarray(value) for output, value in made.items() for name in output.get_names()}
    except Exception as error:
        print(f"OpenVINO: {str(error).splitlines()[0][:160]}")
        return None


def align(unmoor, model, inputs, values=None, target=None, settings=()):
    """What align says of a dump of `values`, or of a device or an engine."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if target is None:
            dump(folder / "dump", values)
            target = folder / "dump"
        np.savez(folder / "inputs.npz", **inputs)
        done = subprocess.run([unmoor, "align", model, "--target", target, "-i", folder / "inputs.npz", "--no-causes", "--json", "--python", sys.executable, *settings],
                              capture_output=True, check=False)
    found = json.loads(done.stdout)
    if "values" not in found:
        raise RuntimeError(found.get("reason", "align gave no values"))
    return found


def rounded(x, kind):
    if not isinstance(x, np.ndarray) or x.dtype != np.float32:
        return x
    if kind == "tf32":  # 10 bits of fraction, to nearest.
        bits = x.view(np.uint32).astype(np.uint64)
        return ((bits + 0xfff + ((bits >> 13) & 1)) & 0xffffe000).astype(np.uint32).view(np.float32)
    return x.astype(np.float16 if kind == "float16" else ml_dtypes.bfloat16).astype(np.float32)


class Nodes:
    """Nodes of a model, each of which can be run alone."""

    def __init__(self, model, values):
        self.model = model
        self.values = {**{each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}, **values}
        for node in model.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.values[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)

    def inputs(self, node):
        return {name: self.values[name] for name in node.input if name}

    def alone(self, node, inputs):
        declared = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in inputs.items()]
        graph = onnx.helper.make_graph([node], "alone", declared, [onnx.helper.make_empty_tensor_value_info(node.output[0])])
        model = onnx.helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        return run(model, inputs)[node.output[0]]


def sums_in(kind, node, inputs):
    """A product whose every partial sum is rounded; for MatMul of up to a million products."""
    dtype = np.float16 if kind == "float16" else ml_dtypes.bfloat16
    if node.op_type != "MatMul":
        return None
    a, b = (inputs[name] for name in node.input)
    if b.ndim != 2 or a.size * b.shape[-1] > 4e7:
        return None
    total = np.zeros((*a.shape[:-1], b.shape[-1]), np.float32)
    for i in range(a.shape[-1]):
        total = (total + a[..., i, None] * b[i]).astype(dtype).astype(np.float32)
    return total


def planted(kind, nodes, node):
    """The wrong first output of a node, or None where the fault does not apply."""
    inputs = nodes.inputs(node)
    clean = nodes.values[node.output[0]]
    what, _, bits = kind.partition(" ")
    if what == "inputs":
        return nodes.alone(node, {name: rounded(value, bits) for name, value in inputs.items()})
    if what == "sums":
        return sums_in(bits, node, inputs)
    if what == "result":
        return rounded(clean, bits)
    if clean.size < 64:
        return None
    wrong = clean.copy()
    if what == "element":
        order = np.argsort(np.abs(clean).ravel())
        wrong.ravel()[order[clean.size // 2]] *= 1 + 2000 * UNIT
    if what == "edge":
        wrong[..., -1] = nodes.alone(node, {name: rounded(value, "bfloat16") for name, value in inputs.items()})[..., -1]
    return wrong


# Those that are rare elsewhere come twice.
KINDS = ("element", "edge", "inputs bfloat16", "inputs float16", "inputs tf32", "sums float16", "sums bfloat16", "result float16", "result bfloat16", "result tf32", "element", "edge")
WHOLE = ("inputs bfloat16", "result float16", "inputs tf32", "result bfloat16")


def relative(wrong, clean):
    size = np.linalg.norm(clean.astype(np.float64))
    return np.linalg.norm(wrong.astype(np.float64) - clean) / size if size else 0.0


def is_flagged(value):
    return value["single"] is not None and value["single"]["verdict"] in ("suspicious", "differ")


def choose(nodes, judged, generator):
    """Nodes with a floating output that was judged, none of which reads what another makes."""
    taken, chosen = set(), []
    order = [node for node in nodes.model.graph.node if node.op_type not in SKIPPED and node.output[0] in judged]
    for index in generator.permutation(len(order)):
        node = order[index]
        clean = nodes.values.get(node.output[0])
        moves = judged[node.output[0]]["single"].get("excess_e") is None and judged[node.output[0]]["single"].get("max_abs") == 0
        if clean is None or clean.dtype != np.float32 or moves or any(name in taken for name in node.input) or any(each in other.input for other in chosen for each in node.output):
            continue
        if any(name not in nodes.values for name in node.input if name):
            continue
        taken.update(node.output)
        chosen.append(node)
    return chosen[:SHARE]


def legitimate(unmoor, path, model, inputs, counts):
    """The plain run's values, what align says of them, and of each value the largest relative error that any of the runtimes makes there on its own
    inputs. `counts` takes all runs: lists of rows under "right" and "entire"."""
    everything = showing_all(model)
    runs = {"ONNX Runtime, plain": run(everything, inputs), "ONNX Runtime, 2 threads": run(everything, inputs, threads=2),
            "ONNX Runtime, optimized": run(everything, inputs, optimized=True, threads=2), "OpenVINO": run_openvino(everything, inputs)}
    found_of = {name: align(unmoor, path, inputs, values)["values"] for name, values in runs.items() if values is not None}
    found_of["cpu device"] = align(unmoor, path, inputs, target="cpu")["values"]
    found_of["cpu device, 1 thread, exact"] = align(unmoor, path, inputs, target="cpu", settings=("--exact", "--threads", "1"))["values"]
    judged, worst = None, collections.defaultdict(float)
    for name, found in found_of.items():
        judged = judged or {value["name"]: value for value in found if value["single"]}
        for value in found:
            row = {"model": Path(path).stem, "op": value["op"], "name": value["name"]}
            single, entire = value["single"], value["entire"]
            if single is not None:
                worst[value["name"]] = max(worst[value["name"]], single["rel_l2"] or 0)
                counts["right"][name].append({**row, "flagged": is_flagged(value), **{key: single.get(key) for key in ("excess_e", "excess_p", "rel_l2")}})
            if entire is not None:
                counts["entire"][name].append({**row, "e": entire.get("excess_e"), "p": entire.get("excess_p"),
                                               "passes": entire["verdict"] not in ("suspicious", "differ")})
    return runs["ONNX Runtime, plain"], judged, worst


def effect(kind, wrong, clean):
    """Of a change in all elements its relative error, of one in some the largest change over the largest element."""
    if kind in ("element", "edge"):
        return np.abs(wrong - clean).max() / max(np.abs(clean).max(), 1e-30)
    return relative(wrong, clean)


def measure(unmoor, path, inputs, counts, plants=True):
    """Adds rows to `counts`: "right", "entire", "wrong" (planted, by kind), "guilty" (of runs with one plant, what was blamed first), and "left out", a number by kind."""
    model = onnx.load(path)
    plain, judged, worst = legitimate(unmoor, path, model, inputs, counts)
    if not plants:
        return
    nodes = Nodes(model, {**inputs, **plain})
    for number in range(ROUNDS):
        values, wrong = dict(plain), {}
        for place, node in enumerate(choose(nodes, judged, np.random.default_rng(number))):
            kind, name = KINDS[(number * SHARE + place) % len(KINDS)], node.output[0]
            try:
                result = planted(kind, nodes, node)
            except Exception:  # What ONNX Runtime does not run alone, such as a node of a type that it only fuses.
                continue
            clean = nodes.values[name]
            if result is None or result.shape != clean.shape:
                continue
            if effect(kind, result, clean) > 3 * worst[name]:
                wrong[name], values[name] = kind, result
            else:
                counts["left out"][kind] += 1
        for value in align(unmoor, path, inputs, values)["values"] if wrong else []:
            if value["single"] and value["name"] in wrong:
                counts["wrong"][wrong[value["name"]]].append({"model": Path(path).stem, "op": value["op"], "name": value["name"], "flagged": is_flagged(value),
                                                              **{key: value["single"].get(key) for key in ("excess_e", "excess_p", "rel_l2")}})
    blame(unmoor, path, model, inputs, nodes, judged, worst, counts)


def continued(model, name, value, inputs):
    """All values of a run in which this one is `value`, and what follows is computed of it."""
    result = showing_all(model)
    for node in list(result.graph.node):
        if name in node.output and len(node.output) > 1:
            return None
        if name in node.output:
            result.graph.node.remove(node)
    kept = [each for each in result.graph.output if each.name != name]
    del result.graph.output[:]
    result.graph.output.extend(kept)
    result.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    return {**run(result, {**inputs, name: value}), name: value}


def run_with_fault(model, inputs, name, kind):
    """All values of a run in which one node is wrong: ONNX Runtime's, but for that node."""
    nodes = Nodes(model, {**inputs, **run(showing_all(model), inputs)})
    node = next(each for each in model.graph.node if name in each.output)
    return continued(model, name, planted(kind, nodes, node), inputs)


ENGINE = """import sys
sys.path[:0] = {paths}
import onnx
import dumps
def load(path):
    global model
    model = onnx.load(path)
def run(inputs, wanted=None):
    values = dumps.run_with_fault(model, inputs, {name!r}, {kind!r})
    return {{each: values[each] for each in wanted or [one.name for one in model.graph.output]}}
"""


def blame(unmoor, path, model, inputs, nodes, judged, worst, counts):
    """Runs with one wrong node each, as dumps and of a live engine: the first value that is flagged should be its own."""
    left = {"dump": GUILTY, "live": 1}
    for number, node in enumerate(choose(nodes, judged, np.random.default_rng(ROUNDS))):
        kind, name, how = WHOLE[number % len(WHOLE)], node.output[0], "dump" if left["dump"] else "live"
        if not left[how]:
            return
        try:
            values = run_with_fault(model, inputs, name, kind)
        except Exception:
            continue
        if values is None or not relative(values[name], nodes.values[name]) > 3 * worst[name]:
            continue
        left[how] -= 1
        with tempfile.TemporaryDirectory() as folder:
            engine = Path(folder) / "engine.py"
            engine.write_text(ENGINE.format(paths=[str(Path(__file__).parent)], name=name, kind=kind))
            found = align(unmoor, path, inputs, values) if how == "dump" else align(unmoor, path, inputs, target=f"py:{engine}")
        first = next((value["name"] for value in found["values"] if value["single"] and is_flagged(value)), None)
        counts["guilty"][how].append({"model": Path(path).stem, "op": node.op_type, "name": name, "kind": kind, "first": first, "right": first == name})
