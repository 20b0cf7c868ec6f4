"""Random decision trees for ort_ml_cases.py, as the operators of ai.onnx.ml list them."""
import numpy as np
from onnx import numpy_helper

from ort_ml_model import DOUBLE, F32, F64, FLOAT, I32, I64, INT64, STRING
from ort_ml_transforms import transformed

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


class Node:
    def __init__(self, rng, depth, width, modes, values):
        self.leaf = depth == 0 or rng.random() < 0.15
        if self.leaf:
            return
        self.feature = int(rng.integers(0, width))
        self.mode = str(rng.choice(modes))
        self.value = float(F32(rng.choice(values)))
        self.missing = int(rng.integers(0, 2))
        self.yes = Node(rng, depth - 1, width, modes, values)
        self.no = Node(rng, depth - 1, width, modes, values)


def forest(rng, count, depth, width, modes, values):
    return [Node(rng, depth, width, modes, values) for _ in range(count)]


def nodes_of(tree):
    """All nodes, a parent before its branches."""
    found, rest = [], [tree]
    while rest:
        node = rest.pop(0)
        found.append(node)
        if not node.leaf:
            rest += [node.yes, node.no]
    return found


def listed(rng, trees, prefix, targets, weights, double=False, missing=False, only_target=None):
    """The attributes of TreeEnsembleClassifier (`class`) or TreeEnsembleRegressor (`target`)."""
    a = {key: [] for key in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids",
                             "nodes_values", "nodes_missing_value_tracks_true", f"{prefix}_treeids", f"{prefix}_nodeids", f"{prefix}_ids",
                             f"{prefix}_weights")}
    for t, tree in enumerate(trees):
        nodes = nodes_of(tree)
        ids = {id(node): i for i, node in enumerate(nodes)}
        for i, node in enumerate(nodes):
            a["nodes_treeids"].append(t)
            a["nodes_nodeids"].append(i)
            a["nodes_featureids"].append(0 if node.leaf else node.feature)
            a["nodes_modes"].append("LEAF" if node.leaf else node.mode)
            a["nodes_values"].append(0.0 if node.leaf else node.value)
            a["nodes_truenodeids"].append(0 if node.leaf else ids[id(node.yes)])
            a["nodes_falsenodeids"].append(0 if node.leaf else ids[id(node.no)])
            a["nodes_missing_value_tracks_true"].append(0 if node.leaf else node.missing)
            if not node.leaf:
                continue
            voted = [only_target] if only_target is not None else range(targets)
            for target in voted:
                a[f"{prefix}_treeids"].append(t)
                a[f"{prefix}_nodeids"].append(i)
                a[f"{prefix}_ids"].append(int(target))
                a[f"{prefix}_weights"].append(float(F32(weights(rng))))
    if not missing:
        del a["nodes_missing_value_tracks_true"]
    if double:
        for key in ("nodes_values", f"{prefix}_weights"):
            a[f"{key}_as_tensor"] = numpy_helper.from_array(np.array(a.pop(key), F64), key)
    return a


