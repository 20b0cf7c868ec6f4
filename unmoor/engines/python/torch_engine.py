"""PyTorch on any device that it, or a plug-in of a vendor, provides. Its values get the names that the ONNX model has for them."""
import ast
import os
import re
import time

from unmoor_onnx_file import OnnxFile
from unmoor_probe import KINDS, PLUGINS, backend
from unmoor_serve import Bits, Missing, Wrong, choose, need, threads_of, versions_of
from unmoor_torch_program import by_name_or_position, open_program

CONTENT_TOLERANCE = 1e-3  # Relative L2; what is further apart is not taken for the same value.
CONTENT_ELEMENTS = 8      # Less says too little.
LISTED = 5


def open_device(torch, text):
    kind = text.split(":")[0]
    if kind not in KINDS:
        raise Wrong(f"PyTorch has no device '{kind}'; known are: {', '.join(KINDS)}")
    if kind in PLUGINS:
        need(PLUGINS[kind])
    if kind != "cpu":
        module = backend(torch, kind)
        if module is None or not module.is_available():
            raise Missing(f"PyTorch {torch.__version__} finds no {kind} device; its build for {kind}, or the driver, is missing")
    return torch.device(text)


def to_numpy(torch, tensor):
    tensor = tensor.detach().to("cpu").contiguous()
    names = {torch.bfloat16: "bfloat16", torch.float8_e4m3fn: "float8e4m3fn", torch.float8_e5m2: "float8e5m2"}
    if tensor.dtype in names:
        plain = torch.uint16 if tensor.dtype == torch.bfloat16 else torch.uint8
        return Bits(names[tensor.dtype], tensor.view(plain).numpy())
    return tensor.numpy()


def to_tensor(torch, value, device):
    if not isinstance(value, Bits):
        return torch.from_numpy(value).to(device)
    types = {"bfloat16": torch.bfloat16, "float8e4m3fn": torch.float8_e4m3fn, "float8e5m2": torch.float8_e5m2}
    if value.dtype not in types:
        raise Wrong(f"PyTorch has no type {value.dtype}")
    return torch.from_numpy(value.array).view(types[value.dtype]).to(device)


def fx_name(node):
    """The node of the exported program that an ONNX node was made from, and its operator, as torch.onnx's exporter wrote them."""
    found = re.match(r"%(\w+) .*?\[target=([^\]]+)\]", node.metadata.get("pkg.torch.onnx.fx_node", ""))
    return (found[1], found[2].removeprefix("torch.ops.")) if found else (None, None)


def modules_of(node):
    """Paths of the modules that an ONNX node lies in: from the exporter's metadata, or from names like /net/layer.0/MatMul."""
    scopes = node.metadata.get("pkg.torch.onnx.name_scopes")
    if scopes:
        try:
            return [each for each in ast.literal_eval(scopes)[:-1] if each]
        except (SyntaxError, ValueError):
            return []
    parts = node.name.split("/")[1:-1] if node.name.startswith("/") else []
    return [".".join(parts[:i + 1]) for i in range(len(parts))]


def module_path(parts):
    """TorchScript's names repeat the module's own name before an index: /layer/layer.0 is layer.0."""
    return re.sub(r"\b(\w+)\.\1\.(\d+)", r"\1.\2", parts)


def place(modules, target):
    """Where a node of an exported program stands: the innermost module, and its operator."""
    return f"{' '.join(modules[-1:])} {target}"


def places_of(file):
    """The values of an ONNX file by the place of the node that the exporter made them from; the last one where it wrote several for one."""
    made, places = {}, {}
    for node in file.nodes:
        name, target = fx_name(node)
        if name and len(node.outputs) == 1 and (name not in made or made[name][1] != name):
            made[name] = (place(modules_of(node), target), node.outputs[0])
    for where, output in made.values():
        places.setdefault(where, []).append(output)
    return places


def last_in_module(file):
    return {module_path(path): node.outputs[0] for node in file.nodes if node.outputs for path in modules_of(node)}


def script_names(path):
    """What dump_script.py must know of an ONNX file."""
    file = OnnxFile(path)
    return [file.inputs, file.outputs, places_of(file), last_in_module(file)]


class Matches:
    """Which value of the ONNX model each value of the program is."""

    def __init__(self, file, program, allowed):
        self.file, self.program, self.allowed = file, program, allowed
        self.names = {}  # Of the ONNX model, by the program's.
        self.modules = set(last_in_module(file))
        self.before_folded = self.find_folded()
        self.by_name()
        self.by_place()
        self.by_module()

    def find_folded(self):
        """Values before a module that the ONNX file does not have: the exporter folded it into them (batch normalization into a convolution)."""
        values = self.program.values
        return {value.name for value, after in zip(values, values[1:]) if after.modules and after.modules[-1] not in self.modules}

    def add(self, theirs, ours):
        if ours in self.allowed and theirs not in self.before_folded and theirs not in self.names and ours not in self.names.values():
            self.names[theirs] = ours

    def by_place(self):
        """Exporters renumber names; the k-th use of an operator in a module stays, if both sides use it as often there."""
        theirs = {}
        for value in self.program.values:
            theirs.setdefault(place(value.modules, value.target), []).append(value.name)
        for where, outputs in places_of(self.file).items():
            if len(outputs) == len(theirs.get(where, ())):
                for name, output in zip(theirs[where], outputs):
                    self.add(name, output)

    def by_name(self):
        """Where the exporter says nothing of its own: a name that both have."""
        theirs = {each.name for each in self.program.values}
        for node in self.file.nodes:
            if fx_name(node)[0] is None:
                for output in theirs.intersection(node.outputs):
                    self.add(output, output)

    def by_module(self):
        ours, theirs = last_in_module(self.file), {}
        for value in self.program.values:
            for path in value.modules:
                theirs[path] = value.name
        for path, name in theirs.items():
            if path in ours:
                self.add(name, ours[path])

    def unmatched(self):
        taken = set(self.names.values())
        return [name for name in self.file.value_names() if name in self.allowed and name not in taken and name not in self.file.outputs]


