"""Small ONNX models for tests of the program."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class ModelBuilder:
    """Collects nodes and constants; every node is called what its output is called, less `_out`."""

    def __init__(self, opset=20, domains=()):
        self.opset = opset
        self.domains = domains
        self.nodes, self.constants = [], []

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op, name, inputs, domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, domain=domain, **attributes))
        return f"{name}_out"

    def save(self, path, inputs, outputs):
        """Inputs and outputs: name -> (type, shape)."""
        infos = [[helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in group.items()] for group in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "test", *infos, self.constants)
        opsets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(domain, 1) for domain in self.domains)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        onnx.save(model, str(path))
        return path


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def relu(path, shape=("batch", 4)):
    model = ModelBuilder()
    model.node("Relu", "relu", ["x"])
    return model.save(path, {"x": (FLOAT, shape)}, {"relu_out": (FLOAT, shape)})


def images(path):
    """Convolutions with what usually stands between them, and one node that wants images as they are."""
    model, draw = ModelBuilder(), np.random.default_rng(3)
    weights = lambda name, *shape: model.constant(name, draw.standard_normal(shape).astype(np.float32) * 0.2)
    first = model.node("Conv", "first", ["x", weights("w1", 16, 3, 3, 3), weights("b1", 16)])
    pooled = model.node("MaxPool", "pool", [first], kernel_shape=[2, 2])
    model.node("DepthToSpace", "deep", [pooled], blocksize=2)
    gate = model.node("Sigmoid", "gate", [model.node("GlobalAveragePool", "mean", [pooled])])
    scaled = model.node("Mul", "scaled", [pooled, gate])
    last = model.node("Conv", "last", [scaled, weights("w2", 24, 16, 3, 3)], pads=[1, 1, 1, 1])
    shapes = {"deep_out": [1, 4, 28, 36], last: [1, 24, 14, 18]}
    return model.save(path, {"x": (FLOAT, [1, 3, 30, 38])}, {name: (FLOAT, shape) for name, shape in shapes.items()})


def two_inputs(path):
    """A float and an integer input with symbolic dimensions; sum / and the integers as they are."""
    model = ModelBuilder()
    model.node("Add", "sum", ["a", "b"])
    model.node("Identity", "same", ["n"])
    return model.save(path, {"a": (FLOAT, ["n", 3]), "b": (FLOAT, ["n", 3]), "n": (INT64, ["k"])},
                      {"sum_out": (FLOAT, ["n", 3]), "same_out": (INT64, ["k"])})


def mystery(path):
    """A node that nobody knows, between two that everybody knows."""
    model = ModelBuilder(domains=["com.example"])
    first = model.node("Relu", "first", ["x"])
    strange = model.node("Mystery", "strange", [first], domain="com.example")
    model.node("Relu", "last", [strange])
    return model.save(path, {"x": (FLOAT, [2, 4])}, {"last_out": (FLOAT, [2, 4])})


def misfit(path):
    """An addition of shapes that do not fit, before a Slice whose bounds are inputs: no types can be inferred."""
    model = ModelBuilder()
    added = model.node("Add", "added", ["x", model.constant("four", np.ones(4, np.float32))])
    model.node("Slice", "part", [added, "starts", "ends"])
    return model.save(path, {"x": (FLOAT, [2, 3]), "starts": (INT64, [1]), "ends": (INT64, [1])}, {"part_out": (FLOAT, ["a", "b"])})


def data_dependent(path):
    """Two nodes whose output shapes only the data tells, behind ordinary ones."""
    model = ModelBuilder()
    weight = np.random.default_rng(3).normal(0, 1, (6, 6)).astype(np.float32)
    product = model.node("MatMul", "product", ["x", model.constant("weight", weight)])
    first = model.node("Relu", "first", [product])
    places = model.node("NonZero", "places", [first])
    model.node("Transpose", "turned", [places], perm=[1, 0])
    squeezed = model.node("Reshape", "flat", [first, model.constant("flat_shape", np.array([-1], np.int64))])
    model.node("Unique", "distinct", [squeezed])
    return model.save(path, {"x": (FLOAT, [4, 6])}, {"turned_out": (INT64, ["n", 2]), "distinct_out": (FLOAT, ["m"])})


def loop(path):
    """A loop of three rounds whose body has a node that every device takes, and one whose output shape only the data tells."""
    body = ModelBuilder()
    squared = body.node("MatMul", "square", ["state", "state"])
    body.node("Unique", "distinct", [squared])
    body.nodes.append(helper.make_node("Identity", ["going"], ["still"], name="still"))
    state = [helper.make_tensor_value_info(name, FLOAT, [2, 2]) for name in ("state", "square_out")]
    graph = helper.make_graph(
        body.nodes, "body",
        [helper.make_tensor_value_info("round", INT64, []), helper.make_tensor_value_info("going", TensorProto.BOOL, []), state[0]],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []), state[1], helper.make_tensor_value_info("distinct_out", FLOAT, ["k"])])
    model = ModelBuilder()
    model.nodes.append(helper.make_node("Loop", ["count", "", "x"], ["last", "all"], name="loop", body=graph))
    model.constant("count", np.int64(3))
    return model.save(path, {"x": (FLOAT, [2, 2])}, {"last": (FLOAT, [2, 2]), "all": (FLOAT, ["n", "k"])})


def wide(path, rows, columns, late=False):
    """One number spread over a matrix, then added up. `late`: the matrix's size is known only when the model runs."""
    model = ModelBuilder()
    shape = model.constant("shape", np.array([rows, columns], np.int64))
    if late:
        shape = model.node("Add", "size", [shape, model.node("Mul", "nothing", ["n", model.constant("zero", np.int64(0))])])
    model.node("ReduceSum", "sum", [model.node("Expand", "spread", ["x", shape])], keepdims=0)
    inputs = {"x": (FLOAT, [1, 1]), **({"n": (INT64, [2])} if late else {})}
    return model.save(path, inputs, {"sum_out": (FLOAT, [])})


