"""Cases of com.microsoft's operators that become ai.onnx's when a model is read."""

import itertools

import numpy as np
from onnx import TensorProto

from ort_compare import Case, Constant
from ort_values import I8, U8, normal, random, scalar, scales, whole


def all_cases():
    for dtype, real in itertools.product((np.uint16, np.int16, U8, I8), (np.float32, np.float16)):
        yield Case(
            "QuantizeLinear", [normal(33).astype(real), scalar(0.003, real) * (1 if dtype().itemsize == 2 else 10), whole(dtype)], steps=0.1
        )
        yield Case("DequantizeLinear", [whole(dtype, 3, 5), scales(3).astype(real), whole(dtype, 3)], {"axis": 0}, tolerance=1e-3)
    for axis, size in ((0, 3), (1, 5), (-1, 7), (-2, 5)):
        yield Case("QuantizeLinear", [normal(3, 5, 7), scales(size), whole(np.uint16, size)], {"axis": axis})
    for kind, low in ((TensorProto.INT4, -8), (TensorProto.UINT4, 0)):
        yield Case("DequantizeLinear", [Constant(random.integers(low, low + 16, (4, 5)), kind), scalar(0.3), Constant(low + 3, kind)])
    for mode, padding, corners in itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (0, 1)):
        if (mode, padding) == ("bicubic", "border"):
            continue  # ONNX Runtime clips each tap; ONNX's text and its evaluator clip the coordinate, and then interpolate.
        yield Case(
            "GridSample",
            [normal(2, 3, 4, 5), random.uniform(-1.4, 1.4, (2, 3, 2, 2)).astype(np.float32)],
            {"mode": mode, "padding_mode": padding, "align_corners": corners},
        )
    for upper, k in itertools.product((0, 1), (None, -2, -1, 0, 1, 7)):
        yield Case("Trilu", [normal(2, 3, 5), None if k is None else np.array(k, np.int64)], {"upper": upper})
    for values in (
        [2, 1, 1, 3, 4, 3],
        [1],
        [5, 5, 5],
        [0, -1, 0, -1, 2.5],
        *(random.integers(0, n, n * 3) for n in (2, 4, 9, 20, 50, 100)),
    ):
        yield Case("Unique", [np.array(values, np.float32)], outputs=3)
    for mode, pads, value in itertools.product(("constant", "reflect", "edge"), ([0, 1, 1, 2], [[1, 0, 0, 1]], [-1, 1, 0, 0]), (None, 2.5)):
        if mode == "reflect" and pads[0] == -1:
            continue
        yield Case("Pad", [normal(3, 4), np.array(pads, np.int64), None if value is None else scalar(value)], {"mode": mode})
    for start, limit, delta, dtype in (
        (1, 10, 2, np.float32),
        (10, 1, -3, np.int64),
        (0, 5, None, np.int32),
        (0, 1, 0.1, np.float32),
        (3, 3, 1, np.int16),
        (2, 8, None, np.float64),
    ):
        for shape in ((), (1,)):
            given = lambda x: None if x is None else np.full(shape, x, dtype)
            yield Case("Range", [given(start), given(limit), given(delta)])
