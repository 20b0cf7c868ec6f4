"""Random values of cases, the same in every run."""

import numpy as np

random = np.random.default_rng(20240607)
U8, I8 = np.uint8, np.int8


def whole(dtype, *shape):
    info = np.iinfo(dtype)
    return np.asarray(random.integers(info.min, info.max + 1, shape), dtype)


def weights(dtype, *shape):
    """Signed ones of seven bits: without VNNI, ONNX Runtime adds pairs of products of bytes in 16 bits, which larger ones overflow."""
    return np.asarray(random.integers(-64, 64, shape), I8) if dtype is I8 else whole(dtype, *shape)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


def scales(*shape):
    return np.asarray(random.uniform(0.005, 0.05, shape), np.float32)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def packed(numbers, bits):
    """Each row of the last axis as a stream of bits, the first number lowest."""
    stream = ((numbers[..., None] >> np.arange(bits)) & 1).reshape(*numbers.shape[:-1], -1)
    stream = np.concatenate([stream, np.zeros((*stream.shape[:-1], -stream.shape[-1] % 8), stream.dtype)], -1)
    return (stream.reshape(*stream.shape[:-1], -1, 8) << np.arange(8)).sum(-1).astype(np.uint8)


def numbers(bits, *shape):
    return random.integers(0, 2**bits, shape)
