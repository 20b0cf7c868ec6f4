"""Single nodes: what is planted in them, what is right, and what `name_causes` (tests/precision) answers for each."""
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / each) for each in ("bench", "tests/precision")]
import precision_causes
import cases as c
import sown
from plants import Case, F, Plant

ARITHMETIC = precision_causes.ARITHMETIC
UNIT = F(2.0 ** -24)


class Row:
    """A plant and what was answered. It shows if the target is further from what ONNX Runtime computes than 3 times that run's own error."""

    def __init__(self, plant, answer, clean, clean_answer):
        self.plant, self.answer = plant, answer
        self.caught = answer.get("verdict") in ("suspicious", "differ")
        self.e = answer.get("e")
        self.named = bool(plant.ids) and not answer.get("error") and precision_causes.is_named(plant, answer)
        self.systematic = bool(answer.get("pattern"))
        self.shows = clean is not None and shows(plant.target, clean, clean_answer)


def shows(target, clean, clean_answer):
    if target.shape != clean.shape:
        return True
    a, e = target.astype(np.float64), clean.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(e)) or not np.array_equal(np.isnan(a), np.isnan(e)):
        return True
    if clean.dtype.kind in "iub":
        return not np.array_equal(target, clean)
    there = np.isfinite(a) & np.isfinite(e)
    size = np.linalg.norm(e[there])
    unit = {2: 2.0 ** -9, 4: 2.0 ** -24, 8: 2.0 ** -53}[clean.dtype.itemsize]
    return size > 0 and np.linalg.norm((a - e)[there]) / size > 3 * max(clean_answer.get("rel_l2") or 0, unit / 4)


def stored_like(value, target):
    return value.astype(target.dtype) if value.dtype != target.dtype else value


def clean_of(plant):
    """What ONNX Runtime makes of the plant's node, stored as the target is; nothing where it has no kernel."""
    case = plant.case
    wide = lambda a: a.astype(F) if a is not None and a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a
    try:
        return stored_like(Case(case.op, [wide(a) for a in case.arrays], case.weights, case.opset, case.outputs, case.domain, **case.attributes).run(),
                           plant.target)
    except Exception:
        return None


def ask(program, plants, folder):
    """A row for each plant; the node as it should be is asked for, too."""
    plants = list(plants)
    cleans = [clean_of(plant) for plant in plants]
    known = [k for k, clean in enumerate(cleans) if clean is not None]
    clean_answers = dict(zip(known, precision_causes.answers(program, [Plant((), plants[k].case, cleans[k]) for k in known], folder / "clean")))
    answers = precision_causes.answers(program, plants, folder / "planted")
    return [Row(plant, answer, cleans[k], clean_answers[k][1] if k in clean_answers else {}) for k, (plant, answer) in enumerate(answers)]


def ask_plain(program, plants, folder):
    return [Row(plant, answer, None, {}) for plant, answer in precision_causes.answers(program, plants, folder)]


def by_onnx_runtime(case):
    return case.run()


def by_torch(case):
    """PyTorch's own operator for the case; nothing where there is none, or no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    t = [None if a is None else torch.from_numpy(np.ascontiguousarray(a)) for a in case.arrays]
    nn, at = torch.nn.functional, case.attributes
    if case.op == "Gelu":
        return nn.gelu(t[0], approximate=at.get("approximate", "none")).numpy()
    if case.op == "LayerNormalization" and at.get("axis", -1) == -1:
        return nn.layer_norm(t[0], t[0].shape[-1:], t[1], t[2], at["epsilon"]).numpy()
    if case.op == "BatchNormalization":
        return nn.batch_norm(t[0], t[3], t[4], t[1], t[2], eps=at.get("epsilon", 1e-5)).numpy()
    if case.op == "Softmax":
        return torch.softmax(t[0], at.get("axis", -1)).numpy()
    if case.op == "Conv" and at.get("pads") == [1, 1, 1, 1] and set(at) == {"pads"}:
        return nn.conv2d(t[0], t[1], t[2], padding=1).numpy()
    if case.op == "MatMul":
        return torch.matmul(t[0], t[1]).numpy()
    if case.op == "Gemm":
        return nn.linear(t[0], t[1], t[2]).numpy()
    if case.op == "Attention" and len(t) == 3:
        return nn.scaled_dot_product_attention(*t[:3]).numpy()
    if case.op == "AveragePool" and set(at) == {"kernel_shape"}:
        return nn.avg_pool2d(t[0], at["kernel_shape"], stride=1).numpy()
    return None


RUNTIMES = {"ONNX Runtime": by_onnx_runtime, "PyTorch": by_torch}


def clean_by(run, plants):
    for plant in plants:
        value = run(plant.case)
        if value is not None:
            yield Plant((), plant.case, value)


def clean_narrow(plants, dtype):
    """Nodes whose inputs and results are stored in 16 bits, computed in float32 between."""
    grid = "float16" if dtype == np.float16 else "bfloat16"
    for plant in plants:
        case = plant.case
        if any(a is not None and a.dtype.kind not in "f" for a in case.arrays) or case.op == "Resize":
            continue
        rounded = Case(case.op, [a if a is None else sown.rounded(a, grid) for a in case.arrays], case.weights, case.opset, case.outputs, case.domain,
                       **case.attributes)
        yield sown.stored_narrow(Plant((), rounded, rounded.run()), dtype)


def wave(y, size):
    turns = np.sin(2 * np.pi * np.arange(y.shape[-1]) / max(y.shape[-1] / 2, 8))
    return y + (size * turns).astype(F)


def bordered(y, rng, size):
    wrong = y.copy()
    for at in (np.s_[..., 0, :], np.s_[..., -1, :], np.s_[..., :, 0], np.s_[..., :, -1]):
        wrong[at] += (size * rng.standard_normal(wrong[at].shape)).astype(F)
    return wrong


def cut_off(y):
    """The last four bits are cut off."""
    return (np.ascontiguousarray(y).view(np.uint32) & np.uint32(0xfffffff0)).view(F)


def systematic_plants(seed, each):
    """Errors of a few times what rounding does, and with a pattern: ONNX Runtime's results with it added by NumPy. `size` is 4 units of the largest
    value: what a sum of a few dozen terms is off by. Of operators whose elements round apart: a normalisation shares an error along a row, so that
    there a gain looks like rounding."""
    makers = [lambda rng: c.matmul(rng, 64, 64), lambda rng: c.conv(rng, square=True), lambda rng: c.gemm(rng, 48), lambda rng: c.pool(rng)]
    for k in range(each):
        for number, make in enumerate(makers):
            rng = np.random.default_rng([seed, k, number])
            case = make(rng)
            y = case.run()
            size = 4 * UNIT * np.abs(y).max()
            kinds = [("bias", y + F(size)), ("gain", (y * (1 + 16 * UNIT)).astype(F)), ("truncated", cut_off(y)), ("wave", wave(y, 2 * size))]
            if case.op == "Conv":
                kinds.append(("edge", bordered(y, rng, 4 * size)))
            kind, target = kinds[k % len(kinds)]
            yield Plant(f"systematic {kind}", case, target)
