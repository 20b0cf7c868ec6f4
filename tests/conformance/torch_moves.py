"""Answers of PyTorch: elementwise functions, reductions, and what moves or chooses values."""
import math

import numpy as np
import torch
import torch.nn.functional as F


def unary(function):
    return lambda call: function(call[0])


def binary(function):
    return lambda call: function(call[0], call[1])


def variadic(function):
    def folded(call):
        result = call[0]
        for other in call.inputs[1:]:
            result = function(result, other)
        return result
    return folded


def shrink(call):
    if not call[0].is_floating_point():
        raise ValueError("PyTorch shrinks real numbers")
    x, bias, limit = call[0], call("bias"), call("lambd")
    return torch.where(x < -limit, x + bias, torch.where(x > limit, x - bias, torch.zeros_like(x)))


def clip(call):
    low, high = (None if each is None else each.reshape(()) for each in (call[1], call[2]))
    return call[0] if low is None and high is None else torch.clamp(call[0], low, high)


def power(call):
    a, b = call[0], call[1]
    if a.is_floating_point():
        return torch.pow(a, b.double())
    if b.is_floating_point():
        return torch.pow(a.double(), b).to(a.dtype)
    return torch.pow(a, b.to(a.dtype))


def divide(call):
    return torch.div(call[0], call[1], rounding_mode=None if call[0].is_floating_point() else "trunc")


def modulo(call):
    return (torch.fmod if call("fmod") else torch.remainder)(call[0], call[1])


def is_infinite(call):
    x = call[0]
    return (torch.isposinf(x) if call("detect_positive") else torch.zeros_like(x).bool()) | (
        torch.isneginf(x) if call("detect_negative") else torch.zeros_like(x).bool())


def gelu(call):
    return F.gelu(call[0], approximate=call("approximate"))


def selu(call):
    return call("gamma") * F.elu(call[0], alpha=call("alpha"))


def prelu(call):
    return torch.where(call[0] < 0, call[0] * call[1], call[0])


def bit_shift(call):
    shift = torch.bitwise_left_shift if call("direction") == "LEFT" else torch.bitwise_right_shift
    return shift(call[0], call[1])


UNARY = {
    "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh, "Atan": torch.atan,
    "Atanh": torch.atanh, "Ceil": torch.ceil, "Cos": torch.cos, "Cosh": torch.cosh, "Erf": torch.special.erf, "Exp": torch.exp,
    "Floor": torch.floor, "Identity": lambda x: x, "IsNaN": torch.isnan, "Log": torch.log, "Mish": F.mish, "Neg": torch.neg,
    "Not": torch.logical_not, "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Round": torch.round, "Sigmoid": torch.sigmoid,
    "Sign": torch.sign, "Sin": torch.sin, "Sinh": torch.sinh, "Sqrt": torch.sqrt, "Tan": torch.tan, "Tanh": torch.tanh,
    "Softsign": F.softsign, "Softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)), "HardSwish": F.hardswish,
    "BitwiseNot": torch.bitwise_not, "com.microsoft:Gelu": F.gelu,
}
BINARY = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor,
    "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor, "Equal": torch.eq,
    "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le,
}
ELEMENTWISE = {
    "Celu": lambda c: F.celu(c[0], alpha=c("alpha")), "Elu": lambda c: F.elu(c[0], alpha=c("alpha")), "Selu": selu, "Gelu": gelu,
    "LeakyRelu": lambda c: F.leaky_relu(c[0], negative_slope=c("alpha")), "Clip": clip, "Shrink": shrink, "PRelu": prelu,
    "HardSigmoid": lambda c: torch.clamp(c("alpha") * c[0] + c("beta"), 0, 1),
    "ThresholdedRelu": lambda c: F.threshold(c[0], c("alpha"), 0), "Swish": lambda c: c[0] * torch.sigmoid(c("alpha") * c[0]),
    "Pow": power, "Div": divide, "Mod": modulo, "IsInf": is_infinite, "BitShift": bit_shift,
    "Max": variadic(torch.maximum), "Min": variadic(torch.minimum), "Sum": variadic(torch.add),
    "Mean": lambda c: variadic(torch.add)(c) / len(c), "Where": lambda c: torch.where(c[0], c[1], c[2]),
    "com.microsoft:QuickGelu": lambda c: c[0] * torch.sigmoid(c("alpha", float(np.float32(1.702))) * c[0]),
    "com.microsoft:FastGelu": lambda c: F.gelu(c[0] if c[1] is None else c[0] + c[1], approximate="tanh"),
    "com.microsoft:BiasGelu": lambda c: F.gelu(c[0] + c[1]),
}


