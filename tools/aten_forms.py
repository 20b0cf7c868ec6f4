"""Operators of ai.onnx written with PyTorch, for tools/trace_aten.py: (attributes, number of outputs, *inputs) -> outputs.

Inputs that ONNX gives as tensors but that a model in PyTorch writes as numbers (shapes, axes, pads) come as lists: `lists` names them."""
import math
from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F

from aten_forms_large import LARGE


@dataclass
class Form:
    function: Callable
    lists: tuple = ()
    sequence: bool = False  # Its output is a sequence.


TORCH_TYPES = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16,
               11: torch.float64, 16: torch.bfloat16}


def plain(function):
    return Form(lambda a, n, *x: function(*x))


def reduce(function):
    """Axes by input or attribute; none means all, or nothing with noop_with_empty_axes."""
    def run(a, n, x, axes=None):
        axes = axes if axes is not None else a.get("axes")
        if not axes and a.get("noop_with_empty_axes"):
            return x
        dims = [axis % x.dim() for axis in axes] if axes else list(range(x.dim()))
        return function(x, dims, bool(a.get("keepdims", 1)))
    return Form(run, (1,))


def chained(function):
    def run(a, n, *x):
        result = x[0]
        for each in x[1:]:
            result = function(result, each)
        return result
    return Form(run)


def squeeze(a, n, x, axes=None):
    axes = axes if axes is not None else a.get("axes")
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


def unsqueeze(a, n, x, axes=None):
    axes = axes if axes is not None else a["axes"]
    rank = x.dim() + len(axes)
    for axis in sorted(each % rank for each in axes):
        x = x.unsqueeze(axis)
    return x


def reshape(a, n, x, shape):
    return x.reshape([x.shape[i] if size == 0 and not a.get("allowzero") else size for i, size in enumerate(shape)])


def slices(a, n, x, starts, ends, axes=None, steps=None):
    axes = axes if axes is not None else list(range(len(starts)))
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts)):
        if step > 0:
            x = torch.ops.aten.slice.Tensor(x, axis, start, end, step)
            continue
        size = x.shape[axis]
        places = range(*slice(start, None if end < -size else end, step).indices(size))
        x = x.index_select(axis, torch.tensor(list(places), dtype=torch.int64))
    return x


