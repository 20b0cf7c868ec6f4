"""What ties code to one vendor: found in a file's syntax tree. A finding has its line, its rule, what stands there, and the edits that make it portable
(start, end, text; by line and byte), or None where only a person can."""
import ast
import re

# What every backend of PyTorch has in its module, as torch.cuda does: torch.npu, torch.mlu, torch.musa, torch.xpu, torch.cpu as far as it can.
COMMON = {"is_available", "synchronize", "empty_cache", "device_count", "set_device", "current_device", "manual_seed", "manual_seed_all", "memory_allocated",
          "max_memory_allocated", "memory_reserved", "max_memory_reserved", "reset_peak_memory_stats", "Event", "Stream", "current_stream", "stream",
          "default_stream", "get_device_name", "get_device_properties", "mem_get_info", "get_rng_state", "set_rng_state", "device"}
ENVIRONMENT = re.compile(r"^(CUDA_|NCCL_|CUBLAS_|CUDNN_|NVIDIA_)|^(PYTORCH_CUDA_ALLOC_CONF|TORCH_CUDA_ARCH_LIST|TORCH_NCCL_\w+|CUDA_HOME)$")
PACKAGES = {"apex", "flash_attn", "xformers", "bitsandbytes", "pynvml", "cupy", "pycuda", "tensorrt", "torch_tensorrt", "triton", "transformer_engine", "numba.cuda"}
DEVICE = re.compile(r"^cuda(:\d+)?$")
DEVICE_KEYWORDS = {"device", "map_location", "device_type", "default"}
DEVICE_CALLS = {"to", "device", "Generator", "autocast", "type", "set_default_device", "GradScaler"}
EXTENSIONS = {"CUDAExtension", "load_inline", "CppExtension"}