def axes_of(call, i=1):
    """The axes to reduce; none where an empty list means no reduction."""
    axes = call.whole(i) if len(call) > i else None
    if not axes:
        return () if call("noop_with_empty_axes", 0) else tuple(range(call[0].dim()))
    return tuple(axis % call[0].dim() for axis in axes)


def reduction(function, before=lambda x: x, after=lambda x: x):
    """`before` and `after` act where there is no axis to reduce, too."""
    def reduced(call):
        axes = axes_of(call)
        x = before(call[0])
        return after(function(x, axes, bool(call("keepdims"))) if axes else x)
    return reduced


def real_numbers(function):
    def of(call):
        if not call[0].is_floating_point():
            raise ValueError("a root or logarithm of integers")
        return function(call)
    return of


def product(x, axes, keep):
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, dim=axis, keepdim=keep, dtype=x.dtype)
    return x


def total(x, axes, keep):
    return torch.sum(x, dim=axes, keepdim=keep, dtype=x.dtype)


def mean(x, axes, keep):
    if not x.is_floating_point():
        raise ValueError("a mean of integers")
    return torch.mean(x, dim=axes, keepdim=keep)


def extreme(function):
    def of(x, axes, keep):
        return function(x, dim=axes, keepdim=keep)
    return of


def log_sum_exp(call):
    return reduction(lambda x, axes, keep: torch.logsumexp(x, dim=axes, keepdim=keep))(call)


def euclidean(call):
    axes = axes_of(call)
    return torch.linalg.vector_norm(call[0], dim=axes, keepdim=bool(call("keepdims"))) if axes else call[0].abs()


def index_of(function):
    def found(call):
        x, axis = call[0], call("axis")
        if call("select_last_index"):
            index = x.shape[axis] - 1 - function(torch.flip(x, [axis]), dim=axis, keepdim=True)
        else:
            index = function(x, dim=axis, keepdim=True)
        return index if call("keepdims") else index.squeeze(axis)
    return found


REDUCE = {
    "ReduceSum": reduction(total), "ReduceMean": reduction(mean), "ReduceProd": reduction(product),
    "ReduceMax": reduction(extreme(torch.amax)), "ReduceMin": reduction(extreme(torch.amin)),
    "ReduceL1": reduction(total, before=torch.abs), "ReduceL2": real_numbers(euclidean),
    "ReduceSumSquare": reduction(total, before=torch.square), "ReduceLogSum": real_numbers(reduction(total, after=torch.log)),
    "ReduceLogSumExp": real_numbers(log_sum_exp), "ArgMax": index_of(torch.argmax), "ArgMin": index_of(torch.argmin),
}


def cumulative(function, neutral):
    def of(call):
        x, axis = call[0], call.whole(1)[0]
        x = torch.flip(x, [axis]) if call("reverse") else x
        result = function(x, dim=axis, dtype=x.dtype)
        if call("exclusive"):
            first = torch.full_like(x.narrow(axis, 0, 1), neutral)
            result = torch.cat([first, result.narrow(axis, 0, x.shape[axis] - 1)], dim=axis)
        return torch.flip(result, [axis]) if call("reverse") else result
    return of


def gather_nd(call):
    x, index, batch = call[0], call[1].long(), call("batch_dims")
    lead = math.prod(x.shape[:batch])
    flat, at = x.reshape(lead, *x.shape[batch:]), index.reshape(lead, -1, index.shape[-1])
    rows = [flat[b][tuple(at[b].unbind(-1))] for b in range(lead)]
    return torch.stack(rows).reshape(*index.shape[:-1], *x.shape[batch + index.shape[-1]:])


REDUCTIONS = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}


def scatter_elements(call):
    x, index, updates, axis = call[0], call[1].long(), call[2], call("axis")
    index = torch.where(index < 0, index + x.shape[axis], index)
    if call("reduction") == "none":
        return x.scatter(axis, index, updates)
    return x.scatter_reduce(axis, index, updates, REDUCTIONS[call("reduction")], include_self=True)


