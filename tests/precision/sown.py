"""Planted causes, by id: every entry of PLANTS gives one plant from a seeded generator of random numbers. Targets are computed by ONNX Runtime on a
changed node, or by NumPy in float32; nothing of Unmoor's own is asked."""
import numpy as np

import cases as c
from cases import normal
from plants import Case, F, Plant, rounded

GRIDS = ("float16", "bfloat16", "tf32")
PLANTS = {}


def plants(cause):
    """Adds a generator to those of a cause."""
    def add(function):
        PLANTS.setdefault(cause, []).append(function)
        return function
    return add


def by_ort(cause, make, arrays=None, **attributes):
    """A plant that ONNX Runtime computes on the case with other inputs or attributes."""
    def plant(rng):
        case = make(rng)
        return Plant(cause, case, case.changed(arrays(case) if arrays else None, **attributes).run())
    PLANTS.setdefault(cause, []).append(plant)


def by_numpy(cause, make, compute):
    def plant(rng):
        case = make(rng)
        return Plant(cause, case, compute(case))
    PLANTS.setdefault(cause, []).append(plant)


def sigmoid(x):
    return F(1) / (F(1) + np.exp(-x))


by_ort("gelu-tanh", c.gelu, approximate="tanh")
by_numpy("gelu-tanh", lambda rng: Case("Erf", [normal(rng, 300, scale=1.2)]),
         lambda case: np.tanh(F(0.79788456) * (case.arrays[0] * F(2 ** .5) + F(0.044715) * (case.arrays[0] * F(2 ** .5)) ** 3)))
by_numpy("gelu-quick", c.gelu, lambda case: case.arrays[0] * sigmoid(F(1.702) * case.arrays[0]))

for other in (1e-3, 1e-6, 1e-12):
    by_ort("epsilon", lambda rng: c.layer_norm(rng, scale=0.03), epsilon=other)
by_ort("epsilon", lambda rng: c.layer_norm(rng, scale=0.03, epsilon=1e-12), epsilon=1e-5)
by_ort("epsilon", lambda rng: c.batch_norm(rng, epsilon=1e-5), epsilon=1e-3)
by_numpy("epsilon", lambda rng: Case("Add", [(rng.random((7, 1)) * 1e-4).astype(F), np.array(1e-5, F)], {1}), lambda case: case.arrays[0] + F(1e-6))
by_numpy("epsilon-outside", lambda rng: c.layer_norm(rng, scale=0.02), lambda case: c.normalised(case, outside=True))
by_numpy("variance-naive", lambda rng: c.layer_norm(rng, scale=0.2, mean=rng.choice([40, 100, -60]), width=int(rng.integers(64, 400))),
         lambda case: c.normalised(case, variance=lambda x, m: np.maximum((x * x).mean(-1, keepdims=True, dtype=F) - m * m, F(0))))
by_numpy("variance-unbiased", c.layer_norm, lambda case: c.normalised(case, variance=lambda x, m: x.var(-1, keepdims=True, ddof=1, dtype=F)))
by_numpy("mean-kept", lambda rng: c.layer_norm(rng, mean=0.3),
         lambda case: c.normalised(case, keep_mean=True))
by_ort("mean-kept", c.batch_norm, lambda case: {3: 0 * case.arrays[3]})


@plants("softmax-unstable")
def unstable(rng):
    case = c.softmax(rng)
    case.arrays[0][1] += F(rng.choice([90, 95, -110]))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        e = np.exp(case.arrays[0])
        return Plant("softmax-unstable", case, e / e.sum(-1, keepdims=True))


by_ort("softmax-axis", c.softmax, axis=1)
by_ort("softmax-axis", lambda rng: c.softmax(rng, axis=1), axis=2)
by_numpy("softmax-flattened", c.softmax,
         lambda case: Case("Softmax", [case.arrays[0].reshape(3, -1)]).run().reshape(case.arrays[0].shape))