class Engine:
    def __init__(self, request):
        self.torch = torch = need("torch")
        self.settings = choose(request["settings"], {"compile": ("off", "on"), "model": str})
        self.device = open_device(torch, request["device"])
        torch.set_num_threads(threads_of(request))
        self.notes = []
        spec = self.model_of(request)
        began = time.perf_counter()
        self.program = open_program(spec, self.device)
        self.load_ms = (time.perf_counter() - began) * 1e3
        self.inputs = dict(zip(self.program.inputs, by_name_or_position("inputs", request["inputs"], self.program.inputs)))
        self.outputs = request["outputs"]
        self.versions = {**versions_of("numpy", *PLUGINS.values()), "torch": torch.__version__}
        self.shapes = request["shapes"]
        self.matches, self.values = None, []
        if self.settings["compile"] == "on":
            self.program.compile()
            self.hidden = "compiled, PyTorch shows outputs only"
        else:
            self.matches = Matches(OnnxFile(request["model"]), self.program, set(request["shown"]))
            self.unmatched = self.matches.unmatched()
            self.refresh()

    def model_of(self, request):
        if self.settings["model"]:
            return self.settings["model"]
        beside = os.path.splitext(request["model"])[0] + ".pt2"
        if os.path.isfile(beside):
            self.notes.append(f"the model is '{beside}'")
            return beside
        raise Wrong("PyTorch runs no ONNX file: give the same model as PyTorch has it with --set torch.model=FILE.pt2 (torch.export.save) or "
                    f"--set torch.model=FILE.py:FUNCTION (returns the module and example inputs), or put '{os.path.basename(beside)}' beside it")

    def refresh(self):
        matched = set(self.matches.names.values())
        self.values = [name for name in self.matches.file.value_names() if name in matched]

    def tensors(self, inputs):
        return {theirs: to_tensor(self.torch, inputs[ours], self.device) for theirs, ours in self.inputs.items()}

    def run(self, inputs, wanted, show):
        wanted, other_shapes = set(wanted or ()), []

        def show_matched(name, tensor):
            ours = self.matches.names.get(name)
            if ours not in wanted:
                return
            if self.shapes.get(ours) not in (None, list(tensor.shape)):
                other_shapes.append(ours)
            else:
                show(ours, to_numpy(self.torch, tensor))

        with self.torch.no_grad():
            if wanted and self.matches:
                found = self.program.watch(self.tensors(inputs), show_matched)
                self.say_unmatched(other_shapes)
            else:
                found = self.program.bind(self.tensors(inputs))()
        theirs = self.program.outputs if len(self.program.outputs) == len(found) else [f"output {i}" for i in range(len(found))]
        names = by_name_or_position("outputs", self.outputs, theirs)
        return {name: to_numpy(self.torch, tensor) for name, tensor in zip(names, found)}

    def say_unmatched(self, other_shapes):
        missing = self.unmatched + other_shapes
        listed = ", ".join(missing[:LISTED]) + (f" and {len(missing) - LISTED} more" if len(missing) > LISTED else "")
        self.notes = [each for each in self.notes if "of the ONNX model's values" not in each]
        self.notes.append(f"{len(self.values) - len(other_shapes)} of the ONNX model's values are matched with PyTorch's"
                          + (f"; without a match: {listed}" if missing else ""))

    def match(self, head, inputs, known):
        """What no name tells: values of the same shape and nearly the same numbers."""
        import numpy as np
        open_names = {name: np.asarray(each, np.float64) for name, each in known.items()
                      if not isinstance(each, Bits) and each.dtype.kind == "f" and each.size >= CONTENT_ELEMENTS and np.ptp(each) > 0}

        def compare(name, tensor):
            if name in self.matches.names or not tensor.is_floating_point():
                return
            candidates = [ours for ours, each in open_names.items() if each.shape == tuple(tensor.shape)]
            if not candidates:
                return
            array = tensor.detach().to("cpu", self.torch.float64).numpy()
            for ours in candidates:
                if np.linalg.norm(array - open_names[ours]) <= CONTENT_TOLERANCE * np.linalg.norm(open_names[ours]):
                    self.matches.names[name] = ours
                    del open_names[ours]
                    return

        with self.torch.no_grad():
            self.program.watch(self.tensors(inputs), compare)
        self.unmatched = self.matches.unmatched()
        self.refresh()
        return {"values": self.values, "notes": self.notes}

    def prepare(self, inputs):
        run, synchronize = self.program.bind(self.tensors(inputs)), lambda: None
        if self.device.type != "cpu":
            synchronize = getattr(self.torch, self.device.type).synchronize

        def once():
            with self.torch.no_grad():
                run()
            synchronize()

        return once