def ensemble(rng, trees, targets, dtype, missing=False):
    """The attributes of TreeEnsemble. A tree of one leaf is a node with that leaf on both sides."""
    names = ("featureids", "truenodeids", "trueleafs", "falsenodeids", "falseleafs", "missing_value_tracks_true")
    a = {f"nodes_{name}": [] for name in names} | {"leaf_targetids": [], "tree_roots": []}
    modes, splits, weights, members = [], [], [], []

    def leaf(node):
        node.vote = int(rng.integers(0, targets)), float(dtype(rng.normal()))
        a["leaf_targetids"].append(node.vote[0])
        weights.append(node.vote[1])
        return len(weights) - 1

    def place(node):
        i = len(modes)
        modes.append(0 if node.leaf else 6 if node.mode == "MEMBER" else MODES.index(node.mode))
        splits.append(0 if node.leaf else node.value)
        for name, value in zip(names, (0 if node.leaf else node.feature, 0, 1, 0, 1, 0 if node.leaf else node.missing)):
            a[f"nodes_{name}"].append(value)
        if not node.leaf and node.mode == "MEMBER":
            members.append((i, [node.value, node.value + 1]))
        if node.leaf:
            a["nodes_truenodeids"][i] = a["nodes_falsenodeids"][i] = leaf(node)
            return i
        for side, branch in (("true", node.yes), ("false", node.no)):
            a[f"nodes_{side}leafs"][i] = int(branch.leaf)
            a[f"nodes_{side}nodeids"][i] = leaf(branch) if branch.leaf else place(branch)
        return i

    for tree in trees:
        a["tree_roots"].append(place(tree))
    if not missing:
        del a["nodes_missing_value_tracks_true"]
    if members:
        listed_members = [value for _, each in sorted(members) for value in [*each, np.nan]]
        a["membership_values"] = numpy_helper.from_array(np.array(listed_members, dtype))
    a |= {"n_targets": targets, "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)),
          "nodes_splits": numpy_helper.from_array(np.array(splits, dtype)), "leaf_weights": numpy_helper.from_array(np.array(weights, dtype))}
    return a


def walk(node, row):
    while not node.leaf:
        x, t = float(row[node.feature]), node.value
        yes = {"BRANCH_LEQ": x <= t, "BRANCH_LT": x < t, "BRANCH_GTE": x >= t, "BRANCH_GT": x > t, "BRANCH_EQ": x == t, "BRANCH_NEQ": x != t}
        node = node.yes if (bool(node.missing) if np.isnan(x) else yes[node.mode]) else node.no
    return node


def votes(trees, attributes, prefix, x, targets):
    """The sum of votes of each row, from the attributes."""
    found = np.zeros((len(x), targets))
    weights = {}
    for t, n, target, weight in zip(*(attributes[f"{prefix}_{key}"] for key in ("treeids", "nodeids", "ids", "weights"))):
        weights.setdefault((t, n), []).append((target, weight))
    for t, tree in enumerate(trees):
        ids = {id(node): i for i, node in enumerate(nodes_of(tree))}
        for i, row in enumerate(x):
            for target, weight in weights[t, ids[id(walk(tree, row))]]:
                found[i, target] += weight
    return found


def inputs_for(rng, dtype, rows=16, width=4):
    """Features that often meet a threshold."""
    grid = np.arange(-4, 5) / (2 if dtype in (F32, F64) else 1)
    return rng.choice(grid, size=(rows, width)).astype(dtype), grid


