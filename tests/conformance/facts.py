#!/usr/bin/env python3
"""Independent answers to conformance cases: made once by other implementations, kept as facts, checked against the reference in ./test.

  tests/conformance/facts.py make  --unmoor build/release/unmoor     asks the onnx package's evaluator in float64 and ONNX Runtime
  tests/conformance/facts.py check --unmoor build/release/unmoor     compares the reference's outputs with what is kept

A fact is a line of facts.jsonl: the case, who answered, and by output dtype, shape and up to eight elements. What an answerer computed in
float64 must be met within one step of the stored dtype, two for functions and for several roundings; what it computed in the stored
dtype, within that dtype's usual tolerance. Answers that contradict each other are not kept: `make` lists them, to be settled by the
specification.
"""
import argparse
import collections
import json
import math
import multiprocessing
import pathlib
import resource
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "facts.jsonl"
WIDENED = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}
FLOATS = {np.dtype(np.float64): (52, -1022), np.dtype(np.float32): (23, -126), np.dtype(np.float16): (10, -14), np.dtype(ml_dtypes.bfloat16): (7, -126)}
STEPS = 2
SAMPLES = 8
MOST_BYTES = 4 << 30  # Of an answerer's process.
PATIENCE = 5  # Seconds for all answers to a case.
# |answer - reference| <= tolerance * (rms + |answer|) where the answerer computed in the stored dtype.
USUAL = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-5, np.dtype(np.float16): 2e-3, np.dtype(ml_dtypes.bfloat16): 1.6e-2}


def load(folder):
    model = onnx.load(str(folder / "model.onnx"))
    data = folder / "test_data_set_0"

    def read(stem, declared):
        values = []
        for i, each in enumerate(declared):
            kind = each.type.WhichOneof("value")
            raw = (data / f"{stem}_{i}.pb").read_bytes()
            if kind == "tensor_type":
                values.append(numpy_helper.to_array(TensorProto.FromString(raw)))
            elif kind == "sequence_type":
                values.append(numpy_helper.to_list(onnx.SequenceProto.FromString(raw)))
            else:
                raise ValueError(f"a value is a {kind}")
        return values
    return (folder / "case.txt").read_text().strip(), model, read("input", model.graph.input), read("output", model.graph.output)


def may_widen(model):
    """The names of values whose type parameter allows float64."""
    node = model.graph.node[0]
    version = next(each.version for each in model.opset_import if each.domain == node.domain)
    schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    allowed = {each.type_param_str for each in schema.type_constraints if "tensor(double)" in each.allowed_type_strs}
    names = set()
    for i, name in enumerate(node.input):
        port = schema.inputs[min(i, len(schema.inputs) - 1)]
        if port.type_str in allowed:
            names.add(name)
    return names


def widened(model, inputs):
    """The model and its inputs in float64; nothing where there is nothing to widen."""
    names = may_widen(model)
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    changed = False
    for i, each in enumerate(wide.graph.input):
        if each.name in names and each.type.tensor_type.elem_type in WIDENED:
            each.type.tensor_type.elem_type = TensorProto.DOUBLE
            inputs = inputs[:i] + [inputs[i].astype(np.float64)] + inputs[i + 1:]
            changed = True
    for each in wide.graph.initializer:
        if each.name in names and each.data_type in WIDENED:
            each.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(each).astype(np.float64), each.name))
            changed = True
    for each in wide.graph.output:
        each.type.tensor_type.ClearField("elem_type")
        each.type.tensor_type.elem_type = TensorProto.UNDEFINED
    return (wide, inputs) if changed else (None, None)


def by_evaluator(model, inputs):
    from onnx.reference import ReferenceEvaluator
    names = [each.name for each in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))


def by_onnxruntime(model, inputs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(copy.ir_version, 10)
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([each.name for each in model.graph.input], inputs)))


def answers(model, inputs, with_runtime=True):
    """What each answerer says: (who, in float64?, outputs)."""
    found = []
    try:
        wide, wide_inputs = widened(model, inputs)
    except Exception:  # noqa: BLE001: a schema that is not known
        wide = None
    for who, exact, ask in ((f"onnx {onnx.__version__} float64", True, lambda: by_evaluator(wide, wide_inputs)),
                            ("onnxruntime", False, lambda: by_onnxruntime(model, inputs)),
                            (f"onnx {onnx.__version__}", False, lambda: by_evaluator(model, inputs))):
        if (exact and wide is None) or (who == "onnxruntime" and not with_runtime):
            continue
        try:
            found.append((who, exact, ask()))
        except Exception:  # noqa: BLE001: whatever it cannot do it does not answer
            continue
    return found


def step_of(dtype, value):
    digits, lowest = FLOATS[dtype]
    exponent = lowest if value == 0 or not math.isfinite(value) else max(math.frexp(abs(value))[1] - 1, lowest)
    return math.ldexp(1.0, exponent - digits)


def places(count):
    """Up to SAMPLES elements: the first, the last and some between."""
    return list(range(count)) if count <= SAMPLES else sorted({round(i * (count - 1) / (SAMPLES - 1)) for i in range(SAMPLES)})


def rms(values):
    numbers = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    return math.sqrt(sum(value * value for value in numbers) / len(numbers)) if numbers else 0.0


def agrees(expected, found, dtype, exact, scale):
    """Whether a stored element meets the answer."""
    if dtype not in FLOATS:
        return expected == found
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    if expected == found:
        return True
    largest = float(ml_dtypes.finfo(dtype).max)
    if abs(expected) > largest and math.isfinite(expected):  # Rounded once, it is infinite or the largest.
        return abs(found) >= largest and (found > 0) == (expected > 0)
    if math.isinf(expected) or math.isinf(found):
        return False
    if exact:
        return abs(expected - found) <= STEPS * step_of(dtype, expected)
    return abs(expected - found) <= USUAL[dtype] * (scale + abs(expected))