def dotted(node):
    """'torch.cuda.amp' of a chain of names; empty of others."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def start(node):
    return (node.lineno, node.col_offset)


def end(node):
    return (node.end_lineno, node.end_col_offset)


# Fields of a node that hold no nodes worth a look; and those that are left, by the node's class.
PLAIN = {"ctx", "op", "ops", "id", "attr", "arg", "name", "names", "module", "level", "kind", "type_comment", "n", "s"}
FIELDS = {ast.Constant: [], ast.Name: []}


class Rules:
    def __init__(self, tree, data):
        self.tree, self.lines = tree, data.split(b"\n")
        self.findings, self.seeds, self.trains = [], False, None
        self.inside_text = set()  # Nodes of f-strings, whose places older Pythons do not tell.
        self.done = set()         # Constants that a finding already is about.

    def source(self, first, last):
        if first[0] != last[0] or first[0] > len(self.lines):
            return None
        return self.lines[first[0] - 1][first[1]:last[1]]

    def add(self, node, rule, what, edits=None):
        if edits is not None and id(node) in self.inside_text:
            edits = None
        self.findings.append({"line": node.lineno, "column": node.col_offset, "rule": rule, "what": what[:200], "edits": edits})

    def run(self):
        handlers = {getattr(ast, name[3:]): getattr(self, name) for name in dir(self) if name.startswith("on_")}
        stack = [self.tree]
        while stack:  # Parents before what they hold; a stack of our own, since code nests as deep as it likes.
            node = stack.pop()
            kind = node.__class__
            handler = handlers.get(kind)
            if handler:
                handler(node)
            fields = FIELDS.get(kind)
            if fields is None:
                fields = FIELDS[kind] = [name for name in kind._fields if name not in PLAIN]
            for name in fields:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    stack += [each for each in value if isinstance(each, ast.AST)]
                elif isinstance(value, ast.AST):
                    stack.append(value)
        self.findings.sort(key=lambda each: (each["line"], each["column"]))

    def on_JoinedStr(self, node):
        self.inside_text.update(id(each) for each in ast.walk(node))

    # Texts that name a device.

    def device_edit(self, node):
        """The edit of a text "cuda" or "cuda:1" as it stands in the file; None if it is written in another way."""
        written = self.source(start(node), end(node))
        if written not in (repr(node.value).encode(), ('"%s"' % node.value).encode()):
            return None
        index = node.value.partition(":")[2]
        return [(start(node), end(node), 'f"{DEVICE}:%s"' % index if index else "DEVICE")]

    def device_text(self, node, how):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and DEVICE.match(node.value) and id(node) not in self.done:
            self.done.add(id(node))
            self.add(node, "hard-device", how % node.value, self.device_edit(node))

    def on_Call(self, node):
        name = dotted(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name
        if last == "cuda" and isinstance(node.func, ast.Attribute) and name != "torch.cuda":
            self.add(node.func, "cuda-call", ".cuda()", self.cuda_call_edits(node))
        if last in DEVICE_CALLS:
            for each in node.args:
                self.device_text(each, f"{last}(\"%s\")")
        for each in node.keywords:
            if each.arg in DEVICE_KEYWORDS:
                self.device_text(each.value, f"{each.arg}=\"%s\"")
        if last == "init_process_group":
            self.nccl(node)
        if name in ("torch.load", "torch.save"):
            self.whole_module(node, name)
        if last in EXTENSIONS and (last != "CppExtension") or name.endswith("cpp_extension.load"):
            self.add(node, "cuda-extension", f"{last}(...)")
        self.call_of_numbers(node, name, last)
        self.environment_call(node, name)
        if last == "backward" and self.trains is None:
            self.trains = node.lineno
        if last in ("manual_seed", "manual_seed_all", "seed_everything", "set_seed", "seed_all"):
            self.seeds = True

    def cuda_call_edits(self, node):
        """x.cuda(...) as x.to(DEVICE, ...); only where the arguments are none, a number, or named."""
        stop = end(node.func)
        word = ((stop[0], stop[1] - 4), stop)
        if stop[1] < 4 or self.source(*word) != b"cuda" or len(node.args) > 1:
            return None
        to = (*word, "to")
        if not node.args and not node.keywords:
            rest = self.source(stop, end(node))
            return [to, (stop, end(node), "(DEVICE)")] if rest is not None and re.fullmatch(rb"\(\s*\)", rest) else None
        if node.args:
            index = node.args[0]
            if not (isinstance(index, ast.Constant) and type(index.value) is int):
                return None
            return [to, (start(index), end(index), 'f"{DEVICE}:%d"' % index.value)]
        if any(each.arg in (None, "device") for each in node.keywords) or self.source(stop, (stop[0], stop[1] + 1)) != b"(":
            return None
        opening = (stop[0], stop[1] + 1)
        return [to, (opening, opening, "DEVICE, ")]

    def nccl(self, node):
        given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "backend")]
        for each in given:
            if isinstance(each, ast.Constant) and each.value == "nccl":
                self.add(each, "nccl", 'init_process_group("nccl")', [(start(each), end(each), "BACKEND")] if self.source(start(each), end(each)) in (b'"nccl"', b"'nccl'") else None)

    def whole_module(self, node, name):
        if name == "torch.load":
            weights = [each.value for each in node.keywords if each.arg == "weights_only"]
            if not (weights and isinstance(weights[0], ast.Constant) and weights[0].value is True):
                self.add(node, "whole-module", "torch.load without weights_only=True")
        elif node.args and isinstance(node.args[0], ast.Name) and re.fullmatch(r"(\w*_)?(model|net|module)", node.args[0].id):
            self.add(node, "whole-module", f"torch.save({node.args[0].id}, ...)")

    def call_of_numbers(self, node, name, last):
        if last == "double" and isinstance(node.func, ast.Attribute) and not node.args:
            self.add(node.func, "float64", ".double()")
        for each in [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]:
            if isinstance(each, ast.Constant) and each.value == "float64":
                self.add(each, "float64", '"float64"')

    def environment_call(self, node, name):
        if name in ("os.getenv", "os.environ.get", "os.environ.setdefault", "os.putenv", "environ.get", "getenv", "os.environ.pop") and node.args:
            self.variable(node.args[0])

    def variable(self, node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ENVIRONMENT.search(node.value):
            self.add(node, "environment", node.value)

    def on_Subscript(self, node):
        key = node.slice.value if isinstance(node.slice, getattr(ast, "Index", ())) and hasattr(node.slice, "value") and not isinstance(node.slice, ast.Constant) else node.slice
        if dotted(node.value) in ("os.environ", "environ"):
            self.variable(key)

    def on_Attribute(self, node):
        name = dotted(node)
        if node.attr == "is_cuda":
            self.add(node, "device-test", ".is_cuda")
        if name in ("torch.float64", "torch.double", "torch.DoubleTensor"):
            self.add(node, "float64", name)
        if name.startswith("torch.cuda.") and name.count(".") == 2:
            self.torch_cuda(node, name)
        elif name.startswith("torch.cuda.amp.") and name.count(".") == 3:
            self.amp(node, name)
        elif name.startswith("torch.backends.cudnn.") and name.count(".") == 3:
            self.add(node, "cudnn", name)

    def torch_cuda(self, node, name):
        if node.attr == "amp":
            return
        if node.attr.endswith("Tensor"):
            self.add(node, "cuda-tensor", name)
            return
        edits = [(start(node.value), end(node.value), "getattr(torch, DEVICE)")] if node.attr in COMMON and self.source(start(node.value), end(node.value)) == b"torch.cuda" else None
        self.add(node, "torch-cuda", name, edits)

    def amp(self, node, name):
        call = self.calls.get(id(node))
        edits = None
        if call is not None and self.source(start(node), end(node)) == name.encode() and self.source(end(node), (node.end_lineno, node.end_col_offset + 1)) == b"(":
            opening = (node.end_lineno, node.end_col_offset + 1)
            some = bool(call.args or call.keywords)
            if node.attr == "autocast" and not call.args:
                edits = [(start(node), end(node), "torch.autocast"), (opening, opening, "DEVICE, " if some else "DEVICE")]
            elif node.attr == "GradScaler":
                edits = [(start(node), end(node), "torch.amp.GradScaler"), (opening, opening, "DEVICE, " if some else "DEVICE")]
        self.add(node, "autocast", name, edits)

    @property
    def calls(self):
        """Calls by what they call."""
        if not hasattr(self, "_calls"):
            self._calls = {id(each.func): each for each in ast.walk(self.tree) if isinstance(each, ast.Call)}
        return self._calls

    def on_Compare(self, node):
        left = node.left
        if isinstance(left, ast.Constant) and left.value == "cuda" and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self.done.add(id(left))
            self.add(left, "device-test", '"cuda" in ...', self.device_edit(left))
        for each in node.comparators:
            if isinstance(each, ast.Constant) and each.value == "cuda" and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
                self.done.add(id(each))
                self.add(each, "device-test", '... == "cuda"', self.device_edit(each))

    def on_IfExp(self, node):
        if any(dotted(each).startswith("torch.cuda") for each in ast.walk(node.test) if isinstance(each, ast.Attribute)):
            self.device_text(node.body, "\"%s\" if torch.cuda...")
            self.device_text(node.orelse, "\"%s\"")

    def on_Assign(self, node):
        if any("device" in (dotted(each) or "").lower() for each in node.targets):
            self.device_text(node.value, "device = \"%s\"")

    def on_AnnAssign(self, node):
        if node.value is not None and "device" in (dotted(node.target) or "").lower():
            self.device_text(node.value, "device = \"%s\"")

    def on_arguments(self, node):
        plain = [*node.posonlyargs, *node.args]
        for argument, value in [*zip(plain[len(plain) - len(node.defaults):], node.defaults), *zip(node.kwonlyargs, node.kw_defaults)]:
            if value is not None and "device" in argument.arg.lower():
                self.device_text(value, argument.arg + "=\"%s\"")

    def on_Import(self, node):
        for each in node.names:
            self.package(node, each.name)

    def on_ImportFrom(self, node):
        if node.module and node.level == 0:
            self.package(node, node.module)
            if node.module in ("torch.cuda.amp", "torch.cuda"):
                self.add(node, "autocast" if node.module.endswith("amp") else "torch-cuda", f"from {node.module} import ...")

    def package(self, node, name):
        if name.split(".")[0] in PACKAGES or name in PACKAGES:
            self.add(node, "cuda-package", name)

    def on_Constant(self, node):
        if isinstance(node.value, str) and "nvidia-smi" in node.value and len(node.value) < 500 and "\n" not in node.value:
            self.add(node, "nvidia-tool", "nvidia-smi")


PINNED = re.compile(r"===?\s*[\w.]+|@\s*\S|=\s*[\d.]+\s*$|--hash")


def requirement_findings(data, name):
    """Packages without an exact version, of requirements.txt or environment.yml."""
    findings = []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        text = re.sub(r"(^|\s)#.*$", "", line).strip()
        if name.endswith((".yml", ".yaml")):
            if not text.startswith("- ") or text.endswith(":"):
                continue
            text = text[2:].strip()
        if not text or text.startswith("-") or text.startswith(("http:", "https:", "git+")) or PINNED.search(text) or not re.match(r"^[A-Za-z0-9][\w.-]*", text):
            continue
        findings.append({"line": number, "column": 0, "rule": "unpinned", "what": text[:200], "edits": None})
    return findings