def scatter_nd(call):
    x, index, updates = call[0], call[1].long(), call[2]
    depth = index.shape[-1]
    index = torch.where(index < 0, index + torch.tensor(x.shape[:depth]), index)
    steps = torch.tensor([math.prod(x.shape[i + 1:depth]) for i in range(depth)])
    rows = (index * steps).sum(-1).reshape(-1)
    flat = x.reshape(math.prod(x.shape[:depth]), -1)
    new = updates.reshape(rows.numel(), -1)
    rows = rows[:, None].expand(new.shape)
    if call("reduction") == "none":
        return flat.scatter(0, rows, new).reshape(x.shape)
    return flat.scatter_reduce(0, rows, new, REDUCTIONS[call("reduction")], include_self=True).reshape(x.shape)


def one_hot(call):
    index, depth, values = call[0].long(), call.whole(1)[0], call[2]
    ours = (index >= -depth) & (index < depth)
    hot = F.one_hot(torch.where(ours, index % depth, 0), depth).bool() & ours[..., None]
    return torch.where(hot, values[1], values[0]).movedim(-1, call("axis"))


def top_k(call):
    values, index = torch.sort(call[0], dim=call("axis"), descending=bool(call("largest")), stable=True)
    count = call.whole(1)[0]
    return values.narrow(call("axis"), 0, count), index.narrow(call("axis"), 0, count)


def compress(call):
    x, keep = call[0], call[1]
    axis = call("axis")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    return x.index_select(axis, torch.nonzero(keep[: x.shape[axis]]).reshape(-1))


def trilu(call):
    return (torch.triu if call("upper") else torch.tril)(call[0], 0 if call[1] is None else call.whole(1)[0])


def slices(call):
    x, starts, ends = call[0], call.whole(1), call.whole(2)
    axes = call.whole(3) or range(len(starts))
    for axis, start, end, step in zip(axes, starts, ends, call.whole(4) or [1] * len(starts)):
        size = x.shape[axis]
        x = x.index_select(axis, torch.arange(size)[range(*slice(start, end, step).indices(size)),])
    return x


def pad(call):
    x, pads, mode = call[0], call.whole(1), call("mode")
    axes = [axis % x.dim() for axis in call.whole(3) or range(x.dim())]
    fill = 0 if call[2] is None else call[2].item()
    modes = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}
    for i, axis in enumerate(axes):
        ends = (pads[i], pads[i + len(axes)])
        line = x.movedim(axis, -1)
        if mode == "constant":
            line = F.pad(line, ends, value=fill)
        else:
            line = F.pad(line.reshape(1, -1, line.shape[-1]), ends, mode=modes[mode]).reshape(*line.shape[:-1], -1)
        x = line.movedim(-1, axis)
    return x