no_third = lambda case: {2: 0 * case.arrays[2]}
by_ort("missing-bias", c.conv, no_third)
by_ort("missing-bias", c.gemm, no_third)
by_ort("missing-bias", c.layer_norm, no_third)
by_numpy("missing-bias", lambda rng: Case("Add", [normal(rng, 5, 40), normal(rng, 40)], {1}), lambda case: case.arrays[0])
by_ort("missing-bias", c.lstm, lambda case: {3: 0 * case.arrays[3]})
by_numpy("missing-scale", c.attention, lambda case: c.attended(*case.arrays[:3], scale=1))
by_numpy("missing-scale", c.attention, lambda case: c.attended(*case.arrays[:3], scale=1 / case.arrays[0].shape[-1]))
by_ort("missing-scale", c.layer_norm, lambda case: {1: 0 * case.arrays[1] + 1})
by_numpy("missing-scale", lambda rng: Case("Mul", [normal(rng, 5, 40), np.array(0.125, F)], {1}), lambda case: case.arrays[0])
by_numpy("missing-scale", lambda rng: Case("Div", [normal(rng, 5, 40), np.array(8, F)], {1}), lambda case: case.arrays[0])
by_numpy("missing-mask", lambda rng: c.attention(rng, -np.inf), lambda case: c.attended(*case.arrays[:3]))
by_numpy("missing-mask", lambda rng: c.attention(rng, is_causal=1), lambda case: c.attended(*case.arrays[:3]))
by_numpy("missing-mask", lambda rng: Case("Add", [normal(rng, 8, 8), np.triu(np.full((8, 8), -1e4, F), 1)], {1}), lambda case: case.arrays[0])


@plants("mask-finite")
def finite_mask(rng):
    case = c.attention(rng, -np.inf)
    hidden = float(rng.choice([-10, -1e4]))
    if hidden == -1e4:
        case.arrays[3][2] = -np.inf  # One query sees nothing.
    return Plant("mask-finite", case, c.attended(*case.arrays[:3], mask=np.maximum(case.arrays[3], F(hidden))))


by_numpy("mask-finite", lambda rng: Case("Add", [normal(rng, 9, 9), np.triu(np.full((9, 9), -np.inf, F), 1)], {1}),
         lambda case: case.arrays[0] + np.maximum(case.arrays[1], F(-1e4)))

by_numpy("nan-as-number", lambda rng: c.with_nan(rng, "Max"), lambda case: np.fmax(*case.arrays))
by_numpy("nan-as-number", lambda rng: c.with_nan(rng, "Min"), lambda case: np.fmin(*case.arrays))
by_numpy("nan-as-number", lambda rng: c.with_nan(rng, "Relu"), lambda case: np.fmax(case.arrays[0], F(0)))

for mode in ("align_corners", "asymmetric"):
    by_ort("resize-coordinates", c.resize, coordinate_transformation_mode=mode)
    by_ort("resize-coordinates", lambda rng: c.resize(rng, "cubic"), coordinate_transformation_mode=mode)
by_ort("resize-coordinates", lambda rng: c.resize(rng, "nearest"), coordinate_transformation_mode="asymmetric")
by_ort("resize-nearest", lambda rng: c.resize(rng, "nearest", coordinate_transformation_mode="asymmetric"), nearest_mode="floor")
by_ort("resize-nearest", lambda rng: c.resize(rng, "nearest", coordinate_transformation_mode="asymmetric"), nearest_mode="ceil")
by_ort("resize-nearest", c.resize, mode="nearest")


def smaller(rng):
    case = c.resize(rng)
    case.arrays[3] = np.array([1, 2, 3, 4], np.int64)
    return case


