#!/usr/bin/env python3
"""Random cases of com.microsoft's quantised and generating operators, against ONNX Runtime.

ort_quant_cases.py --unmoor build/release/unmoor --on reference [--only QGemm]
"""

import itertools
import sys

import numpy as np
from onnx import TensorProto

import ort_rewritten_cases
import ort_search_cases
from ort_compare import Case, Constant, run_cases
from ort_values import I8, U8, normal, numbers, packed, random, scalar, scales, weights, whole


def qlinear_binary(op):
    shapes = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((257,), (1,)), ((3, 1, 5), (7, 1)), ((1, 64), (16, 64)), ((4, 4), ())]
    for (a, b), dtype in itertools.product(shapes, (U8, I8)):
        yield Case(
            op,
            [whole(dtype, *a), scales(), whole(dtype), whole(dtype, *b), scales(), whole(dtype), np.float32(2) * scales(), whole(dtype)],
            steps=0.02,
        )


def qlinear_unary(op, attributes=({},), y_scale=1 / 256):
    for dtype, extra, shape in itertools.product((U8, I8), attributes, ((3, 5, 7), (256,), (4, 100), (1,), (33,))):
        yield Case(op, [whole(dtype, *shape), scales(), whole(dtype), scalar(y_scale), scalar(0, dtype)], extra, steps=0.02)


def qlinear_softmax():
    # ONNX Runtime divides by the floor of 1 / scale and, for int8, does not saturate: scales and zero points of a softmax as exporters write them.
    for dtype, zero in ((U8, 0), (I8, -128)):
        for opset, axis in ((13, -1), (13, 1), (13, 0), (12, 1), (12, 2), (11, -1)):
            yield Case(
                "QLinearSoftmax",
                [whole(dtype, 3, 4, 5), scales(), whole(dtype), scalar(1 / 256), scalar(zero, dtype)],
                {"axis": axis, "opset": opset},
                steps=0.05,
            )


def qlinear_where():
    for (c, x, y), dtype in itertools.product(
        [((2, 3, 4),) * 3, ((4,), (2, 3, 4), ()), ((3, 1), (1, 5), (5,)), ((), (33,), (33,)), ((6, 1), (6, 7), (1, 7))], (U8, I8)
    ):
        yield Case(
            "QLinearWhere",
            [
                np.asarray(random.integers(0, 2, c), bool),
                whole(dtype, *x),
                scales(),
                whole(dtype),
                whole(dtype, *y),
                scales(),
                whole(dtype),
                np.float32(2) * scales(),
                whole(dtype),
            ],
        )


def qlinear_concat():
    for parts, axis in (
        ([(2, 3), (2, 4)], 1),
        ([(2, 3)], 0),
        ([(1, 2, 5), (1, 4, 5), (1, 1, 5)], 1),
        ([(0, 3), (2, 3)], 0),
        ([(4, 5), (4, 5)], -1),
    ):
        for dtype in (U8, I8):
            inputs = [np.float32(2) * scales(), whole(dtype)]
            for shape in parts:
                inputs += [whole(dtype, *shape), scales(), whole(dtype)]
            yield Case("QLinearConcat", inputs, {"axis": axis})