def plain(value):
    """An element as JSON holds it."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (bytes, str)):
        return value.decode() if isinstance(value, bytes) else value
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, (bool, int)):
        return int(value)
    return float(value)


def describe(outputs, stored):
    """Dtype and shape as the reference stores them, elements as the answerer has them. None if kinds or shapes differ."""
    described = []
    for output, ours in zip(outputs, stored):
        if isinstance(ours, list) or isinstance(output, list) or output is None:
            return None
        output = np.asarray(output)
        if output.shape != ours.shape:
            return None
        at = places(ours.size)
        flat = output.reshape(-1)
        described.append({"dtype": str(ours.dtype), "shape": list(ours.shape), "values": [plain(flat[i]) for i in at]})
    return described


def problem(fact, stored):
    """Why the reference's outputs do not meet a fact; empty if they do."""
    if len(fact["outputs"]) != len(stored):
        return f"{len(stored)} outputs, not {len(fact['outputs'])}"
    for number, (told, ours) in enumerate(zip(fact["outputs"], stored)):
        if isinstance(ours, list):
            return f"output {number} is a sequence"
        if str(ours.dtype) != told["dtype"] or list(ours.shape) != told["shape"]:
            return f"output {number} is {ours.dtype}{list(ours.shape)}, not {told['dtype']}{told['shape']}"
        flat = ours.reshape(-1)
        scale = rms(told["values"])
        for i, expected in zip(places(ours.size), told["values"]):
            found = plain(flat[i])
            if not agrees(expected, found, ours.dtype, "float64" in fact["by"], scale):
                return f"output {number}, element {i} is {found}, not {expected}"
    return ""


def write_cases(unmoor, folder):
    subprocess.run([unmoor, "conformance", "--write", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.iterdir())


def judge(folder, with_runtime):
    """A case's text and, by answerer, what is wrong and the fact it would make."""
    case, model, inputs, stored = load(folder)
    said = []
    for who, _, outputs in answers(model, inputs, with_runtime):
        described = describe(outputs, stored)
        fact = {"case": case, "by": who, "outputs": described}
        said.append((who, "another shape or kind" if described is None else problem(fact, stored), fact))
    return case, said


def serve(pipe):
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    while True:
        folder, with_runtime = pipe.recv()
        try:
            pipe.send(judge(folder, with_runtime))
        except (ValueError, MemoryError):
            pipe.send(None)


class Answerer:
    """Judges cases in a process of its own, since runtimes abort on some."""

    def __init__(self):
        self.process = None

    def judge(self, folder):
        for with_runtime in (True, False):
            if self.process is None or not self.process.is_alive():
                context = multiprocessing.get_context("spawn")
                self.pipe, theirs = context.Pipe()
                self.process = context.Process(target=serve, args=(theirs,), daemon=True)
                self.process.start()
                theirs.close()
            try:
                self.pipe.send((folder, with_runtime))
                if self.pipe.poll(PATIENCE):
                    return self.pipe.recv()
                self.process.kill()  # Sizes that only look at no elements keep some for ever.
                self.process.join()
            except (EOFError, BrokenPipeError):
                self.process.join()
        return None


def make(unmoor, only):
    answerer = Answerer()
    counts = collections.Counter()
    lines, against = [], []
    with tempfile.TemporaryDirectory() as place:
        for folder in write_cases(unmoor, pathlib.Path(place) / "cases"):
            if only and (folder / "case.txt").read_text().split(" ")[0] not in only:
                continue
            counts["cases"] += 1
            judged = answerer.judge(folder)
            if judged is None:
                continue
            case, said = judged
            agreed = [fact for _, why, fact in said if not why]
            if agreed:
                counts[agreed[0]["by"]] += 1
                lines.append(json.dumps(agreed[0], separators=(",", ":")))
            if any(why for _, why, _ in said):
                against.append((case, bool(agreed), [(who, why) for who, why, _ in said if why]))
    if not only:
        KEPT.write_text("\n".join(lines) + "\n")
    for case, settled, whys in against:
        if not settled:
            print(case, *(f"\n    {who}: {why}" for who, why in whys))
    print(f"{sum(1 for each in against if not each[1])} cases that nobody confirms and somebody contradicts; {len(lines)} facts; {dict(counts)}")


def check(unmoor):
    facts = {}
    for line in KEPT.read_text().splitlines():
        fact = json.loads(line)
        facts[fact["case"]] = fact
    failures = []
    met = 0
    with tempfile.TemporaryDirectory() as place:
        for folder in write_cases(unmoor, pathlib.Path(place) / "cases"):
            case = (folder / "case.txt").read_text().strip()
            fact = facts.pop(case, None)
            if fact is None:
                continue
            why = problem(fact, load(folder)[3])
            met += not why
            if why:
                failures.append(f"{case}\n    {fact['by']}: {why}")
    failures += [f"{case}: there is a fact for it, and the case is gone: run facts.py make" for case in facts]
    print("\n".join(failures[:50]))
    print(f"{met} cases meet their independent answers, {len(failures)} do not")
    return 1 if failures or met == 0 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("--unmoor", required=True)
    parser.add_argument("--op", default="", help="make: only these operators, and nothing is written")
    options = parser.parse_args()
    if options.what == "check":
        return check(options.unmoor)
    make(options.unmoor, set(filter(None, options.op.split(","))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