def regressor_cases(cases, rng):
    normal = lambda r: r.normal()
    for dtype in (F32, F64):
        for how in ("SUM", "AVERAGE", "MIN", "MAX"):
            for targets in (1, 3):
                x, grid = inputs_for(rng, dtype)
                a = listed(rng, forest(rng, 5, 4, 4, MODES, grid), "target", targets, normal, double=dtype == F64)
                a |= {"n_targets": targets, "aggregate_function": how}
                cases.add("TreeEnsembleRegressor", f"{how}_{targets}_{dtype.__name__}", [x], [FLOAT], a)
        base = rng.normal(size=3)
        bases = {"base_values": base.tolist()} if dtype == F32 else {"base_values_as_tensor": numpy_helper.from_array(base)}
        cases.add("TreeEnsembleRegressor", f"base_{dtype.__name__}", [x], [FLOAT], {**a, **bases})
    x, grid = inputs_for(rng, F32)
    trees = forest(rng, 4, 3, 4, MODES[:4], grid)
    a = listed(rng, trees, "target", 3, normal)
    for how in ("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        cases.add("TreeEnsembleRegressor", how, [x], [FLOAT], {**a, "n_targets": 3, "post_transform": how})
    a = listed(rng, trees, "target", 1, normal)
    for opset in (1, 3):
        cases.add("TreeEnsembleRegressor", f"opset_{opset}", [x], [FLOAT], {**a, "n_targets": 1}, opset=opset)
    cases.add("TreeEnsembleRegressor", "logistic_of_one", [x], [FLOAT], {**a, "n_targets": 1, "post_transform": "LOGISTIC"},
              expected=[transformed("LOGISTIC", votes(trees, a, "target", x, 1)).astype(F32)],
              departs="the transform applies to one target, too; ONNX Runtime leaves it out")
    x = np.where(rng.random(x.shape) < 0.3, x.dtype.type(np.nan), x)
    for missing in (False, True):
        a = listed(rng, trees, "target", 2, normal, missing=missing)
        cases.add("TreeEnsembleRegressor", f"missing_{missing}", [x], [FLOAT], {**a, "n_targets": 2})
    trees = forest(rng, 4, 3, 4, ["BRANCH_NEQ"], grid)
    a = listed(rng, trees, "target", 2, normal, missing=True)
    cases.add("TreeEnsembleRegressor", "missing_is_not_unequal", [x], [FLOAT], {**a, "n_targets": 2},
              expected=[votes(trees, a, "target", x, 2).astype(F32)],
              departs="NaN goes where nodes_missing_value_tracks_true says, whatever the test; in ONNX Runtime it is unequal")


def classifier_cases(cases, rng):
    normal, positive = (lambda r: r.normal()), (lambda r: r.random() / 8)
    for dtype in (F32, F64, I64, I32):
        x, grid = inputs_for(rng, dtype)
        trees = forest(rng, 5, 4, 4, MODES, grid)
        a = listed(rng, trees, "class", 3, positive, double=dtype == F64)
        for labels in ({"classlabels_int64s": [3, 1, 7]}, {"classlabels_strings": ["a", "b c", "d"]}):
            out = INT64 if "classlabels_int64s" in labels else STRING
            cases.add("TreeEnsembleClassifier", dtype.__name__, [x], [out, FLOAT], {**a, **labels})
    x, grid = inputs_for(rng, F32)
    trees = forest(rng, 5, 4, 4, MODES, grid)
    a = listed(rng, trees, "class", 3, normal)
    for how in ("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        cases.add("TreeEnsembleClassifier", how, [x], [INT64, FLOAT], {**a, "classlabels_int64s": [0, 1, 2], "post_transform": how})
    cases.add("TreeEnsembleClassifier", "base", [x], [INT64, FLOAT], {**a, "classlabels_int64s": [0, 1, 2], "base_values": [0.5, -1.0, 0.25]})
    for opset in (1, 3):
        cases.add("TreeEnsembleClassifier", f"opset_{opset}", [x], [INT64, FLOAT], {**a, "classlabels_int64s": [0, 1, 2]}, opset=opset)
    two = {"classlabels_int64s": [4, 9]}
    mixed = listed(rng, trees, "class", 2, normal, only_target=0)
    likely = listed(rng, trees, "class", 2, positive, only_target=0)
    for how in ("NONE", "LOGISTIC"):
        cases.add("TreeEnsembleClassifier", f"one_sided_{how}", [x], [INT64, FLOAT], {**mixed, **two, "post_transform": how})
    cases.add("TreeEnsembleClassifier", "one_sided_base", [x], [INT64, FLOAT], {**mixed, **two, "post_transform": "LOGISTIC", "base_values": [0.3]})
    cases.add("TreeEnsembleClassifier", "one_sided_text", [x], [STRING, FLOAT], {**mixed, "classlabels_strings": ["no", "yes"], "post_transform": "LOGISTIC"})
    cases.add("TreeEnsembleClassifier", "likely", [x], [INT64, FLOAT], {**likely, **two})
    s = votes(trees, likely, "class", x, 2)[:, :1]
    cases.add("TreeEnsembleClassifier", "likely_logistic", [x], [INT64, FLOAT], {**likely, **two, "post_transform": "LOGISTIC"},
              expected=[np.where(s[:, 0] > 0, 9, 4).astype(I64), transformed("LOGISTIC", np.hstack([-s, s])).astype(F32)],
              departs="the transform applies whatever the signs of the weights; ONNX Runtime leaves it out where none is negative")
    s = votes(trees, mixed, "class", x, 2)[:, :1]
    cases.add("TreeEnsembleClassifier", "one_sided_softmax", [x], [INT64, FLOAT], {**mixed, **two, "post_transform": "SOFTMAX"},
              expected=[np.where(s[:, 0] > 0, 9, 4).astype(I64), transformed("SOFTMAX", np.hstack([-s, s])).astype(F32)],
              departs="the transform applies; ONNX Runtime leaves it out")
    second = listed(rng, trees, "class", 2, normal, only_target=1)
    cases.add("TreeEnsembleClassifier", "second_only", [x], [INT64, FLOAT], {**second, **two, "post_transform": "LOGISTIC"})
    second = listed(rng, trees, "class", 2, positive, only_target=1)
    cases.add("TreeEnsembleClassifier", "second_only_likely", [x], [INT64, FLOAT], {**second, **two})
    both = listed(rng, trees, "class", 2, positive)
    s = votes(trees, both, "class", x, 2)
    cases.add("TreeEnsembleClassifier", "both", [x], [INT64, FLOAT], {**both, **two},
              expected=[np.where(s[:, 1] > s[:, 0], 9, 4).astype(I64), s.astype(F32)],
              departs="the label is the top class; ONNX Runtime gives 1 for any positive vote for the second")
    one = listed(rng, trees, "class", 1, normal)
    cases.add("TreeEnsembleClassifier", "one_label", [x], [INT64, FLOAT], {**one, "classlabels_int64s": [1]})
    x = np.where(rng.random(x.shape) < 0.3, x.dtype.type(np.nan), x)
    a = listed(rng, forest(rng, 5, 4, 4, MODES[:4], grid), "class", 3, normal, missing=True)
    cases.add("TreeEnsembleClassifier", "missing", [x], [INT64, FLOAT], {**a, "classlabels_int64s": [0, 1, 2]})


def ensemble_cases(cases, rng):
    for dtype in (F32, F64):
        out = FLOAT if dtype == F32 else DOUBLE
        for how in range(4):
            for targets in (1, 3):
                x, grid = inputs_for(rng, dtype)
                a = ensemble(rng, forest(rng, 5, 4, 4, MODES, grid), targets, dtype)
                cases.add("TreeEnsemble", f"aggregate_{how}_{targets}", [x], [out], {**a, "aggregate_function": how}, opset=5)
        trees = forest(rng, 5, 4, 4, MODES, grid)
        a = ensemble(rng, trees, 3, dtype)
        sums = np.zeros((len(x), 3))
        for i, row in enumerate(x):
            for target, weight in (walk(tree, row).vote for tree in trees):
                sums[i, target] += weight
        for transform, how in enumerate(("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")):
            swapped = how in ("SOFTMAX", "LOGISTIC")
            cases.add("TreeEnsemble", how, [x], [out], {**a, "post_transform": transform}, opset=5,
                      expected=[transformed(how, sums).astype(dtype)] if swapped else None,
                      departs="SOFTMAX is 1 and LOGISTIC is 2; ONNX Runtime has it the other way round" if swapped else None)
        x, grid = np.round(2 * x).astype(dtype), np.round(2 * grid)  # ONNX Runtime has sets of integers only.
        a = ensemble(rng, forest(rng, 5, 4, 4, [*MODES, "MEMBER"], grid), 2, dtype)
        cases.add("TreeEnsemble", "members", [x], [out], a, opset=5)
        x = np.where(rng.random(x.shape) < 0.3, x.dtype.type(np.nan), x)
        a = ensemble(rng, forest(rng, 5, 4, 4, MODES[:4], grid), 2, dtype, missing=True)
        cases.add("TreeEnsemble", "missing", [x], [out], a, opset=5)


FAMILIES = (regressor_cases, classifier_cases, ensemble_cases)
