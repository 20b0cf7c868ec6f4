"""Who answers conformance cases beside the reference: the onnx package's evaluator, ONNX Runtime, PyTorch and SciPy."""
import multiprocessing
import resource
import signal
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

WIDENED = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}
MOST_BYTES = 6 << 30  # Of an answerer's process.
PATIENCE = 5  # Seconds of processor time for all answers to a case: sizes that only look at no elements keep some loops for ever.
SILENCE = 300  # Seconds without an answer, however busy the machine is.


def load(folder):
    """A case's text, model, inputs and the reference's outputs."""
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


def by_torch(model, inputs):
    import torch_answers
    return torch_answers.answer(model, inputs)


def answers(model, inputs, left_out=()):
    """What each answerer says: (who, outputs), those that compute in float64 first. `left_out`: those that do not come back from this case."""
    def by_wide_evaluator():
        try:
            wide, wide_inputs = widened(model, inputs)
        except Exception:  # noqa: BLE001: a schema that is not known
            wide = None
        if wide is not None:
            try:
                return f"onnx {onnx.__version__} float64", by_evaluator(wide, wide_inputs)
            except Exception:  # noqa: BLE001: whatever it cannot do in float64 it may do in the stored dtype
                pass
        return f"onnx {onnx.__version__}", by_evaluator(model, inputs)
    asked = {"torch": lambda: by_torch(model, inputs), "onnx": by_wide_evaluator, "onnxruntime": lambda: ("onnxruntime", by_onnxruntime(model, inputs))}
    found = []
    for name, ask in asked.items():
        if name in left_out:
            continue
        try:
            found.append(ask())
        except Exception:  # noqa: BLE001: whatever it cannot do it does not answer
            continue
    return found


def serve(pipe, judge):
    warnings.simplefilter("ignore")
    import torch_answers  # noqa: F401: before the first case, whose time it would take
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    pipe.send("ready")
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return  # Nobody asks any more.
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)  # It ends the process.
        try:
            pipe.send(judge(*asked))
        except (ValueError, MemoryError):
            pipe.send(None)


class Answerer:
    """Judges cases in a process of its own, since runtimes abort on some, or never end. `judge` is a function of a folder and of who is left out."""

    def __init__(self, judge):
        self.function = judge
        self.process = None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.function), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def judge(self, folder):
        left_out = ()
        while len(left_out) < 3:
            if self.process is None or not self.process.is_alive():
                self.start()
            try:
                self.pipe.send((folder, left_out))
                if self.pipe.poll(SILENCE):
                    return self.pipe.recv()
                self.process.kill()
            except (EOFError, BrokenPipeError):
                pass
            self.process.join()
            suspect = "onnx" if self.process.exitcode in (-signal.SIGPROF, -signal.SIGKILL) else "onnxruntime"
            left_out = (*left_out, "torch" if suspect in left_out else suspect)
        return None