def split(a, n, x, sizes=None):
    axis = a.get("axis", 0)
    if sizes is None:
        each = -(-x.shape[axis] // a.get("num_outputs", n))
        return x.split(each, axis)
    return x.split(sizes, axis)


def gather(a, n, x, places):
    axis = a.get("axis", 0)
    places = torch.where(places < 0, places + x.shape[axis], places)
    if axis == 0 and x.dim() == 2:
        return F.embedding(places, x)
    flat = x.index_select(axis, places.reshape(-1))
    return flat.reshape(list(x.shape[:axis]) + list(places.shape) + list(x.shape[axis:][1:]))


def pad(a, n, x, pads, value=None, axes=None):
    axes = axes if axes is not None else list(range(x.dim()))
    before, after = dict(zip(axes, pads)), dict(zip(axes, pads[len(axes):]))
    mode = a.get("mode", "constant")
    if mode == "constant":
        flat = [size for axis in reversed(range(x.dim())) for size in (before.get(axis, 0), after.get(axis, 0))]
        return F.pad(x, flat, value=value if value is not None else 0)
    moved = [axis for axis in range(x.dim()) if before.get(axis, 0) or after.get(axis, 0)]
    flat = [size for axis in reversed(range(moved[0], x.dim())) for size in (before.get(axis, 0), after.get(axis, 0))]
    inner = x.reshape(1, -1, *x.shape[moved[0]:]) if moved[0] != 2 else x
    done = F.pad(inner, flat, mode={"reflect": "reflect", "edge": "replicate", "wrap": "circular"}[mode])
    return done.reshape(*x.shape[:moved[0]], *done.shape[2:])


def clip(a, n, x, low=None, high=None):
    return torch.clamp(x, low, high)


def scatter_elements(a, n, x, places, updates):
    axis = a.get("axis", 0)
    places = torch.where(places < 0, places + x.shape[axis], places)
    kind = {"none": None, "add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[a.get("reduction", "none")]
    return x.scatter(axis, places, updates) if kind is None else x.scatter_reduce(axis, places, updates, kind)


def top_k(a, n, x, k):
    return x.topk(k[0], a.get("axis", -1), bool(a.get("largest", 1)), bool(a.get("sorted", 1)))


def arg(function):
    def run(a, n, x):
        axis, keep = a.get("axis", 0), bool(a.get("keepdims", 1))
        if not a.get("select_last_index"):
            return function(x, axis, keep)
        return x.shape[axis] - 1 - function(x.flip(axis), axis, keep)
    return Form(run)


def cast(a, n, x):
    return x.to(TORCH_TYPES[a["to"]])


def div(a, b):
    return torch.div(a, b) if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def mod(a, n, x, y):
    return torch.fmod(x, y) if a.get("fmod") else torch.remainder(x, y)


def cumsum(a, n, x, axis):
    axis = axis if isinstance(axis, int) else axis[0]
    x = x.flip(axis) if a.get("reverse") else x
    total = x.cumsum(axis, dtype=x.dtype)
    total = total - x if a.get("exclusive") else total
    return total.flip(axis) if a.get("reverse") else total


def one_hot(a, n, places, depth, values):
    depth = int(depth if not isinstance(depth, list) else depth[0])
    places = torch.where(places < 0, places + depth, places).long()
    lines = torch.arange(depth)
    hot = places.unsqueeze(-1) == lines
    axis = a.get("axis", -1)
    return torch.where(hot.movedim(-1, axis), values[1], values[0])


def gather_nd(a, n, x, places):
    batch = a.get("batch_dims", 0)
    if batch:
        lead = torch.arange(x.shape[0]).reshape(-1, *[1] * (places.dim() - 2))
        return x[(lead.expand(places.shape[:-1]), *places.unbind(-1))]
    return x[tuple(places.unbind(-1))]


def scatter_nd(a, n, x, places, updates):
    if a.get("reduction", "none") not in ("none", "add"):
        raise ValueError("no form")
    return x.index_put(tuple(places.unbind(-1)), updates, accumulate=a.get("reduction") == "add")


def depth_to_space(a, n, x):
    size = a["blocksize"]
    if a.get("mode", "DCR") == "CRD":
        return F.pixel_shuffle(x, size)
    b, c, h, w = x.shape
    return x.reshape(b, size, size, c // size**2, h, w).permute(0, 3, 4, 1, 5, 2).reshape(b, c // size**2, h * size, w * size)


def trilu(a, n, x, k=None):
    k = 0 if k is None else int(k if not isinstance(k, list) else k[0])
    return torch.triu(x, k) if a.get("upper", 1) else torch.tril(x, k)


def hardmax(a, n, x):
    axis = a.get("axis", -1)
    return torch.zeros_like(x).scatter(axis, x.argmax(axis, keepdim=True), 1.0)


def flatten(a, n, x):
    axis = a.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), -1)


def range_of(a, n, start, limit, delta):
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


def expand(a, n, x, shape):
    return x.expand(torch.broadcast_shapes(x.shape, tuple(shape)))


def constant_of_shape(a, n, shape):
    from onnx import numpy_helper
    value = numpy_helper.to_array(a["value"]) if "value" in a else None
    return torch.full(shape, 0.0 if value is None else value.item(), dtype=torch.float32 if value is None else torch.from_numpy(value).dtype)


def logical(function):
    return plain(function)


def shrink(a, n, x):
    bias, lambd = a.get("bias", 0.0), a.get("lambd", 0.5)
    return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, torch.zeros_like(x)))


def celu(a, n, x):
    return F.celu(x, a.get("alpha", 1.0))


