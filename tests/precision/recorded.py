"""Plants in nodes of whole models: their inputs are those that ONNX Runtime computes there."""
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import cases as c
import sown
from plants import Case, F, Plant, rounded

MOST_ELEMENTS = 150_000  # Of an output, and
MOST_PRODUCTS = 3e7      # in it, so that hundreds of plants take minutes.


def constants_of(model):
    held = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            held[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return held


def attributes_of(node):
    values = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return {key: value.decode() if isinstance(value, bytes) else value for key, value in values.items()}


def is_small(case, output):
    products = output.size
    if case.op in ("Conv", "ConvTranspose"):
        products *= int(np.prod(case.arrays[1].shape[1:]))
    if case.op in ("MatMul", "Gemm"):
        products *= case.arrays[0].shape[-1]
    if case.op in ("LSTM", "GRU"):
        products = case.arrays[0].shape[0] * case.arrays[0].shape[1] * (case.arrays[1].size + case.arrays[2].size)
    return output.size <= MOST_ELEMENTS and products <= MOST_PRODUCTS


def recorded_cases(folder, rng, each, ops):
    """Up to `each` nodes of every one of `ops` in FOLDER/model.onnx, run on FOLDER/inputs.npz."""
    model = onnx.load(str(Path(folder) / "model.onnx"))
    given = dict(np.load(Path(folder) / "inputs.npz"))
    opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    held = constants_of(model)
    chosen = []
    for op in ops:
        nodes = [node for node in model.graph.node if node.op_type == op and node.domain in ("", "ai.onnx")]
        chosen += [nodes[k] for k in rng.permutation(len(nodes))[:5 * each]]
    wanted = {name for node in chosen for name in [*node.input, node.output[0]] if name and name not in held and name not in given}
    names = {each.name for each in model.graph.output}
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in sorted(wanted - names))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = {**held, **given}
    inputs = {one.name: given[one.name] for one in session.get_inputs()}
    values.update(zip([one.name for one in session.get_outputs()], session.run(None, inputs)))
    left = dict.fromkeys(ops, each)
    for node in chosen:
        arrays = [values[name] if name else None for name in node.input]
        weights = {k for k, name in enumerate(node.input) if name in held}
        case = Case(node.op_type, arrays, weights, opset, len(node.output), **attributes_of(node))
        if left[case.op] > 0 and values[node.output[0]].dtype == F and is_small(case, values[node.output[0]]):
            left[case.op] -= 1
            yield case


def scaled_erf(case, by):
    return by(case.arrays[0] * F(2 ** .5))


def tanh_form(x):
    return np.tanh(F(0.79788456) * (x + F(0.044715) * x ** 3))


def has(case, k):
    return len(case.arrays) > k and case.arrays[k] is not None


def zeroed(k):
    return lambda case: case.changed({k: 0 * case.arrays[k]}).run()


def on_weight(rule):
    return lambda case: case.changed({1: np.ascontiguousarray(rule(case.arrays[1]))}).run()


def is_weight(case, k):
    return k in case.weights and has(case, k) and case.arrays[k].dtype == F


def constant(case):
    """The place of a float constant of Add, Mul or Div that is more than one small number; None if it has none."""
    for k in (1, 0):
        if is_weight(case, k) and not (case.op == "Div" and k == 0) and np.abs(case.arrays[k]).max() > 0.01:
            return k
    return None


def without(case, value):
    k = constant(case)
    return case.changed({k: np.full_like(case.arrays[k], value)}).run()


