"""Counts states of nodes from data/catalog alone, written without a look at the program: for platforms of ONNX operators."""
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