FORMS = {
    **{name: plain(getattr(torch, function)) for name, function in {
        "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos",
        "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor", "Log": "log", "Neg": "neg", "Reciprocal": "reciprocal", "Round": "round",
        "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh", "IsNaN": "isnan",
        "Not": "logical_not", "Add": "add", "Sub": "sub", "Mul": "mul", "Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge",
        "Less": "lt", "LessOrEqual": "le", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "BitwiseAnd": "bitwise_and",
        "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor", "BitwiseNot": "bitwise_not", "Det": "det", "MatMul": "matmul"}.items()},
    "Pow": Form(lambda a, n, x, y: torch.pow(x, y).to(x.dtype)), "Div": plain(div), "Mod": Form(mod), "Where": plain(torch.where), "Relu": plain(F.relu),
    "Softplus": plain(F.softplus), "Softsign": plain(F.softsign), "HardSwish": plain(F.hardswish), "Mish": plain(F.mish), "Celu": Form(celu),
    "Selu": Form(lambda a, n, x: a.get("gamma", 1.0507009873554805) * F.elu(x, a.get("alpha", 1.6732632423543772))),
    "Elu": Form(lambda a, n, x: F.elu(x, a.get("alpha", 1.0))), "LeakyRelu": Form(lambda a, n, x: F.leaky_relu(x, a.get("alpha", 0.01))),
    "PRelu": Form(lambda a, n, x, slope: torch.where(x < 0, x * slope, x)),
    "ThresholdedRelu": Form(lambda a, n, x: F.threshold(x, a.get("alpha", 1.0), 0.0)),
    "HardSigmoid": Form(lambda a, n, x: torch.clamp(x * a.get("alpha", 0.2) + a.get("beta", 0.5), 0.0, 1.0)),
    "Gelu": Form(lambda a, n, x: F.gelu(x, approximate=a.get("approximate", "none"))), "Swish": Form(lambda a, n, x: x * torch.sigmoid(a.get("alpha", 1.0) * x)),
    "Softmax": Form(lambda a, n, x: F.softmax(x, a.get("axis", -1))), "LogSoftmax": Form(lambda a, n, x: F.log_softmax(x, a.get("axis", -1))),
    "Hardmax": Form(hardmax), "Shrink": Form(shrink), "Clip": Form(clip), "IsInf": Form(lambda a, n, x: torch.isinf(x)),
    "Max": chained(torch.maximum), "Min": chained(torch.minimum), "Sum": chained(torch.add),
    "Mean": Form(lambda a, n, *x: torch.stack(torch.broadcast_tensors(*x)).mean(0)),
    "ReduceSum": reduce(lambda x, d, k: x.sum(d, k, dtype=x.dtype)), "ReduceMean": reduce(lambda x, d, k: x.mean(d, k)), "ReduceMax": reduce(torch.amax),
    "ReduceMin": reduce(torch.amin), "ReduceSumSquare": reduce(lambda x, d, k: (x * x).sum(d, k)), "ReduceL1": reduce(lambda x, d, k: x.abs().sum(d, k)),
    "ReduceL2": reduce(lambda x, d, k: (x * x).sum(d, k).sqrt()), "ReduceLogSumExp": reduce(torch.logsumexp),
    "ReduceLogSum": reduce(lambda x, d, k: x.sum(d, k).log()),
    "ReduceProd": reduce(lambda x, d, k: [x := x.prod(axis, keepdim=k) for axis in sorted(d, reverse=True)][-1]),
    "ArgMax": arg(torch.argmax), "ArgMin": arg(torch.argmin), "TopK": Form(top_k, (1,)), "CumSum": Form(cumsum, (1,)),
    "Reshape": Form(reshape, (1,)), "Transpose": Form(lambda a, n, x: x.permute(a.get("perm", list(reversed(range(x.dim())))))),
    "Squeeze": Form(squeeze, (1,)), "Unsqueeze": Form(unsqueeze, (1,)), "Flatten": Form(flatten), "Expand": Form(expand, (1,)), "Identity": plain(lambda x: x),
    "Concat": Form(lambda a, n, *x: torch.cat(x, a["axis"])), "Split": Form(split, (1,)), "Slice": Form(slices, (1, 2, 3, 4)), "Pad": Form(pad, (1, 2, 3)),
    "Gather": Form(gather), "GatherElements": Form(lambda a, n, x, i: x.gather(a.get("axis", 0), torch.where(i < 0, i + x.shape[a.get("axis", 0)], i))),
    "GatherND": Form(gather_nd), "ScatterElements": Form(scatter_elements), "ScatterND": Form(scatter_nd), "OneHot": Form(one_hot, (1,)),
    "Tile": Form(lambda a, n, x, repeats: x.repeat(repeats), (1,)), "Cast": Form(cast), "CastLike": Form(lambda a, n, x, y: x.to(y.dtype)),
    "Range": Form(range_of), "ConstantOfShape": Form(constant_of_shape, (0,)), "Trilu": Form(trilu, (1,)), "NonZero": Form(lambda a, n, x: x.nonzero().t()),
    "EyeLike": Form(lambda a, n, x: torch.eye(*x.shape, dtype=TORCH_TYPES[a["dtype"]] if "dtype" in a else x.dtype) if not a.get("k") else None),
    "DepthToSpace": Form(depth_to_space), "SpaceToDepth": Form(lambda a, n, x: LARGE["space_to_depth"](a, x)),
    "Einsum": Form(lambda a, n, *x: torch.einsum(a["equation"], *x)), "Dropout": Form(lambda a, n, x, *rest: x if n == 1 and not (len(rest) > 1 and rest[1]) else None),
    "BitShift": Form(lambda a, n, x, y: torch.bitwise_left_shift(x, y) if a["direction"] == "LEFT" else torch.bitwise_right_shift(x, y)),
    "Compress": Form(lambda a, n, x, c: x.index_select(a["axis"], c.nonzero().reshape(-1)) if "axis" in a else x.reshape(-1)[c.nonzero().reshape(-1)]),
    **{name: Form(function) for name, function in LARGE["nodes"].items()},
    **{name: Form(function, lists) for name, (function, lists) in LARGE["with_lists"].items()},
}

# These are Python around the calls, or facts of a tensor that its handle holds.
CONTROL_FLOW = ("If", "Loop", "Scan")
WITHOUT_CALLS = {"Shape": "no call: a tensor's handle knows its shape", "Size": "no call: a tensor's handle knows its size", "Constant": "no call: a tensor that is there",
                 **{op: "no call: control flow is Python's own" for op in CONTROL_FLOW},
                 **{op: "no call: a Python list" for op in ("SequenceConstruct", "SequenceEmpty", "SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength")},
                 **{op: "no call: None or a value" for op in ("Optional", "OptionalHasElement", "OptionalGetElement")}}