def split(call):
    axis, size = call("axis"), call[0].shape[call("axis")]
    if call[1] is not None:
        return torch.split(call[0], call.whole(1), dim=axis)
    count = len(call.node.output)
    return torch.split(call[0], -(-size // count), dim=axis)


def unsqueeze(call):
    axes = sorted(axis % (call[0].dim() + len(call.whole(1))) for axis in call.whole(1))
    x = call[0]
    for axis in axes:
        x = x.unsqueeze(axis)
    return x


def squeeze(call):
    return torch.squeeze(call[0]) if call[1] is None else torch.squeeze(call[0], dim=tuple(call.whole(1)))


def reshape(call):
    x = call[0]
    shape = call.whole(1)
    if not call("allowzero"):
        shape = [x.shape[i] if size == 0 else size for i, size in enumerate(shape)]
    return x.reshape(shape)


def flatten(call):
    axis = call("axis")
    axis = axis + call[0].dim() if axis < 0 else axis
    return call[0].reshape(math.prod(call[0].shape[:axis]), -1)


def reverse_sequence(call):
    x, lengths = call[0].movedim((call("batch_axis"), call("time_axis")), (0, 1)), call.whole(1)
    rows = [torch.cat([torch.flip(row[:size], [0]), row[size:]]) for row, size in zip(x, lengths)]
    return torch.stack(rows).movedim((0, 1), (call("batch_axis"), call("time_axis")))


def space_to_depth(call):
    if call[0].numel() == 0:
        raise ValueError("PyTorch leaves the shape of nothing")
    x, size = F.pixel_unshuffle(call[0], call("blocksize")), call("blocksize") ** 2
    if call("mode", "DCR") == "CRD":
        return x
    batch, channels, height, width = x.shape
    return x.reshape(batch, channels // size, size, height, width).transpose(1, 2).reshape(x.shape)


def depth_to_space(call):
    x, size = call[0], call("blocksize") ** 2
    batch, channels, height, width = x.shape
    if call("mode") == "DCR":
        x = x.reshape(batch, size, channels // size, height, width).transpose(1, 2).reshape(x.shape)
    return F.pixel_shuffle(x, call("blocksize"))


def unique(call):
    axis = call("axis")
    if not call("sorted") or call[0].is_floating_point() and bool(torch.isnan(call[0]).any()):
        raise ValueError("in the order of appearance, or NaNs, of which PyTorch keeps each")
    values, inverse, counts = torch.unique(call[0], sorted=True, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape(-1)
    first = torch.full((counts.numel(),), inverse.numel()).scatter_reduce(0, inverse, torch.arange(inverse.numel()), "amin")
    return values, first, inverse, counts


def gather(call):
    axis = call("axis") % call[0].dim()
    index = torch.where(call[1] < 0, call[1] + call[0].shape[axis], call[1]).long()
    rows = call[0].index_select(axis, index.reshape(-1))
    return rows.reshape(*call[0].shape[:axis], *index.shape, *call[0].shape[axis + 1:])


def gather_elements(call):
    axis = call("axis")
    index = torch.where(call[1] < 0, call[1] + call[0].shape[axis], call[1]).long()
    return torch.gather(call[0], axis, index)


def expand(call):
    shape = torch.broadcast_shapes(call[0].shape, tuple(call.whole(1)))
    return call[0].expand(shape)



def span(call):
    start, limit, step = (each.item() for each in call.inputs)
    if not isinstance(start, float) and limit - start > 2**62:
        raise OverflowError("PyTorch counts in int64")
    return torch.arange(start, limit, step)


def eye_of(rows, columns, k):
    return (torch.arange(columns)[None, :] - torch.arange(rows)[:, None] == k).double()


def tile(call):
    return torch.tile(call[0], tuple(call.whole(1)))


def cast(call):
    kinds = {1: torch.float64, 10: torch.float64, 11: torch.float64, 16: torch.float64, 2: torch.uint8, 3: torch.int8, 5: torch.int16,
             6: torch.int32, 7: torch.int64, 9: torch.bool}
    return call[0].to(kinds[call("to")])


MOVES = {
    "CumSum": cumulative(torch.cumsum, 0), "CumProd": cumulative(torch.cumprod, 1), "Gather": gather, "GatherElements": gather_elements,
    "GatherND": gather_nd, "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "OneHot": one_hot, "TopK": top_k,
    "Compress": compress, "NonZero": lambda c: torch.nonzero(c[0]).T, "Unique": unique, "Trilu": trilu,
    "com.microsoft:Trilu": trilu, "Slice": slices, "Pad": pad, "Split": split, "Concat": lambda c: torch.cat(c.inputs, dim=c("axis")),
    "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Reshape": reshape, "Flatten": flatten, "Tile": tile, "Expand": expand,
    "Transpose": lambda c: c[0].permute(c("perm") or list(range(c[0].dim()))[::-1]), "ReverseSequence": reverse_sequence,
    "SpaceToDepth": space_to_depth, "DepthToSpace": depth_to_space, "EyeLike": lambda c: eye_of(*c[0].shape, c("k")), "Cast": cast,
    "Shape": lambda c: torch.tensor(c[0].shape[c("start"):] if c("end") is None else c[0].shape[c("start"):c("end")], dtype=torch.int64),
    "Size": lambda c: torch.tensor(c[0].numel()), "Range": span,
}

ANSWERS = {
    **{name: unary(function) for name, function in UNARY.items()},
    **{name: binary(function) for name, function in BINARY.items()},
    **ELEMENTWISE, **REDUCE, **MOVES,
}