def qlinear_pool():
    forms = [
        ({"kernel_shape": [2, 2], "strides": [2, 2]}, (1, 3, 8, 8)),
        ({"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, (2, 3, 9, 7)),
        ({"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (2, 3, 9, 7)),
        ({"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 2]}, (1, 2, 7, 7)),
        ({"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}, (1, 3, 10, 10)),
        ({"kernel_shape": [5], "strides": [3]}, (2, 3, 17)),
        ({"kernel_shape": [3, 3], "channels_last": 1, "pads": [1, 1, 1, 1]}, (2, 9, 7, 4)),
    ]
    for (attributes, shape), dtype in itertools.product(forms, (U8, I8)):
        yield Case("QLinearAveragePool", [whole(dtype, *shape), scales(), whole(dtype), scales(), whole(dtype)], attributes, steps=0.03)
    for (shape, last), dtype in itertools.product(
        [((2, 3, 7, 5), 0), ((2, 7, 5, 3), 1), ((1, 64, 3, 3), 0), ((1, 5, 6), 0), ((1, 2, 3, 4, 5), 0)], (U8, I8)
    ):
        yield Case(
            "QLinearGlobalAveragePool",
            [whole(dtype, *shape), scales(), whole(dtype), scales(), whole(dtype)],
            {"channels_last": last},
            steps=0.1,
        )


def integer_products():
    for a, b in (
        ((4, 3), (3, 2)),
        ((17, 33), (33, 9)),
        ((2, 3, 4), (2, 4, 5)),
        ((1, 300), (300, 4)),
        ((2, 1, 4, 3), (3, 3, 2)),
        ((1, 1), (1, 64)),
    ):
        for a_type, b_type in ((U8, U8), (U8, I8), (I8, I8)):
            columns = b[-1]
            wide = len(b) == 2 and columns > 2
            b_scale, b_zero = (scales(columns), whole(b_type, columns)) if wide else (scales(), whole(b_type))
            yield Case(
                "MatMulIntegerToFloat",
                [
                    whole(a_type, *a),
                    Constant(weights(b_type, *b)),
                    scales(),
                    Constant(b_scale),
                    whole(a_type),
                    Constant(b_zero),
                    normal(columns) if wide else None,
                ],
            )
            if a_type is U8:
                yield Case(
                    "DynamicQuantizeMatMul", [normal(*a), Constant(weights(b_type, *b)), Constant(b_scale), Constant(b_zero), normal(columns)]
                )


def qgemm():
    for trans_a, trans_b, per_column, bias, quantised in itertools.product((0, 1), (0, 1), (0, 1), (None, (1, 9), (17, 9), (9,)), (0, 1)):
        if trans_a and quantised:
            continue
        a, b = (33, 17) if trans_a else (17, 33), (9, 33) if trans_b else (33, 9)
        shape = (9,) if per_column else ()
        inputs = [
            whole(U8, *a),
            scales(),
            whole(U8),
            Constant(weights(I8, *b)),
            scales(*shape),
            whole(I8, *shape),
            None if bias is None else random.integers(-5000, 5000, bias).astype(np.int32),
        ]
        yield Case(
            "QGemm", inputs + ([scales() * 30, whole(U8)] if quantised else []), {"transA": trans_a, "transB": trans_b, "alpha": 0.75}
        )


def matmul_nbits():
    for bits, (k, block), zero, m in itertools.product(
        (2, 4, 8), ((64, 32), (40, 16), (256, 128)), ("none", "packed", "float"), ((3,), (2, 2))
    ):
        if bits == 8 and zero == "float":
            continue  # ONNX Runtime's CPU kernel has no such form.
        n, blocks = 7, -(-k // block)
        b = np.concatenate([numbers(bits, n, k), np.zeros((n, blocks * block - k), int)], 1).reshape(n, blocks, block)
        points = {
            "none": None,
            "packed": Constant(packed(numbers(bits, n, blocks), bits)),
            "float": Constant(random.uniform(1, 2**bits, (n, blocks)).astype(np.float32)),
        }
        yield Case(
            "MatMulNBits",
            [normal(*m, k), Constant(packed(b, bits)), Constant(scales(n, blocks)), points[zero], None, normal(n) if len(m) == 2 else None],
            {"K": k, "N": n, "bits": bits, "block_size": block},
        )
    order = random.permutation(np.repeat(np.arange(4), 16)).astype(np.int32)
    # ONNX Runtime's CPU kernel leaves packed zero points out where there is g_idx: floating-point ones here.
    for points in (None, Constant(random.uniform(1, 16, (5, 4)).astype(np.float32))):
        yield Case(
            "MatMulNBits",
            [normal(2, 64), Constant(packed(numbers(4, 5, 4, 16), 4)), Constant(scales(5, 4)), points, Constant(order)],
            {"K": 64, "N": 5, "bits": 4, "block_size": 16},
            note="g_idx",
        )
    for bias in (None, normal(5)):
        yield Case(
            "MatMulNBits",
            [normal(2, 64), np.zeros((5, 4, 0), U8), np.zeros((0,), np.float32), None, None, bias],
            {"K": 64, "N": 5, "bits": 4, "block_size": 16},
            note="without weights",
        )


def gather_block():
    indices = [np.array([0, 4, -1, 9], np.int64), np.array([[1, 2], [3, -5]], np.int32), np.array(3, np.int64)]
    for bits, zero, index in itertools.product((2, 4, 8), (0, 1), indices):
        yield Case(
            "GatherBlockQuantized",
            [
                Constant(packed(numbers(bits, 5, 40), bits)),
                index,
                Constant(scales(5, 3)),
                Constant(packed(numbers(bits, 5, 3), bits)) if zero else None,
            ],
            {"bits": bits, "block_size": 16, "quantize_axis": 1},
        )
    for kind, low in ((TensorProto.INT4, -8), (TensorProto.UINT4, 0)):
        for gather, quantise, zero in ((0, 1, 0), (0, 1, 1), (1, 0, 1), (0, 0, 1)):
            shape, blocks = ((5, 33), (5, 3)) if quantise == 1 else ((33, 5), (3, 5))
            draw = lambda s: Constant(random.integers(low, low + 16, s), kind)
            yield Case(
                "GatherBlockQuantized",
                [draw(shape), indices[1], Constant(scales(*blocks)), draw(blocks) if zero else None],
                {"block_size": 16, "gather_axis": gather, "quantize_axis": quantise},
            )
    for kind in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2):
        for block, shape in ((16, (5, 3)), (0, (1, 1))):
            yield Case("GatherBlockQuantized", [Constant(normal(5, 33), kind), indices[0], Constant(scales(*shape))], {"block_size": block})


def quantised_lstm():
    for direction, signed, per_channel, extras in itertools.product(("forward", "reverse", "bidirectional"), (0, 1), (0, 1), (0, 1)):
        d, steps, batch, width, hidden = (2 if direction == "bidirectional" else 1), 5, 3, 6, 4
        dtype = I8 if signed else U8
        side = (d, 4 * hidden) if per_channel else (d,)
        zero = np.zeros(side, I8) if signed else np.full(side, 128, U8)
        yield Case(
            "DynamicQuantizeLSTM",
            [
                normal(steps, batch, width),
                Constant(weights(dtype, d, width, 4 * hidden)),
                Constant(weights(dtype, d, hidden, 4 * hidden)),
                normal(d, 8 * hidden) if extras else None,
                np.array([5, 2, 4], np.int32) if extras else None,
                normal(d, batch, hidden) if extras else None,
                normal(d, batch, hidden) if extras else None,
                normal(d, 3 * hidden) if extras else None,
                Constant(scales(*side) / 5),
                Constant(zero),
                Constant(scales(*side) / 5),
                Constant(zero),
            ],
            {"hidden_size": hidden, "direction": direction},
            outputs=3,
            tolerance=5e-3,
        )


def quantised_attention():
    heads, hidden, steps, batch, width = 2, 8, 3, 2, 5
    masks = {
        "none": None,
        "ends": np.array([2, 3], np.int32),
        "both": np.array([2, 3, 1, 0], np.int32),
        "keys": np.array([[1, 1, 0], [1, 0, 1]], np.int32),
        "pairs": random.integers(0, 2, (batch, steps, steps)).astype(np.int32),
        "shut": np.zeros((batch, steps), np.int32),
        "dummy": np.ones((batch, 1), np.int32),
    }
    for (kind, mask), causal in itertools.product(masks.items(), (0, 1)):
        per_column = (3 * hidden,) if kind in ("none", "ends") else ()
        yield Case(
            "QAttention",
            [
                whole(U8, batch, steps, width),
                Constant(weights(I8, width, 3 * hidden)),
                normal(3 * hidden),
                scales() / 10,
                Constant(scales(*per_column) / 10),
                mask,
                whole(U8),
                Constant(whole(I8, *per_column)),
            ],
            {"num_heads": heads, "unidirectional": causal},
            note=kind,
        )
    for kind, mask in (("none", None), ("keys", random.integers(0, 2, (batch, steps + 4)).astype(np.int32))):
        for causal in (0, 1):
            yield Case(
                "QAttention",
                [
                    whole(U8, batch, steps, width),
                    Constant(whole(U8, width, 3 * hidden)),
                    normal(3 * hidden),
                    scales() / 10,
                    scales() / 10,
                    mask,
                    whole(U8),
                    whole(U8),
                    normal(2, batch, heads, 4, hidden // heads),
                ],
                {"num_heads": heads, "unidirectional": causal},
                outputs=2,
                note="past",
            )


def mixtures():
    rows, hidden, inner, experts = 5, 32, 32, 4
    router = lambda: normal(rows, experts)
    for act, k, norm, biased in itertools.product(("relu", "gelu", "silu", "identity", "swiglu"), (1, 2), (0, 1), (0, 1)):
        first = 2 * inner if act == "swiglu" else inner
        form = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.5} if act == "swiglu" else {}
        yield Case(
            "MoE",
            [
                normal(rows, hidden),
                router(),
                normal(experts, first, hidden),
                normal(experts, first) if biased else None,
                normal(experts, hidden, inner),
                normal(experts, hidden) if biased else None,
            ],
            {"k": k, "activation_type": act, "normalize_routing_weights": norm, **form},
        )
    for bits, block, zero, act, given in itertools.product((2, 4, 8), (0, 16), (0, 1), ("silu", "swiglu"), (0, 1)):
        first = 2 * inner if act == "swiglu" else inner
        form = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 7.0} if act == "swiglu" else {}
        form.update({"block_size": block} if block else {})
        side = lambda n, k: (experts, n, k // block) if block else (experts, n)
        points = lambda n, k: packed(numbers(bits, *side(n, k)), bits) if zero else None
        yield Case(
            "QMoE",
            [
                normal(2, 3, hidden) if given else normal(rows, hidden),
                normal(6 if given else rows, experts),
                packed(numbers(bits, experts, first, hidden), bits),
                scales(*side(first, hidden)),
                normal(experts, first),
                packed(numbers(bits, experts, hidden, inner), bits),
                scales(*side(hidden, inner)),
                None,
                None,
                None,
                None,
                points(first, hidden),
                points(hidden, inner),
                None,
                random.random((6, experts)).astype(np.float32) if given else None,
            ],
            {"k": 2, "activation_type": act, "expert_weight_bits": bits, "normalize_routing_weights": zero, **form},
            tolerance=1e-3,
        )


def all_cases():
    yield from qlinear_binary("QLinearAdd")
    yield from qlinear_binary("QLinearMul")
    yield from qlinear_unary("QLinearSigmoid")
    yield from qlinear_unary("QLinearLeakyRelu", ({"alpha": 0.1}, {"alpha": 0.5}, {}), y_scale=0.03)
    for family in (
        qlinear_softmax,
        qlinear_where,
        qlinear_concat,
        qlinear_pool,
        integer_products,
        qgemm,
        matmul_nbits,
        gather_block,
        quantised_lstm,
        quantised_attention,
        mixtures,
    ):
        yield from family()
    yield from ort_rewritten_cases.all_cases()
    yield from ort_search_cases.all_cases()


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, all_cases))
