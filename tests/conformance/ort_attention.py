#!/usr/bin/env python3
"""Compares attention operators, ONNX's and com.microsoft's, with ONNX Runtime's CPU kernels on models of one node.

  ort_attention.py --unmoor build/release/unmoor                 every case on reference and cpu
  ort_attention.py --unmoor build/release/unmoor --only Rotary   operators whose name holds this text
"""
import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

TOLERANCE = 1e-5  # Relative L2 error of an output in float32; no element may be off by more than ten times that of the largest.
DTYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
          "bool": TensorProto.BOOL, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}

# `defined`: by output, which elements its contract defines; all where it is shorter.
Case = collections.namedtuple("Case", "op inputs attributes outputs defined")


class Maker:
    """Makes the inputs of one operator's cases, the same every time."""

    def __init__(self, op):
        self.op = op
        self.random = np.random.default_rng(zlib.crc32(op.encode()))

    def f(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def ones(self, *shape, chance=0.6):
        return (self.random.random(shape) < chance).astype(np.int32)

    def index(self, bound, *shape, dtype=np.int64):
        return self.random.integers(0, bound, shape).astype(dtype)

    def case(self, *inputs, outputs=1, defined=(), op=None, **attributes):
        return Case(op or self.op, inputs, attributes, outputs, defined)


def i32(*values):
    return np.array(values, np.int32)


def total(value):
    return np.array(value, np.int32)


def attention():
    m = Maker("Attention")
    q, k, v = m.f(2, 3, 4, 8), m.f(2, 3, 6, 8), m.f(2, 3, 6, 8)
    yield from (m.case(q, k, v, is_causal=c) for c in (0, 1))
    yield m.case(q, k, v, scale=0.25, softcap=2.0)
    yield m.case(m.f(2, 4, 24), m.f(2, 6, 24), m.f(2, 6, 30), q_num_heads=3, kv_num_heads=3)
    yield m.case(m.f(2, 6, 4, 8), m.f(2, 2, 6, 8), m.f(2, 2, 6, 10))
    yield m.case(m.f(1, 3, 40), m.f(1, 5, 8), m.f(1, 5, 12), q_num_heads=5, kv_num_heads=1, is_causal=1)
    for mask in (m.ones(4, 6) > 0, m.ones(2, 1, 4, 6) > 0, m.f(4, 6), m.f(2, 3, 4, 6), m.f(1, 1, 4, 6)):
        if mask.dtype == bool:
            mask[..., 0] = True
        yield from (m.case(q, k, v, mask, is_causal=c) for c in (0, 1))
    past = m.f(2, 3, 5, 8), m.f(2, 3, 5, 6)
    yield from (m.case(q, m.f(2, 3, 2, 8), m.f(2, 3, 2, 6), None, *past, is_causal=c, outputs=3) for c in (0, 1))
    yield m.case(m.f(2, 1, 24), m.f(2, 1, 8), m.f(2, 1, 8), None, m.f(2, 1, 5, 8), m.f(2, 1, 5, 8), q_num_heads=3, kv_num_heads=1, outputs=3)
    yield from (m.case(q, k, v, m.f(4, 6), qk_matmul_output_mode=mode, outputs=4) for mode in (0, 3))


def rotary_embedding():
    m = Maker("RotaryEmbedding")
    for interleaved in (0, 1):
        yield m.case(m.f(2, 3, 4, 8), m.f(10, 4), m.f(10, 4), m.index(10, 2, 4), interleaved=interleaved)
        yield m.case(m.f(2, 4, 24), m.f(10, 4), m.f(10, 4), m.index(10, 2, 4), num_heads=3, interleaved=interleaved)
        yield m.case(m.f(2, 3, 4, 8), m.f(2, 4, 4), m.f(2, 4, 4), interleaved=interleaved)
        yield m.case(m.f(2, 4, 24), m.f(2, 4, 4), m.f(2, 4, 4), num_heads=3, interleaved=interleaved)
        yield m.case(m.f(2, 4, 24), m.f(10, 2), m.f(10, 2), m.index(10, 2, 4), num_heads=3, rotary_embedding_dim=4, interleaved=interleaved)
        yield m.case(m.f(1, 1, 1, 2), m.f(3, 1), m.f(3, 1), m.index(3, 1, 1), interleaved=interleaved)


def multi_head_attention():
    m = Maker("com.microsoft:MultiHeadAttention")
    q, k, v = m.f(2, 3, 8), m.f(2, 5, 8), m.f(2, 5, 8)
    yield m.case(q, k, v, num_heads=2)
    yield m.case(q, k, v, num_heads=4, scale=0.3)
    yield m.case(q, k, m.f(2, 5, 6), m.f(22), num_heads=2)
    for mask in (i32(3, 5), i32(3, 5, 0, 3, 6, 0, 3, 8), m.ones(2, 5), i32(1, 0, 2, -1, 0, 1, 1, 1, 0, 0).reshape(2, 5), m.ones(2, 3, 5)):
        yield m.case(q, k, v, None, mask, num_heads=2)
    yield m.case(q, k, v, None, m.ones(2, 5), num_heads=2, mask_filter_value=-5.0)
    yield m.case(q, k, v, None, i32(0, 0, 0, 0, 0, 1, 1, 1, 0, 0).reshape(2, 5), num_heads=2, mask_filter_value=float(np.finfo(np.float32).min))
    for bias in (m.f(1, 1, 3, 5), m.f(2, 2, 3, 5), m.f(1, 2, 3, 5)):
        yield m.case(q, k, v, None, None, bias, num_heads=2)
    s = m.f(2, 4, 8), m.f(2, 4, 8), m.f(2, 4, 8)
    yield m.case(*s, num_heads=2, unidirectional=1, outputs=3)
    yield m.case(*s, m.f(24), m.ones(2, 4), m.f(2, 1, 4, 4), num_heads=2, unidirectional=1, outputs=4)
    yield m.case(q, m.f(2, 2, 5, 4), m.f(2, 2, 5, 4), num_heads=2, outputs=3)
    yield m.case(q, m.f(2, 2, 5, 4), m.f(2, 2, 5, 4), m.f(24), num_heads=2)
    past = m.f(2, 2, 3, 4), m.f(2, 2, 3, 4)
    for mask in (None, i32(5, 7), m.ones(2, 7), m.ones(2, 4, 7)):
        yield m.case(*s, m.f(24), mask, None, *past, num_heads=2, outputs=3)
    yield m.case(*s, None, None, m.f(1, 1, 4, 7), *past, num_heads=2, unidirectional=1, outputs=3)
    one = m.f(2, 1, 8), m.f(2, 1, 8), m.f(2, 1, 8)
    room = m.f(2, 2, 6, 4), m.f(2, 2, 6, 4)
    yield m.case(*one, None, None, None, *room, i32(3), num_heads=2, outputs=4)
    yield m.case(*one, None, None, None, *room, i32(3), i32(0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1).reshape(1, 2, 6), num_heads=2, outputs=3)


def decoder_masked_multi_head_attention():
    m = Maker("com.microsoft:DecoderMaskedMultiHeadAttention")
    one = m.f(2, 1, 8), m.f(2, 1, 8), m.f(2, 1, 8)
    room = m.f(2, 2, 6, 4), m.f(2, 2, 6, 4)
    shared = {"num_heads": 2, "past_present_share_buffer": 1, "outputs": 3}
    yield from (m.case(*one, None, None, *room, i32(past), **shared) for past in (0, 3, 5))
    yield m.case(*one, m.ones(2, 4), None, *room, i32(3), **shared)
    yield m.case(*one, m.ones(2, 4), None, *room, i32(3), mask_filter_value=-3.0, scale=0.4, **shared)
    yield from (m.case(*one, None, bias, *room, i32(3), **shared) for bias in (m.f(1, 1, 1, 4), m.f(2, 2, 1, 4)))
    yield m.case(*one, None, m.f(1, 2, 1, 4), *room, i32(3), **{**shared, "outputs": 4}, output_qk=1)
    yield m.case(*one, None, None, *room, i32(3), None, None, m.f(24), **shared)
    beams = i32(0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1).reshape(1, 2, 6)
    yield m.case(*one, None, None, *room, i32(3), i32(2), beams, **shared)
    four = m.f(4, 1, 8), m.f(4, 1, 8), m.f(4, 1, 8)
    yield m.case(*four, None, None, m.f(4, 2, 5, 4), m.f(4, 2, 5, 4), i32(4), i32(2), m.index(2, 2, 2, 5, dtype=np.int32), **shared)
    cross = m.f(2, 2, 5, 4), m.f(2, 2, 5, 4)
    yield m.case(one[0], *cross, num_heads=2)
    yield m.case(one[0], *cross, m.ones(2, 5), num_heads=2)
    yield m.case(one[0], *cross, i32(0, 1, 1, 0, 1, 1, 0, 0, 0, 1).reshape(2, 5), num_heads=2, mask_filter_value=-2.0)


def contrib_attention():
    m = Maker("com.microsoft:Attention")
    x, w, b = m.f(2, 4, 6), m.f(6, 24), m.f(24)
    yield m.case(x, w, b, num_heads=2)
    yield m.case(x, w, None, num_heads=4, scale=0.5)
    yield m.case(x, m.f(6, 22), m.f(22), num_heads=2, qkv_hidden_sizes=[8, 8, 6])
    for mask in (i32(2, 4), i32(4, 3, 1, 0), i32(3, 4, 0, 3, 6, 0, 3, 8), m.ones(2, 4), m.ones(2, 4, 4)):
        yield from (m.case(x, w, b, mask, num_heads=2, unidirectional=u) for u in (0, 1))
    yield m.case(x, w, b, m.ones(2, 4), num_heads=2, mask_filter_value=-4.0)
    yield from (m.case(x, w, b, None, None, bias, num_heads=2) for bias in (m.f(1, 2, 4, 4), m.f(2, 1, 4, 4)))
    yield m.case(x, w, b, num_heads=2, unidirectional=1, outputs=2)
    past = m.f(2, 2, 2, 3, 4)
    yield from (m.case(x, w, b, mask, past, num_heads=2, unidirectional=1, outputs=2) for mask in (None, m.ones(2, 7), i32(5, 7), m.ones(2, 4, 7)))
    yield m.case(m.f(1, 9, 64), m.f(64, 192) / 8, m.f(192), i32(7), num_heads=4)


def valid_rows(length, queries):
    return (np.arange(length)[None] < np.array(queries)[:, None])[:, :, None]


def valid_keys(rows, keys):
    return (np.arange(rows)[None] < np.array(keys)[:, None])[:, None, :, None]


def group_query_attention():
    m = Maker("com.microsoft:GroupQueryAttention")
    n, k, d = 4, 2, 16

    def rows(batch, length):
        return m.f(batch, length, n * d), m.f(batch, length, k * d), m.f(batch, length, k * d)

    def cache(batch, length):
        return m.f(batch, k, length, d), m.f(batch, k, length, d)

    def case(qkv, past, keys, most, *more, queries=None, capacity=None, outputs=3, **attributes):
        """`keys`: by batch, what the cache holds afterwards."""
        length = qkv[0].shape[1]
        queries = [min(length, key) for key in keys] if queries is None else queries
        capacity = max(most, past[0].shape[2] if past[0] is not None else 0) if capacity is None else capacity
        shown = valid_keys(capacity, keys)
        defined = (valid_rows(length, queries), shown, shown, valid_rows(length, queries)[:, None])
        return m.case(*qkv, *past, i32(*keys) - 1, total(most), *more, num_heads=n, kv_num_heads=k, outputs=outputs, defined=defined, **attributes)

    none = None, None
    prompt, token = rows(2, 3), rows(2, 1)
    yield case(prompt, none, [3, 3], 3)
    yield case(prompt, none, [2, 3], 3)
    yield case(prompt, cache(2, 0), [3, 3], 3)
    yield case(prompt, cache(2, 8), [2, 3], 3)
    yield case((np.concatenate(prompt, -1), None, None), none, [3, 3], 3, outputs=1)
    room = cache(2, 8)
    yield case(token, room, [5, 7], 7)
    yield case(token, cache(2, 5), [6, 6], 6)
    yield case(token, cache(2, 5), [4, 6], 6)
    yield case(rows(1, 3), cache(1, 5), [8], 8)
    nothing = np.zeros((1, 0, k * d), np.float32)
    yield case((m.f(1, 3, n * d), nothing, nothing), cache(1, 8), [8], 8)
    chunk = [None] * 9
    yield case(prompt, cache(2, 9), [6, 8], 9, *chunk, i32(2, 3), queries=[2, 3])
    yield case(token, cache(2, 9), [6, 8], 9, *chunk, i32(0, 1), queries=[0, 1])
    for window in (1, 2, 4):
        yield case(prompt, none, [3, 3], 3, local_window_size=window)
        yield case(token, room, [5, 7], 7, local_window_size=window)
    yield case(prompt, none, [2, 3], 3, softcap=1.5)
    yield case(prompt, none, [2, 3], 3, smooth_softmax=1)
    yield case(prompt, none, [3, 3], 3, None, None, None, None, m.f(n))
    yield case(token, room, [5, 7], 7, None, None, None, None, m.f(n), local_window_size=3)
    yield case(prompt, none, [2, 3], 3, causal=0)
    for bias in (m.f(1, 1, 3, 3), m.f(2, n, 3, 3)):
        yield case(prompt, none, [3, 3], 3, None, None, None, bias, softcap=2.0)
    yield from (case(prompt, none, [3, 3], 3, None, None, None, m.f(2, 1, 3, 3), qk_output=mode, outputs=4) for mode in (1, 2))
    yield case(token, room, [5, 7], 7, None, None, None, m.f(1, n, 1, 7), qk_output=2, local_window_size=3, outputs=4)
    tables = m.f(16, 8), m.f(16, 8)
    for interleaved in (0, 1):
        yield case(prompt, none, [2, 3], 3, *tables, do_rotary=1, rotary_interleaved=interleaved)
    yield case(token, room, [5, 7], 7, *tables, do_rotary=1)
    yield case(prompt, none, [3, 3], 3, *tables, np.array([[5, 3, 1], [2, 7, 9]]), do_rotary=1)
    yield case(token, room, [5, 7], 7, *tables, np.array([[3], [9]]), do_rotary=1)
    yield case(rows(1, 3), cache(1, 8), [7], 7, *tables, np.array([[5, 3, 1]]), do_rotary=1)
    yield case(prompt, cache(2, 9), [6, 8], 9, *tables, *[None] * 7, i32(2, 3), queries=[2, 3], do_rotary=1)
    for keys, length in (([5], 2), ([7], 1), ([11], 4), ([19], 8)):
        kept = [key if key <= 6 else key - 3 * -(-(key - 6) // 3) for key in keys]
        yield case(rows(1, length), cache(1, 6), keys, keys[0], capacity=6, local_window_size=4, sliding_window_cache=1)._replace(
            defined=(valid_rows(length, [length]), valid_keys(6, kept), valid_keys(6, kept)))
    for shape, kind in (((1,), "PER_TENSOR"), ((1, k, 1, d), "PER_CHANNEL")):
        scales = [np.abs(m.f(*shape)) * 0.1 + 0.01 for _ in range(2)]
        held = [m.random.integers(-128, 128, (2, k, 8, d)).astype(np.int8) for _ in range(2)]
        yield case(token, held, [5, 7], 7, *[None] * 5, *scales, k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=8)
        halves = [m.random.integers(0, 256, (2, k, 8, d // 2)).astype(np.uint8) for _ in range(2)]
        yield case(token, halves, [5, 7], 7, *[None] * 5, *scales, k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=4)


def contrib_rotary_embedding():
    m = Maker("com.microsoft:RotaryEmbedding")
    tables = m.f(10, 4), m.f(10, 4)
    for interleaved in (0, 1):
        yield m.case(m.f(2, 3, 16), m.index(10, 2, 3), *tables, interleaved=interleaved)
        yield m.case(m.f(2, 3, 16), np.array([4]), *tables, interleaved=interleaved)
        yield m.case(m.f(2, 2, 3, 8), m.index(10, 2, 3), *tables, interleaved=interleaved)
        yield m.case(m.f(2, 3, 16), m.index(10, 2, 3), m.f(10, 2), m.f(10, 2), num_heads=2, rotary_embedding_dim=4, interleaved=interleaved)
        yield m.case(m.f(2, 2, 3, 8), m.index(10, 2, 3), m.f(10, 2), m.f(10, 2), num_heads=2, rotary_embedding_dim=4, interleaved=interleaved)
    yield m.case(m.f(2, 3, 16), m.index(10, 2, 3), *tables, num_heads=2)
    yield m.case(m.f(2, 3, 16), m.index(10, 2, 3), *tables, scale=0.5)
    yield m.case(m.f(1, 12, 16), m.index(10, 1, 12), *tables, is_packed_batching=1)


def embed_layer_normalization():
    m = Maker("com.microsoft:EmbedLayerNormalization")
    words, segments = m.index(11, 2, 3, dtype=np.int32), m.index(2, 2, 3, dtype=np.int32)
    tables = m.f(11, 6), m.f(7, 6), m.f(2, 6)
    norm = m.f(6), m.f(6)
    for mask in (None, m.ones(2, 3), i32(1, 1, 0, 1, 0, 1).reshape(2, 3), i32(2, -1, 0, 5, 0, 1).reshape(2, 3), np.zeros((2, 3), np.int32)):
        yield m.case(words, segments, *tables, *norm, mask, outputs=3, epsilon=1e-5)
    yield m.case(words, segments, *tables, *norm, outputs=2)
    yield m.case(words, None, *tables[:2], None, *norm, outputs=2)
    yield m.case(words, None, *tables[:2], None, *norm, m.ones(2, 3), outputs=3)
    yield m.case(words, segments, *tables, *norm, None, m.index(7, 2, 3, dtype=np.int32), outputs=2)
    yield m.case(words, segments, *tables, *norm, m.ones(2, 3), m.index(7, 1, 3, dtype=np.int32), outputs=3)


def inverse():
    m = Maker("com.microsoft:Inverse")
    for shape in ((1, 1), (2, 2), (3, 3), (4, 4), (8, 8), (2, 3, 3), (2, 1, 2, 2), (0, 2, 2), (5, 1, 1)):
        yield m.case(m.f(*shape) + 3 * np.eye(shape[-1], dtype=np.float32))
    yield m.case(np.array([[0, 2, 1], [1, 0, 0], [3, 1, 2]], np.float32))
    yield m.case(m.random.standard_normal((3, 5, 5)) + 3 * np.eye(5))


def fused_conv():
    m = Maker("com.microsoft:FusedConv")
    x, w, b = m.f(2, 3, 5, 6), m.f(4, 3, 3, 3), m.f(4)
    for name, parameters in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4]),
                             ("HardSwish", [])):
        more = {"activation_params": parameters} if parameters else {}
        yield m.case(x, w, b, pads=[1, 1, 1, 1], activation=name, **more)
    yield m.case(x, w, b, m.f(2, 4, 5, 6), pads=[1, 1, 1, 1], activation="Relu")
    yield m.case(x, w, None, m.f(2, 4, 3, 4), activation="Relu")
    yield m.case(m.f(1, 4, 7, 7), m.f(8, 1, 3, 3), m.f(8), group=4, strides=[2, 2], dilations=[2, 2], activation="Relu")
    yield m.case(x, w, auto_pad="SAME_UPPER", activation="Relu")


def fused_gemm():
    m = Maker("com.microsoft:FusedGemm")
    a, b, c = m.f(3, 4), m.f(4, 5), m.f(5)
    for name, parameters in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("Softplus", {}), ("Softsign", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
                             ("Elu", {"activation_alpha": 0.7}), ("ThresholdedRelu", {"activation_alpha": 0.3}),
                             ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
                             ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1})):
        yield m.case(a, b, c, activation=name, **parameters)
    yield m.case(m.f(4, 3), m.f(5, 4), m.f(3, 1), transA=1, transB=1, alpha=0.5, beta=2.0, activation="Relu")
    yield m.case(a, b, activation="Relu")


def crop_and_resize():
    m = Maker("com.microsoft:CropAndResize")
    x = m.f(2, 3, 5, 7)
    boxes = np.array([[0, 0, 1, 1], [0.25, 0.5, 0.75, 1], [1, 1, 0, 0], [-0.5, -0.25, 1.5, 1.25], [0.1, 0.2, 0.6, 0.9]], np.float32)
    for mode in ("bilinear", "nearest"):
        for size in (i32(4, 6), i32(5, 7), i32(1, 1), i32(3, 1), i32(9, 11)):
            yield m.case(x, boxes, i32(0, 1, 0, 1, 1), size, mode=mode, extrapolation_value=-2.5)
        yield m.case(m.f(3, 1, 1, 1), boxes[:1], i32(2), i32(2, 2), mode=mode)


FAMILIES = [attention, rotary_embedding, multi_head_attention, decoder_masked_multi_head_attention, contrib_attention, group_query_attention,
            contrib_rotary_embedding, embed_layer_normalization, inverse, fused_conv, fused_gemm, crop_and_resize]


def model_of(case, result_types):
    domain, _, name = case.op.rpartition(":")
    names = [f"i{i}" if value is not None else "" for i, value in enumerate(case.inputs)]
    declared = [helper.make_tensor_value_info(n, DTYPES[str(v.dtype)], v.shape) for n, v in zip(names, case.inputs) if n]
    outputs = [f"o{i}" for i in range(case.outputs)]
    node = helper.make_node(name, names, outputs, domain=domain, **case.attributes)
    results = [helper.make_tensor_value_info(o, DTYPES[t], None) for o, t in zip(outputs, result_types)]
    graph = helper.make_graph([node], "case", declared, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def expected_of(case):
    """ONNX Runtime's outputs, and the model."""
    first = next(str(v.dtype) for v in case.inputs if v is not None and v.dtype.kind == "f")
    types = [first] * case.outputs
    if case.op.endswith("EmbedLayerNormalization"):
        types = [first, "int32", first][:case.outputs]
    if "k_quant_type" in case.attributes:
        types = [first, str(case.inputs[3].dtype), str(case.inputs[4].dtype)]
    model = model_of(case, types)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {f"i{i}": v for i, v in enumerate(case.inputs) if v is not None}), model


def compare(got, want, defined):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    where = np.broadcast_to(defined, want.shape)
    if not where.any():
        return None
    got, want = got[where].astype(np.float64), want[where].astype(np.float64)
    if want.dtype.kind in "iub":
        return None if (got == want).all() else f"{int((got != want).sum())} elements differ"
    if not np.isfinite(got).all():
        return "is not finite everywhere"
    size = np.linalg.norm(want)
    off = np.linalg.norm(got - want) / size if size else np.linalg.norm(got)
    worst = np.abs(got - want).max() / max(np.abs(want).max(), 1e-30) if size else 0
    return None if off <= TOLERANCE and worst <= 10 * TOLERANCE else f"is off by {off:.2e} of its size, one element by {worst:.2e} of the largest"


def run_case(case, devices, unmoor, folder):
    """Complaints about one case."""
    try:
        want, model = expected_of(case)
    except Exception as error:  # What the package raises has no common class.
        return [f"ONNX Runtime refuses: {error}"]
    onnx.save(model, folder / "case.onnx")
    np.savez(folder / "in.npz", **{f"i{i}": v for i, v in enumerate(case.inputs) if v is not None})
    complaints = []
    for device in devices:
        done = subprocess.run([unmoor, "run", folder / "case.onnx", "-i", folder / "in.npz", "-o", folder / "out.npz", "--on", device],
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            complaints.append(f"{device}: {done.stderr.strip() or done.stdout.strip()}")
            continue
        with np.load(folder / "out.npz") as got:
            for i, value in enumerate(want):
                problem = compare(got[f"o{i}"], value, case.defined[i] if i < len(case.defined) else True)
                if problem:
                    complaints.append(f"{device}: output {i} {problem}")
    return complaints


def describe(case):
    shapes = " ".join("-" if v is None else f"{v.dtype}{list(v.shape)}".replace(" ", "") for v in case.inputs)
    return f"{case.op} {shapes} {case.attributes}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unmoor", default="unmoor")
    parser.add_argument("--on", default="reference,cpu", metavar="DEVICE,...")
    parser.add_argument("--only", default="", metavar="TEXT")
    options = parser.parse_args()
    failures = 0
    count = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILIES:
            for case in family():
                if options.only not in case.op:
                    continue
                count[case.op] += 1
                complaints = run_case(case, options.on.split(","), options.unmoor, pathlib.Path(folder))
                failures += bool(complaints)
                if complaints:
                    print("\n  ".join([describe(case), *complaints]))
    for op, cases in count.items():
        print(f"{op}: {cases} cases")
    if not count:
        sys.exit(f"ort_attention: no operator is called '{options.only}'")
    print(f"{sum(count.values())} cases, {failures} differ from ONNX Runtime {onnxruntime.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
