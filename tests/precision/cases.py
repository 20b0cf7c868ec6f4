"""Cases to plant causes in, from a seeded generator of random numbers, and what NumPy computes of them in float32 with one thing done otherwise."""
import numpy as np

from plants import Case, F, rounded


def normal(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(F)


def gelu(rng):
    return Case("Gelu", [normal(rng, 3, int(rng.integers(50, 400)), scale=2)])


def layer_norm(rng, scale=1.0, mean=0.0, width=None, epsilon=1e-5):
    width = width or int(rng.integers(16, 128))
    x = normal(rng, 7, width, scale=scale) * (0.5 + rng.random((7, 1)).astype(F)) + F(mean)
    return Case("LayerNormalization", [x, 1 + normal(rng, width, scale=0.2), normal(rng, width, scale=0.3)], {1, 2}, epsilon=epsilon)


def normalised(case, variance=None, outside=False, keep_mean=False):
    """LayerNormalization in float32 steps, with one thing done otherwise."""
    x, gamma, beta = case.arrays
    e = F(case.attributes["epsilon"])
    mean = F(0) if keep_mean else x.mean(-1, keepdims=True, dtype=F)
    centred = x - mean
    v = (centred * centred).mean(-1, keepdims=True, dtype=F) if variance is None else variance(x, mean)
    deviation = np.sqrt(v) + e if outside else np.sqrt(v + e)
    return (centred / deviation * gamma + beta).astype(F)


def batch_norm(rng, **attributes):
    c = int(rng.integers(3, 9))
    return Case("BatchNormalization", [normal(rng, 2, c, 6, 7, scale=0.05), 1 + normal(rng, c, scale=0.2), normal(rng, c),
                                       normal(rng, c, scale=0.1), (rng.random(c) * 0.01 + 0.001).astype(F)], {1, 2, 3, 4}, **attributes)


def softmax(rng, axis=-1):
    return Case("Softmax", [normal(rng, 3, 5, int(rng.integers(6, 40)), scale=3)], axis=axis)


def conv(rng, square=False, kernel=3, **attributes):
    channels, outputs = (4, 4) if square else (int(rng.integers(2, 6)), int(rng.integers(3, 8)))
    attributes = {"pads": [1, 1, 1, 1], **attributes}
    return Case("Conv", [normal(rng, 1, channels, 11, 12), normal(rng, outputs, channels, kernel, kernel, scale=0.4), normal(rng, outputs, scale=0.5)],
                {1, 2}, **attributes)


def matmul(rng, k=None, n=None):
    k = k or int(rng.integers(24, 200))
    return Case("MatMul", [normal(rng, 9, k), normal(rng, k, n or int(rng.integers(8, 40)), scale=0.2)], {1})


def gemm(rng, n=None):
    k = int(rng.integers(16, 90))
    n = n or int(rng.integers(8, 40))
    return Case("Gemm", [normal(rng, 6, k), normal(rng, n, k, scale=0.3), normal(rng, n, scale=0.5)], {1, 2}, transB=1)


def attention(rng, mask=None, **attributes):
    length, depth = int(rng.integers(5, 12)), 8
    q, k, v = (normal(rng, 1, 2, length, depth) for _ in range(3))
    arrays = [q, k, v]
    if mask is not None:
        hidden = rng.random((length, length)) < 0.4
        np.fill_diagonal(hidden, False)
        arrays.append(np.where(hidden, F(mask), F(0)).astype(F))
    return Case("Attention", arrays, opset=23, **attributes)


def attended(q, k, v, scale=None, mask=0):
    s = np.matmul(q, k.swapaxes(-1, -2)) * F(1 / np.sqrt(q.shape[-1]) if scale is None else scale) + F(1) * mask
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.matmul(e / e.sum(-1, keepdims=True), v).astype(F)


def lstm(rng):
    h, i = int(rng.integers(4, 9)), 6
    return Case("LSTM", [normal(rng, 5, 2, i), normal(rng, 1, 4 * h, i, scale=0.6), normal(rng, 1, 4 * h, h, scale=0.6), normal(rng, 1, 8 * h, scale=0.4)],
                {1, 2, 3}, hidden_size=h)


def gru(rng, **attributes):
    h, i = int(rng.integers(4, 9)), 6
    return Case("GRU", [normal(rng, 5, 2, i), normal(rng, 1, 3 * h, i, scale=0.6), normal(rng, 1, 3 * h, h, scale=0.6), normal(rng, 1, 6 * h, scale=0.4)],
                {1, 2, 3}, hidden_size=h, **attributes)


def blocks(array, order):
    parts = np.split(array, len(order), axis=1)
    return np.concatenate([parts[k] for k in order], axis=1)


def reordered(case, order):
    w, r, b = case.arrays[1:4]
    halves = [blocks(half, order) for half in np.split(b, 2, axis=1)]
    return case.changed({1: blocks(w, order), 2: blocks(r, order), 3: np.concatenate(halves, 1)})


def rotary(rng, interleaved=0):
    length, depth, most = int(rng.integers(5, 12)), 16, 40
    angles = np.arange(most)[:, None] / 10000 ** (np.arange(0, depth, 2) / depth)
    positions = (int(rng.integers(1, 9)) + np.arange(length))[None].astype(np.int64)
    return Case("RotaryEmbedding", [normal(rng, 1, 3, length, depth), np.cos(angles).astype(F), np.sin(angles).astype(F), positions], {1, 2}, opset=23,
                interleaved=interleaved)


def rotated(case, interleaved=None, sign=1, shift=0):
    x, cos, sin, positions = case.arrays
    interleaved = case.attributes["interleaved"] if interleaved is None else interleaved
    c, s = cos[positions[0] + shift], F(sign) * sin[positions[0] + shift]
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    p, q = c * a - s * b, s * a + c * b
    return (np.stack([p, q], -1).reshape(x.shape) if interleaved else np.concatenate([p, q], -1)).astype(F)


def resize(rng, mode="linear", **attributes):
    sizes = np.array([1, 2, int(rng.integers(9, 17)), int(rng.integers(5, 13))], np.int64)
    return Case("Resize", [normal(rng, 1, 2, 7, 8), None, None, sizes], {3}, mode=mode, **attributes)


def pool(rng, op="AveragePool", **attributes):
    return Case(op, [normal(rng, 1, 3, int(rng.integers(9, 14)), 11)], kernel_shape=[3, 3], **attributes)


def quantise(rng, zero=3, dtype=np.uint8, scale=0.02, spread=1.0, ties=False):
    x = normal(rng, 4, 90, scale=spread)
    if ties:  # Every third element lies just between two steps.
        x.flat[::3] = (np.round(x.flat[::3] / F(scale)) + 0.5) * F(scale)
    return Case("QuantizeLinear", [x, np.array(scale, F), np.array(zero, dtype)], {1, 2})


def quantised(case, rule=np.rint, before=0, bounds=None, scale=None):
    x, own, zero = case.arrays
    q = (x / (own if scale is None else scale)).astype(F)
    low, high = bounds or (np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max)
    y = rule(q + F(zero)) if before else rule(q) + F(zero)
    return np.clip(y, low, high).astype(zero.dtype)


def halves_away(x):
    return np.sign(x) * np.floor(np.abs(x) + F(0.5))


def summed(a, b, grid):
    """A product of matrices whose sums are held on another grid after every term."""
    total = np.zeros((a.shape[0], b.shape[1]), F)
    for k in range(a.shape[1]):
        total = rounded(total + a[:, k:k + 1] * b[k:k + 1], grid)
    return total


def stepped_softmax(x, grid):
    r = lambda value: rounded(value, grid)
    e = r(np.exp(r(x - x.max(-1, keepdims=True))))
    total = np.zeros(x.shape[:-1] + (1,), F)
    for k in range(x.shape[-1]):
        total = r(total + e[..., k:k + 1])
    return r(e / total)


def stepped_norm(case, grid):
    r = lambda value: rounded(value, grid)
    x, gamma, beta = case.arrays
    def mean(value):
        total = np.zeros(value.shape[:-1] + (1,), F)
        for k in range(value.shape[-1]):
            total = r(total + value[..., k:k + 1])
        return r(total / F(value.shape[-1]))
    centred = r(x - mean(x))
    v = mean(r(centred * centred))
    return r(r(r(centred / r(np.sqrt(r(v + F(case.attributes["epsilon"]))))) * gamma) + beta)


def tiny(rng):
    a = normal(rng, 400, scale=1e-19)
    return Case("Mul", [a, normal(rng, 400, scale=1e-19 * 10 ** rng.uniform(-1, 1))])


def large(rng):
    return Case("Mul", [normal(rng, 300, scale=300), normal(rng, 300, scale=400)])


def with_nan(rng, op):
    x, y = normal(rng, 200), normal(rng, 200)
    x[rng.random(200) < 0.1] = np.nan
    return Case(op, [x, y] if op in ("Min", "Max") else [x])