by_ort("resize-antialias", smaller, antialias=1)
by_ort("count-include-pad", lambda rng: c.pool(rng, pads=[1, 1, 1, 1]), count_include_pad=1)
by_ort("count-include-pad", lambda rng: c.pool(rng, pads=[1, 1, 1, 1], count_include_pad=1), count_include_pad=0)
by_ort("ceil-mode", lambda rng: c.pool(rng, strides=[4, 3]), ceil_mode=1)
by_ort("ceil-mode", lambda rng: c.pool(rng, "MaxPool", strides=[4, 3], ceil_mode=1), ceil_mode=0)
by_ort("same-side", lambda rng: c.conv(rng, pads=None, auto_pad="SAME_UPPER", kernel=4), auto_pad="SAME_LOWER")
by_ort("same-side", lambda rng: c.conv(rng, pads=[0, 0, 1, 1]), pads=[1, 1, 0, 0])
by_ort("same-side", lambda rng: c.pool(rng, "MaxPool", pads=[0, 0, 1, 1], strides=[2, 2]), pads=[1, 1, 0, 0])
by_ort("window-shifted", c.conv, pads=[0, 0, 2, 2])
by_ort("window-shifted", lambda rng: c.conv(rng, strides=[2, 2]), pads=[2, 2, 0, 0])
by_ort("window-shifted", lambda rng: c.pool(rng, pads=[1, 1, 1, 1], strides=[2, 2]), pads=[0, 0, 2, 2])
swapped = lambda case: {1: np.ascontiguousarray(case.arrays[1].swapaxes(-1, -2)).reshape(case.arrays[1].shape)}
by_ort("transposed-weights", lambda rng: c.matmul(rng, 32, 32), swapped)
by_ort("transposed-weights", c.matmul, swapped)
by_ort("transposed-weights", c.gemm, swapped)
by_ort("transposed-weights", lambda rng: c.conv(rng, square=True), lambda case: {1: np.ascontiguousarray(case.arrays[1].swapaxes(0, 1))})
flipped = lambda case: {1: np.ascontiguousarray(case.arrays[1][:, :, ::-1, ::-1])}
by_ort("flipped-weights", c.conv, flipped)
by_ort("flipped-weights", lambda rng: Case("ConvTranspose", [normal(rng, 1, 4, 7, 8), normal(rng, 4, 3, 3, 3)], {1}), flipped)


@plants("gate-order")
def gates(rng):
    case = c.lstm(rng)
    return Plant("gate-order", case, c.reordered(case, [(0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2)][int(rng.integers(3))]).run())


@plants("gate-order")
def gru_gates(rng):
    case = c.gru(rng)
    return Plant("gate-order", case, c.reordered(case, (1, 0, 2)).run())


by_ort("reset-after", c.gru, linear_before_reset=1)
by_ort("reset-after", lambda rng: c.gru(rng, linear_before_reset=1), linear_before_reset=0)
by_numpy("rotary-interleaved", c.rotary, lambda case: c.rotated(case, interleaved=1))
by_numpy("rotary-interleaved", lambda rng: c.rotary(rng, 1), lambda case: c.rotated(case, interleaved=0))
by_numpy("rotary-sign", c.rotary, lambda case: c.rotated(case, sign=-1))
by_numpy("rotary-offset", c.rotary, lambda case: c.rotated(case, shift=1))
by_numpy("rotary-offset", lambda rng: c.rotary(rng, 1), lambda case: c.rotated(case, shift=-1))
by_numpy("zero-point-order", lambda rng: c.quantise(rng, ties=True, scale=0.0625), lambda case: c.quantised(case, before=1))
by_numpy("saturation", lambda rng: c.quantise(rng, 0, np.int8, 0.01), lambda case: c.quantised(case, bounds=(-127, 127)))
by_numpy("saturation", lambda rng: c.quantise(rng, 120, scale=0.01), lambda case: c.quantised(case, bounds=(1, 254)))
by_numpy("saturation", lambda rng: c.quantise(rng, 60, scale=0.01), lambda case: c.quantised(case, bounds=(0, 127)))
by_numpy("scale-float16", lambda rng: c.quantise(rng, scale=float(rng.uniform(0.005, 0.02))),
         lambda case: c.quantised(case, scale=rounded(case.arrays[1], "float16")))
by_numpy("scale-float16", lambda rng: Case("DequantizeLinear", [rng.integers(0, 256, (5, 60)).astype(np.uint8), np.array(rng.uniform(0.01, 0.1), F)], {1}),
         lambda case: case.arrays[0].astype(F) * rounded(case.arrays[1], "float16"))
