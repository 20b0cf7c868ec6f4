"""Answers of PyTorch in real numbers to operators that quantise, and to sequences."""
import numpy as np
import torch
import torch.nn.functional as F

import torch_layers

BOUNDS = {np.dtype(np.uint8): (0, 255), np.dtype(np.int8): (-128, 127), np.dtype(np.int16): (-32768, 32767)}


def along(value, x, axis):
    """A scale or zero point for each place on an axis, or one for all."""
    if value is None:
        return 0
    value = value.double()
    if value.numel() == 1:
        return value.reshape(())
    if value.dim() != 1:
        raise ValueError("scales of blocks")
    return value.reshape([-1 if i == axis % x.dim() else 1 for i in range(x.dim())])


def real(call, i, axis=1):
    """The numbers that a quantised input, its scale and its zero point stand for."""
    x = call[i].double()
    return (x - along(call[i + 2], x, axis)) * along(call[i + 1], x, axis)


def quantised(x, scale, zero, dtype, axis=1):
    if bool(torch.isnan(x).any()):
        raise ValueError("NaN is no step")
    low, high = BOUNDS[dtype]
    return torch.clamp(torch.round(x / along(scale, x, axis)) + along(zero, x, axis), low, high)


def quantize_linear(call):
    if call("block_size") or call("precision", 0) not in (0, 1) or (call[2] is None and call("output_dtype") not in (0, 2)):
        raise ValueError("another form")
    dtype = np.dtype(np.uint8) if call[2] is None else call.dtypes[2]
    return quantised(call[0].double(), call[1], call[2], dtype, call("axis"))


def dequantize_linear(call):
    if call("block_size"):
        raise ValueError("scales of blocks")
    x = call[0].double()
    return (x - along(call[2], x, call("axis"))) * along(call[1], x, call("axis"))


def qlinear_matmul(call):
    if call[1].numel() > 1 or call[4].numel() > 1:
        raise ValueError("scales of rows")
    return quantised(torch.matmul(real(call, 0), real(call, 3)), call[6], call[7], call.dtypes[7])


def qlinear_conv(call):
    bias = None if call[8] is None else call[8].double() * call[1].reshape(()) * call[4].reshape(-1)
    if bias is not None and bias.numel() == 1:
        bias = bias.expand(call[3].shape[0])
    y = torch_layers.convolved(call, real(call, 0), real(call, 3, axis=0), bias)
    return quantised(y, call[6], call[7], call.dtypes[7])


def max_unpool(call):
    x, index = call[0], call[1]
    strides = call("strides") or [1] * (x.dim() - 2)
    pads = call("pads") or [0] * 2 * len(strides)
    count = len(strides)
    sizes = [(n - 1) * s - pads[i] - pads[i + count] + k for i, (n, s, k) in enumerate(zip(x.shape[2:], strides, call("kernel_shape")))]
    if call[2] is not None:
        raise ValueError("indices of another shape")
    plane = int(np.prod(sizes))
    offset = torch.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * count) * plane
    unpool = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}[count]
    return unpool(x, index - offset, call("kernel_shape"), strides, 0, output_size=sizes)


def split_to_sequence(call):
    x, axis = call[0], call("axis")
    if x.shape[axis] == 0:
        raise ValueError("PyTorch keeps one empty part")
    if call[1] is None:
        parts = x.split(1, dim=axis)
        return [[(each if call("keepdims") else each.squeeze(axis)).numpy() for each in parts]]
    sizes = call.whole(1)
    return [[each.numpy() for each in x.split(sizes if call[1].dim() else sizes[0], dim=axis)]]


def tensor_scatter(call):
    past, update, axis = call[0].clone(), call[1], call("axis") % call[0].dim()
    size = past.shape[axis]
    starts = [0] * past.shape[0] if call[2] is None else call.whole(2)
    for row, start in enumerate(starts):
        at = torch.arange(start, start + update.shape[axis])
        past[row] = past[row].index_copy(axis - 1, at % size if call("mode") == "circular" else at, update[row])
    return past


def cast_like(call):
    return call[0].to(call[1].dtype)


def filled(call):
    value = np.asarray(0 if call("value") is None else onnx_value(call("value")))
    return torch.full(call.whole(0, []), value.reshape(-1)[0].item())


def onnx_value(tensor):
    from onnx import numpy_helper
    return numpy_helper.to_array(tensor)


ANSWERS = {
    "QuantizeLinear": quantize_linear, "DequantizeLinear": dequantize_linear, "QLinearMatMul": qlinear_matmul, "QLinearConv": qlinear_conv,
    "MaxUnpool": max_unpool, "SplitToSequence": split_to_sequence, "SequenceConstruct": lambda c: [[each.numpy() for each in c.inputs]],
    "TensorScatter": tensor_scatter, "CastLike": cast_like, "ConstantOfShape": filled,
}
