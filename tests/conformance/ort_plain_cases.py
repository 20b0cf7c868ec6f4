#!/usr/bin/env python3
"""Random cases of com.microsoft's activations, normalisations, products, layouts and texts, against ONNX Runtime.

ort_plain_cases.py --unmoor build/release/unmoor --on reference [--only Tokenizer]
"""

import itertools
import sys

import numpy as np

from ort_compare import Case, Constant, run_cases
from ort_values import I8, U8, normal, numbers, packed, random, scalar, scales, weights, whole

SHAPES = ((7,), (2, 3, 16), (1, 257), (4, 1, 3, 5), (0, 4))


def edges():
    """What activations go wrong at: both zeros, large and tiny numbers, infinities."""
    return np.array([0.0, -0.0, 1e-30, -1e-30, 5.5, -5.5, 30, -30, 1e4, -1e4, np.inf, -np.inf], np.float32)


def activations():
    for shape in SHAPES:
        yield Case("Gelu", [3 * normal(*shape)])
        yield Case("BiasGelu", [normal(*shape), normal(shape[-1])])
        yield Case("BiasGelu", [Constant(normal(*shape)) if shape[0] else normal(*shape), 3 * normal(shape[-1])])
        for bias in (None, normal(shape[-1])):
            yield Case("FastGelu", [2 * normal(*shape), bias])
        for alpha in (None, 1.0, 0.3, -1.5):
            yield Case("QuickGelu", [3 * normal(*shape)], {} if alpha is None else {"alpha": alpha})
    for count in (1, 2, 31, 100):
        yield Case("Gelu", [normal(count)], note="lengths beside those of vectors")
    yield Case("Gelu", [edges()[:-2]])
    yield Case("FastGelu", [edges()[:-2]])
    yield Case("QuickGelu", [edges()[:-2]])


def skip_normalizations():
    for dtype, tolerance in ((np.float32, 1e-4), (np.float16, 3e-3)):
        make = lambda *shape: normal(*shape).astype(dtype)
        for shape, skip in (((2, 3, 16), (2, 3, 16)), ((2, 3, 16), (1, 3, 16)), ((2, 3, 16), (3, 16)), ((5, 64), (5, 64)), ((1, 1, 3), (1, 1, 3))):
            if len(shape) == 2 and dtype == np.float16:
                continue
            size = shape[-1]
            for beta, bias in itertools.product((None, make(size)), repeat=2):
                more = {} if beta is None else {"epsilon": 1e-5}
                yield Case("SkipLayerNormalization", [make(*shape), make(*skip), make(size), beta, bias], more, tolerance=tolerance)
            for bias in (None, make(size)):
                yield Case("SkipSimplifiedLayerNormalization", [make(*shape), make(*skip), make(size), bias], {"epsilon": 1e-6}, tolerance=tolerance)
    for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        more = [normal(8)] if op == "SkipLayerNormalization" else []
        yield Case(op, [100 + normal(2, 4, 8), normal(2, 4, 8), normal(8), *more, normal(8)], outputs=4, tolerance=1e-3, note="a large mean")


def fused_products():
    for a, b, form in (
        ((3, 4), (4, 5), {}),
        ((3, 4), (4, 5), {"alpha": 0.25}),
        ((4, 3), (4, 5), {"transA": 1}),
        ((3, 4), (5, 4), {"transB": 1, "alpha": -2.0}),
        ((4, 3), (5, 4), {"transA": 1, "transB": 1}),
        ((2, 3, 4), (2, 4, 5), {}),
        ((2, 1, 4, 3), (3, 5, 4), {"transA": 1, "transB": 1}),
        ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        ((2, 3, 4), (4, 2, 5), {"transBatchB": 1}),
        ((4, 2, 3), (5, 2, 4), {"transA": 1, "transB": 1, "transBatchA": 1, "transBatchB": 1, "alpha": 0.5}),
        ((3, 2, 5, 4), (2, 5, 4, 6), {"transBatchA": 1}),
        ((4,), (4, 5), {}),
        ((2, 3, 4), (4,), {}),
        ((0, 4), (4, 5), {}),
    ):
        for dtype in (np.float32, np.float64):
            yield Case("FusedMatMul", [normal(*a).astype(dtype), normal(*b).astype(dtype)], form)