def resized(path, width):
    model = ModelBuilder()
    model.node("Resize", "resized", ["x", "", "", model.constant("sizes", np.array([1, width], np.int64))])
    return model.save(path, {"x": (FLOAT, [1, 4])}, {"resized_out": (FLOAT, [1, width])})


def endless_loop(path):
    """A loop without a trip count whose condition never changes."""
    body = ModelBuilder()
    body.node("Neg", "turned", ["state"])
    body.nodes.append(helper.make_node("Identity", ["going"], ["still"], name="still"))
    state = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("state", "turned_out")]
    going = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("going", "still")]
    graph = helper.make_graph(body.nodes, "body", [helper.make_tensor_value_info("round", INT64, []), going[0], state[0]], [going[1], state[1]])
    model = ModelBuilder()
    model.nodes.append(helper.make_node("Loop", ["", "", "x"], ["last"], name="for_ever", body=graph))
    return model.save(path, {"x": (FLOAT, [2])}, {"last": (FLOAT, [2])})


def erf_gelu(model, name, x):
    """GELU as exporters before opset 20 write it; the last node has the name."""
    half = model.node("Div", f"{name}_scaled", [x, model.constant(f"{name}_root", np.float32(math.sqrt(2)))])
    erf = model.node("Erf", f"{name}_erf", [half])
    one = model.node("Add", f"{name}_one", [erf, model.constant(f"{name}_1", np.float32(1))])
    product = model.node("Mul", f"{name}_product", [x, one])
    return model.node("Mul", name, [product, model.constant(f"{name}_half", np.float32(0.5))])


def tanh_gelu(model, name, x):
    cube = model.node("Pow", f"{name}_cube", [x, model.constant(f"{name}_3", np.float32(3))])
    scaled = model.node("Mul", f"{name}_scaled3", [cube, model.constant(f"{name}_c", np.float32(0.044715))])
    inner = model.node("Add", f"{name}_inner", [x, scaled])
    root = model.node("Mul", f"{name}_rooted", [inner, model.constant(f"{name}_r", np.float32(math.sqrt(2 / math.pi)))])
    tanh = model.node("Tanh", f"{name}_tanh", [root])
    one = model.node("Add", f"{name}_one", [tanh, model.constant(f"{name}_1", np.float32(1))])
    product = model.node("Mul", f"{name}_product", [x, one])
    return model.node("Mul", name, [product, model.constant(f"{name}_half", np.float32(0.5))])


def block(path, gelu="none", epsilon=1e-5, defect=None, layers=2):
    """A small transformer's feed-forward blocks: LayerNormalization, MatMul, GELU, MatMul, residual. `gelu` is that of the second block:
    none, tanh, erf-chain or tanh-chain; `epsilon` belongs to its normalisation; `defect` is one of nan-weight and log-of-negative."""
    random = np.random.default_rng(7)
    model = ModelBuilder()
    x, width, hidden = "x", 32, 64
    for layer in range(layers):
        second = layer == 1
        name = f"block{layer}"
        scale = model.constant(f"{name}.scale", random.uniform(0.5, 1.5, width).astype(np.float32))
        shift = model.constant(f"{name}.shift", random.normal(0, 0.1, width).astype(np.float32))
        normal = model.node("LayerNormalization", f"{name}.norm", [x, scale, shift], axis=-1, epsilon=epsilon if second else 1e-5)
        weight = random.normal(0, 0.2, (width, hidden)).astype(np.float32)
        if second and defect == "nan-weight":
            weight[3, 5] = np.nan
        up = model.node("MatMul", f"{name}.up", [normal, model.constant(f"{name}.w1", weight)])
        up = model.node("Add", f"{name}.bias", [up, model.constant(f"{name}.b1", random.normal(0, 0.1, hidden).astype(np.float32))])
        kind = gelu if second or gelu.endswith("chain") else "none"
        if kind == "tanh-chain" and second:
            activated = tanh_gelu(model, f"{name}.act", up)
        elif kind.endswith("chain"):
            activated = erf_gelu(model, f"{name}.act", up)
        else:
            activated = model.node("Gelu", f"{name}.act", [up], approximate=kind)
        down = model.node("MatMul", f"{name}.down", [activated, model.constant(f"{name}.w2", random.normal(0, 0.2, (hidden, width)).astype(np.float32))])
        x = model.node("Add", f"{name}.residual", [x, down])
    square = model.node("Mul", "square", [x, x])
    offset = -1e3 if defect == "log-of-negative" else 1
    positive = model.node("Add", "positive", [square, model.constant("offset", np.float32(offset))])
    model.node("Log", "log", [positive])
    return model.save(path, {"x": (FLOAT, [1, 8, 32])}, {"log_out": (FLOAT, [1, 8, 32])})
