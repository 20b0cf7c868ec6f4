"""Counts states of nodes from data/catalog alone, written without a look at the program."""
import json
from collections import Counter
from pathlib import Path

import onnx
from onnx import TensorProto, helper

DATA = Path(__file__).resolve().parent.parent.parent / "data" / "catalog"
TAKEN, REFUSED, UNKNOWN = "taken", "refused", "unknown"


def dtype_name(kind):
    return {"float": "float32", "double": "float64"}.get(name := TensorProto.DataType.Name(kind).lower(), name)


class Typed:
    """A model's types as onnx infers them, and which values are constants."""

    def __init__(self, model):
        self.opsets = {each.domain or "ai.onnx": each.version for each in model.opset_import}
        self.nodes = []
        self.walk(onnx.shape_inference.infer_shapes(model).graph, {}, set())

    def walk(self, graph, types, constants):
        types, constants = dict(types), set(constants)
        for value in [*graph.input, *graph.value_info, *graph.output]:
            if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type:
                tensor = value.type.tensor_type
                types[value.name] = (dtype_name(tensor.elem_type), len(tensor.shape.dim) if tensor.HasField("shape") else None)
        for tensor in graph.initializer:
            types[tensor.name] = (dtype_name(tensor.data_type), len(tensor.dims))
            constants.add(tensor.name)
        for node in graph.node:
            if node.op_type == "Constant":
                constants.update(node.output)
            else:
                self.nodes.append((node, types, constants))
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    self.walk(attribute.g, types, constants)


def limit_broken(limit, node, types, constants):
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    if "attribute" in limit:
        if limit["attribute"] not in attributes:
            return limit.get("required", False)
        value = attributes[limit["attribute"]]
        value = value.decode() if isinstance(value, bytes) else value
        if "all" in limit:
            return any(str(each) != limit["all"] for each in value)
        return ("is" in limit and str(value) not in limit["is"]) or str(value) in limit.get("not", [])
    if "rank" in limit:
        rank = types.get(node.input[0], (None, None))[1]
        return rank is not None and not limit["rank"][0] <= rank <= limit["rank"][1]
    if "constant" in limit:
        which = limit["constant"]
        which = range(0 if which == "from 0" else 1, len(node.input)) if isinstance(which, str) else which
        return any(i < len(node.input) and node.input[i] and node.input[i] not in constants for i in which)
    if "absent_output" in limit:
        return limit["absent_output"] < len(node.output) and bool(node.output[limit["absent_output"]])
    if "input" in limit:
        dtype = types.get(node.input[limit["input"]], (None,))[0]
        return dtype is not None and ((("dtypes" in limit) and dtype not in limit["dtypes"]) or dtype in limit.get("not_dtypes", []))
    return False


def kernel_takes(kernel, facts, node, opset, types, constants):
    if kernel.get("state") == "unsupported" or opset < kernel["since"] or opset > kernel.get("until", 1 << 30):
        return False
    for side, names in (("in", node.input), ("out", node.output)):
        constraints = kernel.get(side, [])
        for i, name in enumerate(names):
            if not constraints or not name or name not in types or (i >= len(constraints) and not constraints[-1].startswith("*")):
                continue
            constraint = constraints[min(i, len(constraints) - 1)].lstrip("*")
            if constraint in kernel.get("dtypes", {}) and types[name][0] not in facts["types"][kernel["dtypes"][constraint]]:
                return False
    return not any(limit_broken(limit, node, types, constants) for limit in kernel.get("limits", []))


def count(model, platform):
    """How many nodes a platform takes, refuses, and says nothing of."""
    path = next(path for path in DATA.glob(f"{platform}.json"))
    facts = json.loads(path.read_text())
    typed, result = Typed(model), Counter()
    for node, types, constants in typed.nodes:
        domain = node.domain or "ai.onnx"
        name = node.op_type if domain == "ai.onnx" else f"{domain}:{node.op_type}"
        opset = typed.opsets.get(domain, 1)
        if domain == "ai.onnx" and not facts.get("opset_min", 0) <= opset <= facts.get("opset_max", 1 << 30):
            result[REFUSED] += 1
        elif name not in facts["ops"]:
            result[REFUSED if facts["absent"] == "unsupported" else UNKNOWN] += 1
        else:
            taken = any(kernel_takes(kernel, facts, node, opset, types, constants) for kernel in facts["ops"][name])
            result[TAKEN if taken else REFUSED] += 1
    return result


# Platforms of ATen operators: the calls that stand for an operator, each asked by itself.
BAD = {"native": 0, "constrained": 1, "unknown": 2, "fallback": 3, "unsupported": 4}
GROUP = {"native": TAKEN, "constrained": TAKEN, "unknown": UNKNOWN, "fallback": REFUSED, "unsupported": REFUSED}


class Calls:
    """What a platform, the file that it is like and the one that it is the same as say of a call."""

    def __init__(self, name):
        self.files = [json.loads((DATA / f"{name}.json").read_text())]
        while (link := self.files[-1].get("same_as") or self.files[-1].get("like")):
            self.files.append(json.loads((DATA / f"{link}.json").read_text()))
        first = self.files[0]
        self.absent, self.static_graph = first["absent"], first.get("static_graph", False)
        if "same_as" in first:
            self.absent = self.files[1]["absent"]

    def state(self, call, dtypes, wanted, alone):
        op, _, overload = call.partition(".")
        for file in self.files:
            if op not in file["ops"]:
                continue
            answer = file["ops"][op].get(overload)
            if answer is None:
                return "unknown"
            if answer[0] == "native" and len(answer) > 2 and wanted and wanted not in (types := file["types"][answer[2]]):
                return "constrained" if not alone and any(each in types for each in dtypes) else "unsupported"
            return answer[0]
        return self.absent


def data_dtype(dtypes, made):
    """The type of a node's data: of floating inputs, if there are any, the result's or the first."""
    floating = [each for each in dtypes if each.startswith(("float", "bfloat", "complex"))]
    pool = floating or dtypes
    return made if made in pool else pool[0] if pool else None


def count_calls(model, platform):
    """As count, for a platform of ATen operators."""
    calls, forms = Calls(platform), json.loads((DATA / "onnx_aten.json").read_text())["ops"]
    typed, result = Typed(model), Counter()
    for node, types, _ in typed.nodes:
        name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}:{node.op_type}"
        form = forms.get(name)
        if form is None:
            result[UNKNOWN] += 1
            continue
        dtypes = [types[each][0] for each in node.input if each in types]
        wanted = data_dtype(dtypes, types.get(node.output[0], (None,))[0] if node.output else None)
        always, sometimes = form.get("calls", []), form.get("sometimes", [])
        alone = len(always) + len(sometimes) == 1
        states = ["constrained" if form.get("control_flow") and calls.static_graph else "native"]
        states += [calls.state(each, dtypes, wanted, alone) for each in always]
        maybe = [calls.state(each, dtypes, wanted, alone) for each in sometimes]
        if always or any(BAD[each] <= 1 for each in maybe):
            maybe = ["constrained" if BAD[each] > 1 else each for each in maybe]
        result[GROUP[max([*states, *maybe], key=BAD.get)]] += 1
    return result