def halves():
    """float16, where the kernels take it."""
    half = lambda *shape: (normal(*shape) / 2).astype(np.float16)
    for bits, zero in itertools.product((4, 8), (0, 1)):
        points = Constant(packed(numbers(bits, 7, 2), bits)) if zero else None
        weights = Constant(packed(numbers(bits, 7, 2, 32), bits))
        scale = Constant((scales(7, 2) / 4).astype(np.float16))
        yield Case("MatMulNBits", [half(3, 64), weights, scale, points], {"K": 64, "N": 7, "bits": bits, "block_size": 32}, tolerance=3e-3)
        yield Case(
            "GatherBlockQuantized",
            [Constant(packed(numbers(bits, 5, 32), bits)), np.array([0, 4, -1], np.int64), Constant(scales(5, 2).astype(np.float16)),
             Constant(packed(numbers(bits, 5, 2), bits)) if zero else None],
            {"bits": bits, "block_size": 16, "quantize_axis": 1},
            tolerance=2e-3,
        )
    for interleaved, shape in itertools.product((0, 1), ((2, 3, 16), (2, 2, 3, 8))):
        tables = [half(10, 4), half(10, 4)]
        yield Case("RotaryEmbedding", [half(*shape), random.integers(0, 10, (2, 3)), *tables], {"interleaved": interleaved}, tolerance=2e-3)


def channels_last():
    forms = [
        ({"kernel_shape": [2, 2], "strides": [2, 2]}, (1, 8, 8, 3)),
        ({"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (2, 7, 9, 4)),
        ({"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 2]}, (1, 7, 7, 2)),
        ({"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER", "strides": [2, 2]}, (1, 9, 10, 3)),
        ({"kernel_shape": [2, 3], "dilations": [2, 1]}, (1, 8, 8, 5)),
        ({"kernel_shape": [5]}, (2, 17, 3)),
    ]
    for (attributes, shape), dtype in itertools.product(forms, (U8, I8)):
        yield Case("NhwcMaxPool", [whole(dtype, *shape)], attributes, steps=0)
    forms = [
        ({"pads": [1, 1, 1, 1]}, (1, 3, 7, 8), (4, 3, 3, 3)),
        ({"strides": [2, 2], "group": 2}, (2, 4, 9, 7), (6, 2, 3, 3)),
        ({"dilations": [2, 1]}, (1, 2, 9, 9), (3, 2, 3, 2)),
        ({"auto_pad": "SAME_UPPER", "group": 4}, (1, 4, 5, 6), (4, 1, 3, 3)),
    ]
    for (attributes, shape, sides), kind, last in itertools.product(forms, ((U8, U8), (U8, I8), (I8, I8)), (0, 1)):
        x = whole(kind[0], *shape)
        x = np.moveaxis(x, 1, -1).copy() if last else x
        count = sides[0]
        per_channel = (count,) if kind[1] is I8 else ()
        zero = np.zeros(per_channel, I8) if kind[1] is I8 else scalar(128, U8)
        bias = random.integers(-3000, 3000, count).astype(np.int32) if attributes.get("group") != 2 else None
        yield Case(
            "QLinearConv",
            [x, scales(), whole(kind[0]), Constant(weights(kind[1], *sides)), Constant(scales(*per_channel)), Constant(zero), scalar(0.5),
             whole(kind[0]), None if bias is None else Constant(bias)],
            {**attributes, "channels_last": last},
        )


def tokens():
    text = lambda *words: np.array(words, object)
    spoken = text("Hello World", "I love science !")
    for given, form in (
        (spoken, {"mark": 0, "separators": [" "]}),
        (spoken, {"mark": 1, "separators": [" "]}),
        (text("a bc  def", ""), {"mark": 0, "separators": [" "], "mincharnum": 2}),
        (text("a;b,c", "d").reshape(1, 2), {"mark": 0, "separators": [";", ","]}),
        (text("a;b,c", "d;;e").reshape(2, 1), {"mark": 1, "separators": [",", ";"]}),
        (text("abc", "été"), {"mark": 0, "separators": [""]}),
        (text("abc", "été"), {"mark": 1, "separators": [""]}),
        (text("one 2 three", "four4five"), {"mark": 0, "tokenexp": "[a-z]+"}),
        (text("one 2 three", "four4five"), {"mark": 1, "tokenexp": "[a-z]+", "mincharnum": 4}),
        (text("aXbXXc", "dX"), {"mark": 0, "separators": ["X+"]}),
        (text("été à la plage", "mañana"), {"mark": 0, "separators": [" "], "mincharnum": 3}),
        (text("été à la plage", "mañana"), {"mark": 0, "tokenexp": "[^ ]+"}),
        (text("x1y22z333"), {"mark": 1, "tokenexp": "[0-9]+"}),
    ):
        yield Case("Tokenizer", [given], {"pad_value": "#", "mincharnum": 1, **form})


def all_cases():
    for family in (activations, skip_normalizations, fused_products, halves, channels_last, tokens):
        yield from family()


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, all_cases))