LAYER_NORM = lambda case: case.attributes.get("axis", -1) in (-1, case.arrays[0].ndim - 1) and has(case, 2)
# (id, operators, where it can be planted, what the target gives)
RULES = [
    ("missing-bias", ("Conv", "Gemm", "ConvTranspose", "LayerNormalization"), lambda case: has(case, 2), zeroed(2)),
    ("missing-bias", ("LSTM", "GRU"), lambda case: has(case, 3), zeroed(3)),
    ("missing-bias", ("Add",), lambda case: constant(case) is not None and np.abs(case.arrays[constant(case)]).max() < 1e3, lambda case: without(case, 0)),
    ("missing-scale", ("Mul", "Div"), lambda case: constant(case) is not None, lambda case: without(case, 1)),
    ("missing-scale", ("LayerNormalization",), LAYER_NORM, lambda case: case.changed({1: np.ones_like(case.arrays[1])}).run()),
    ("mean-kept", ("LayerNormalization",), LAYER_NORM, lambda case: c.normalised(case, keep_mean=True)),
    ("mean-kept", ("BatchNormalization",), lambda case: True, zeroed(3)),
    ("variance-unbiased", ("LayerNormalization",), LAYER_NORM,
     lambda case: c.normalised(case, variance=lambda x, m: x.var(-1, keepdims=True, ddof=1, dtype=F))),
    ("epsilon", ("LayerNormalization", "BatchNormalization", "InstanceNormalization"), lambda case: True, lambda case: case.changed(epsilon=1e-3).run()),
    ("flipped-weights", ("Conv",), lambda case: np.prod(case.arrays[1].shape[2:]) > 1 and case.arrays[1].ndim == 4,
     on_weight(lambda w: w[:, :, ::-1, ::-1])),
    ("transposed-weights", ("MatMul", "Gemm"), lambda case: is_weight(case, 1) and case.arrays[1].ndim == 2,
     on_weight(lambda w: np.ascontiguousarray(w.T).reshape(w.shape))),
    ("window-shifted", ("Conv", "MaxPool", "AveragePool"), lambda case: min(case.attributes.get("pads", [0])) > 0,
     lambda case: case.changed(pads=[p - 1 for p in case.attributes["pads"][:len(case.attributes["pads"]) // 2]] +
                               [p + 1 for p in case.attributes["pads"][len(case.attributes["pads"]) // 2:]]).run()),
    ("softmax-axis", ("Softmax",), lambda case: case.opset >= 13 and case.arrays[0].ndim > 2, lambda case: case.changed(axis=case.arrays[0].ndim - 2).run()),
    ("gelu-tanh", ("Erf",), lambda case: True, lambda case: scaled_erf(case, tanh_form)),
    ("gelu-quick", ("Erf",), lambda case: True, lambda case: scaled_erf(case, lambda x: F(2) * sown.sigmoid(F(1.702) * x) - F(1))),
    ("resize-coordinates", ("Resize",), lambda case: case.attributes.get("coordinate_transformation_mode", "half_pixel") != "align_corners",
     lambda case: case.changed(coordinate_transformation_mode="align_corners").run()),
    ("gate-order", ("LSTM",), lambda case: has(case, 3), lambda case: c.reordered(case, (0, 2, 3, 1)).run()),
    ("reset-after", ("GRU",), lambda case: True, lambda case: case.changed(linear_before_reset=1 - case.attributes.get("linear_before_reset", 0)).run()),
]
PRODUCTS = ("Conv", "MatMul", "Gemm")
for grid in sown.GRIDS:
    RULES += [
        (f"inputs-{grid}", PRODUCTS, lambda case: True, lambda case, grid=grid: case.changed({k: rounded(case.arrays[k], grid) for k in (0, 1)}).run()),
        (f"weights-{grid}", PRODUCTS, lambda case: is_weight(case, 1), lambda case, grid=grid: case.changed({1: rounded(case.arrays[1], grid)}).run()),
        (f"result-{grid}", (*PRODUCTS, "LayerNormalization", "Softmax", "Erf", "BatchNormalization", "Sigmoid", "Tanh", "LSTM"), lambda case: True,
         lambda case, grid=grid: rounded(case.run(), grid)),
        (f"sums-{grid}", ("MatMul",), lambda case: case.arrays[0].ndim == case.arrays[1].ndim == 2 and case.arrays[0].size * case.arrays[1].shape[1] < 5e7,
         lambda case, grid=grid: c.summed(*case.arrays, grid)),
        (f"steps-{grid}", ("LayerNormalization",), lambda case: LAYER_NORM(case) and case.arrays[0].size < 5e4,
         lambda case, grid=grid: c.stepped_norm(case, grid)),
        (f"steps-{grid}", ("Softmax",), lambda case: case.opset >= 13 and case.arrays[0].size < 5e4, lambda case, grid=grid: c.stepped_softmax(case.arrays[0], grid)),
    ]
OPS = sorted({op for _, ops, _, _ in RULES for op in ops})


def recorded_plants(folders, seed, each=2):
    """Every rule on up to `each` recorded nodes of every operator of every model; and the nodes as they are."""
    for number, folder in enumerate(folders):
        for case in recorded_cases(folder, np.random.default_rng([seed, number]), each, OPS):
            try:
                yield Plant((), case, case.run())
            except Exception as error:  # A form that ONNX Runtime alone does not take.
                print(f"  {case.op} of {folder} cannot run alone: {error}")
                continue
            for cause, ops, fits, target in RULES:
                if case.op in ops and fits(case):
                    yield Plant(cause, case, target(case))