by_numpy("half-away", lambda rng: c.quantise(rng, ties=True, scale=0.0625), lambda case: c.quantised(case, rule=c.halves_away))
by_numpy("half-away", lambda rng: Case("Round", [(rng.integers(-20, 20, 300) / 2).astype(F)]), lambda case: c.halves_away(case.arrays[0]))
by_numpy("truncated", c.quantise, lambda case: c.quantised(case, rule=np.trunc))
by_numpy("truncated", c.quantise, lambda case: c.quantised(case, rule=np.floor))
whole = lambda rng, dtype: Case("Div", [rng.integers(-50, 50, 300).astype(dtype), rng.choice([-7, -3, 2, 5], 300).astype(dtype)])
by_numpy("floor-division", lambda rng: whole(rng, np.int32), lambda case: case.arrays[0] // case.arrays[1])
by_numpy("floor-division", lambda rng: whole(rng, np.int64), lambda case: case.arrays[0] // case.arrays[1])
by_numpy("float16-infinity", c.large, lambda case: np.clip(case.arrays[0] * case.arrays[1], F(-65504), F(65504)))
by_numpy("float16-infinity", lambda rng: Case("Exp", [normal(rng, 300, scale=7)]), lambda case: np.minimum(np.exp(case.arrays[0]), F(65504)))
flush = lambda x: np.where(np.abs(x) < F(2) ** -126, F(0) * x, x)
by_numpy("denormals-flushed", c.tiny, lambda case: flush(case.arrays[0] * case.arrays[1]))


def formats(grid):
    both = lambda case: {0: rounded(case.arrays[0], grid), 1: rounded(case.arrays[1], grid)}
    weights = lambda case: {1: rounded(case.arrays[1], grid)}
    for make in (c.matmul, c.conv, c.gemm):
        by_ort(f"inputs-{grid}", make, both)
        by_ort(f"weights-{grid}", make, weights)
    for make in (c.matmul, c.conv, c.gelu, c.layer_norm, c.softmax):
        by_numpy(f"result-{grid}", make, lambda case: rounded(case.run(), grid))
    by_numpy(f"sums-{grid}", lambda rng: c.matmul(rng, int(rng.integers(64, 400))), lambda case: c.summed(*case.arrays, grid))
    by_numpy(f"steps-{grid}", c.softmax, lambda case: c.stepped_softmax(case.arrays[0], grid))
    by_numpy(f"steps-{grid}", c.layer_norm, lambda case: c.stepped_norm(case, grid))
    by_numpy(f"steps-{grid}", lambda rng: c.layer_norm(rng, width=int(rng.integers(100, 500))), lambda case: c.stepped_norm(case, grid))


for each in GRIDS:
    formats(each)

# What these inputs cannot tell apart: naming another of the family counts, and is said.
FAMILIES = [{"inputs-float16", "inputs-tf32"}, {"weights-float16", "weights-tf32"}, {"result-float16", "result-tf32"},
            {"sums-float16", "sums-tf32", "steps-float16", "steps-tf32"}, {"sums-bfloat16", "steps-bfloat16"}]


def family(cause):
    return next((each for each in FAMILIES if cause in each), {cause})


def float32_plants(seed, each):
    """`each` plants of every id, each from its own generator of random numbers."""
    for cause, generators in PLANTS.items():
        for k in range(each):
            rng = np.random.default_rng([seed, k, *cause.encode()])
            yield generators[k % len(generators)](rng)


# Ids whose effect 16-bit storage can show.
NARROW_IDS = ["gelu-quick", "epsilon", "epsilon-outside", "variance-unbiased", "mean-kept", "softmax-axis", "softmax-flattened", "missing-bias",
              "missing-scale", "missing-mask", "resize-coordinates", "resize-nearest", "count-include-pad", "same-side", "window-shifted",
              "transposed-weights", "flipped-weights", "gate-order", "reset-after", "rotary-interleaved", "rotary-sign", "rotary-offset"]


def stored_narrow(plant, dtype):
    """The plant with its inputs, its weights and its target stored in 16 bits, and computed in float32 between: what a good 16-bit kernel gives."""
    narrow = lambda a: a.astype(dtype) if a is not None and a.dtype == F else a
    case = plant.case
    stored = Case(case.op, [narrow(a) for a in case.arrays], case.weights, case.opset, case.outputs, case.domain, **case.attributes)
    return Plant(plant.ids, stored, plant.target.astype(dtype))


def narrow_plants(seed, each, dtype):
    grid = "float16" if dtype == np.float16 else "bfloat16"
    for cause in [*NARROW_IDS, f"sums-{grid}", f"steps-{grid}"]:
        for k in range(each):
            rng = np.random.default_rng([seed, k, *cause.encode()])
            generators = PLANTS[cause]
            # The same generator makes the case again with its inputs on the grid, so that target and node see the same bits.
            yield stored_narrow(on_grid(generators[k % len(generators)], rng, grid), dtype)


def narrow_arithmetic_plants(seed, each, dtype):
    """Targets that are stored in 16 bits, and compute in them: sums, and every step."""
    grid = "float16" if dtype == np.float16 else "bfloat16"
    for cause in (f"sums-{grid}", f"steps-{grid}"):
        for k in range(each):
            yield stored_narrow(on_grid(PLANTS[cause][k % len(PLANTS[cause])], np.random.default_rng([seed + 1, k, *cause.encode()]), grid), dtype)


def on_grid(generator, rng, grid):
    original = Case.__init__
    def rounding(self, op, arrays, *rest, **attributes):
        original(self, op, [rounded(a, grid) if a is not None and a.dtype == F else a for a in arrays], *rest, **attributes)
    Case.__init__ = rounding
    try:
        return generator(rng)
    finally:
        Case.__init__ = original


def clean_cases(seed, each):
    """Nodes as ONNX Runtime computes them, with nothing planted."""
    makers = [c.gelu, c.layer_norm, c.batch_norm, c.softmax, c.conv, c.matmul, c.gemm, c.attention, c.lstm, c.gru, c.resize, c.pool, c.quantise,
              lambda rng: c.resize(rng, "cubic"), lambda rng: c.pool(rng, "MaxPool"), lambda rng: c.layer_norm(rng, scale=0.03, mean=2)]
    for m, make in enumerate(makers):
        for k in range(each):
            case = make(np.random.default_rng([seed, k, m]))
            yield Plant((), case, case.run())


def both(first, second, make, target):
    def plant(rng):
        case = make(rng)
        return Plant((first, second), case, target(case))
    PAIRS.append(plant)


PAIRS = []
for grid in ("float16", "bfloat16"):
    narrow = lambda y, grid=grid: rounded(y, grid)
    both("missing-bias", f"result-{grid}", c.conv, lambda case, narrow=narrow: narrow(case.changed(no_third(case)).run()))
    both("missing-bias", f"result-{grid}", c.gemm, lambda case, narrow=narrow: narrow(case.changed(no_third(case)).run()))
    both("gelu-tanh", f"result-{grid}", c.gelu, lambda case, narrow=narrow: narrow(case.changed(approximate="tanh").run()))
    both("epsilon", f"result-{grid}", lambda rng: c.layer_norm(rng, scale=0.02), lambda case, narrow=narrow: narrow(case.changed(epsilon=1e-3).run()))
    both("softmax-axis", f"result-{grid}", c.softmax, lambda case, narrow=narrow: narrow(case.changed(axis=1).run()))
    both("flipped-weights", f"inputs-{grid}", c.conv, lambda case, narrow=narrow: case.changed(
        {0: narrow(case.arrays[0]), 1: narrow(flipped(case)[1])}).run())
    both("transposed-weights", f"inputs-{grid}", lambda rng: c.matmul(rng, 32, 32), lambda case, narrow=narrow: case.changed(
        {0: narrow(case.arrays[0]), 1: narrow(swapped(case)[1])}).run())
    both("same-side", f"weights-{grid}", lambda rng: c.conv(rng, pads=[0, 0, 1, 1]), lambda case, narrow=narrow: case.changed(
        {1: narrow(case.arrays[1])}, pads=[1, 1, 0, 0]).run())
both("missing-scale", "missing-mask", lambda rng: c.attention(rng, -np.inf), lambda case: c.attended(*case.arrays[:3], scale=1))
both("missing-bias", "epsilon", lambda rng: c.layer_norm(rng, scale=0.02), lambda case: case.changed(no_third(case), epsilon=1e-3).run())
both("missing-bias", "missing-scale", c.layer_norm, lambda case: case.changed({**no_third(case), 1: 0 * case.arrays[1] + 1}).run())
both("reset-after", "missing-bias", c.gru, lambda case: case.changed({3: 0 * case.arrays[3]}, linear_before_reset=1).run())


def paired_plants(seed, each):
    for number, generator in enumerate(PAIRS):
        for k in range(each):
            yield generator(np.random.default_rng([seed, k, number]))
