"""Cases of linear models and support vector machines."""
import numpy as np

from ort_ml_model import F32, F64, FLOAT, I32, I64, INT64, NUMBERS, STRING, features, rounded
from ort_ml_transforms import TRANSFORMS, transformed


def linear_cases(cases, rng):
    for i, dtype in enumerate(NUMBERS * 2):
        count, width = 3 + i % 3, 4
        x = features(rng, dtype, 6, width)
        weights = {"coefficients": rounded(rng.normal(size=count * width)), "intercepts": rounded(rng.normal(size=count))}
        labels = {"classlabels_ints": list(range(7, 7 + count))} if i % 2 else {"classlabels_strings": [f"c{k}" for k in range(count)]}
        label_type = INT64 if i % 2 else STRING
        for how in TRANSFORMS if i < 2 else ("SOFTMAX",):
            if how == "PROBIT":  # Defined from 0 to 1.
                near = {"coefficients": rounded(rng.random(count * width) / 8), "intercepts": rounded(0.1 + rng.random(count) / 4)}
                cases.add("LinearClassifier", how, [rng.random((6, width)).astype(F32)], [label_type, FLOAT], {**near, **labels, "post_transform": how})
                continue
            cases.add("LinearClassifier", f"{how}_{dtype.__name__}", [x], [label_type, FLOAT], {**weights, **labels, "post_transform": how})
        scores = x.astype(F64) @ np.array(weights["coefficients"]).astype(F32).astype(F64).reshape(count, width).T
        if i % 2 == 0:
            cases.add("LinearClassifier", f"no_intercepts_{i}", [x], [label_type, FLOAT], {**labels, "coefficients": weights["coefficients"]},
                      expected=[np.array(labels["classlabels_strings"], dtype=object)[scores.argmax(axis=1)], scores.astype(F32)],
                      departs="intercepts are optional; ONNX Runtime counts classes by them")
    for how in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        x = features(rng, F32, 5, 3)
        one = {"coefficients": [0.5, -1.0, 0.25], "intercepts": [0.125]}
        sums = x.astype(F64) @ np.array(one["coefficients"]) + 0.125
        cases.add("LinearClassifier", f"two_labels_one_row_{how}", [x], [INT64, FLOAT], {**one, "classlabels_ints": [4, 5], "post_transform": how},
                  expected=[np.where(sums > 0, 5, 4).astype(I64), transformed(how, np.stack([-sums, sums], axis=1)).astype(F32)],
                  departs=None if how == "LOGISTIC" else "the transform applies to the scores -s and s, of which the label has the higher one; "
                          "ONNX Runtime gives 1-s and s and no transform")
    cases.add("LinearClassifier", "one_label", [x], [INT64, FLOAT], {**one, "classlabels_ints": [1]},
              expected=[(x.astype(F64) @ np.array(one["coefficients"]) + 0.125 > 0).astype(I64),
                        (x.astype(F64) @ np.array(one["coefficients"]) + 0.125).astype(F32)[:, None]],
              departs="ONNX Runtime refuses one label since it checks their number")
    cases.add("LinearClassifier", "row", [features(rng, F32, 3)], [INT64, FLOAT], {**weights_of(rng, 4, 3), "classlabels_ints": [1, 2, 3, 4]})
    for i, targets in enumerate((1, 1, 2, 3, 5)):
        for how in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO") if targets > 1 else ("NONE",):
            cases.add("LinearRegressor", f"{how}_{targets}_{i}", [features(rng, F32, 4, 3)], [FLOAT],
                      {**weights_of(rng, targets, 3), "targets": targets, "post_transform": how})
    cases.add("LinearRegressor", "no_intercepts", [features(rng, F32, 4, 3)], [FLOAT], {"coefficients": [1.0, 2, 3]})
    cases.add("LinearRegressor", "row", [features(rng, F32, 3)], [FLOAT], {"coefficients": [1.0, 2, 3]})
    cases.add("LinearRegressor", "probit", [rng.random((4, 1)).astype(F32)], [FLOAT],
              {"coefficients": [0.5], "intercepts": [0.25], "post_transform": "PROBIT"})
    x = features(rng, F32, 4, 2)
    cases.add("LinearRegressor", "logistic_of_one", [x], [FLOAT], {"coefficients": [1.0, -1.0], "post_transform": "LOGISTIC"},
              expected=[transformed("LOGISTIC", (x[:, :1] - x[:, 1:]).astype(F64)).astype(F32)],
              departs="the transform applies to one target, too; ONNX Runtime leaves it out")
    for dtype in (F64, I64, I32):
        x = features(rng, dtype, 4, 2)
        cases.add("LinearRegressor", dtype.__name__, [x], [FLOAT], {"coefficients": [1.0, -0.5]},
                  expected=[(x[:, :1] - 0.5 * x[:, 1:]).astype(F32)], departs="ONNX Runtime has the operator for float32 only")


def weights_of(rng, count, width):
    return {"coefficients": rounded(rng.normal(size=count * width)), "intercepts": rounded(rng.normal(size=count))}


def svm_cases(cases, rng):
    kernels = {"LINEAR": [0.0, 0, 0], "POLY": [0.5, 1.0, 3], "RBF": [0.25, 0, 0], "SIGMOID": [0.125, 0.5, 0]}
    for classes in (2, 3, 4):
        per_class = rng.integers(1, 4, size=classes).tolist()
        vectors, pairs = sum(per_class), classes * (classes - 1) // 2
        for kernel, params in kernels.items():
            for likely in (False, True):
                attributes = {"kernel_type": kernel, "kernel_params": params, "vectors_per_class": per_class,
                              "support_vectors": rounded(rng.normal(size=vectors * 3)), "rho": rounded(rng.normal(size=pairs)),
                              "coefficients": rounded(rng.normal(size=(classes - 1) * vectors)),
                              "classlabels_ints" if likely else "classlabels_strings": list(range(classes)) if likely else list("wxyz")[:classes]}
                if likely:
                    attributes |= {"prob_a": rounded(-rng.random(pairs)), "prob_b": rounded(rng.normal(size=pairs))}
                x = features(rng, NUMBERS[classes % 4], 5, 3)
                cases.add("SVMClassifier", f"{kernel}_{classes}_{likely}", [x], [INT64 if likely else STRING, FLOAT], attributes)
    attributes["post_transform"] = "SOFTMAX"
    cases.add("SVMClassifier", "softmax", [features(rng, F32, 5, 3)], [INT64, FLOAT], attributes)
    none = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0, 0]}  # ONNX Runtime wants them.
    two = {**none, "vectors_per_class": [1, 2], "support_vectors": [0.0, 1, 1, -1, -0.5, 0.25], "coefficients": [1, -0.5, -0.5], "rho": [0.1],
           "classlabels_ints": [3, 4]}
    x = features(rng, F32, 5, 2)
    s = x.astype(F64) @ (np.array([0.0, 1]) - 0.5 * np.array([1, -1]) - 0.5 * np.array([-0.5, 0.25])) + F64(F32(0.1))
    for how in ("LOGISTIC", "SOFTMAX"):
        cases.add("SVMClassifier", f"two_{how}", [x], [INT64, FLOAT], {**two, "post_transform": how},
                  expected=[np.where(s > 0, 3, 4).astype(I64), transformed(how, np.stack([-s, s], axis=1)).astype(F32)],
                  departs=None if how == "LOGISTIC" else "the transform applies to the raw scores; ONNX Runtime gives 1-s and s in its place")
    w = {**none, "coefficients": rounded(rng.normal(size=9)), "rho": [0.25], "classlabels_strings": ["a", "b", "c"]}
    cases.add("SVMClassifier", "linear", [x := features(rng, F32, 6, 3)], [STRING, FLOAT], w)
    cases.add("SVMClassifier", "linear_softmax", [x], [STRING, FLOAT], {**w, "post_transform": "SOFTMAX"})
    for count in (1, 4, 9):
        for kernel, params in kernels.items():
            attributes = {"kernel_type": kernel, "kernel_params": params, "n_supports": count, "rho": rounded(rng.normal(size=1)),
                          "support_vectors": rounded(rng.normal(size=count * 3)), "coefficients": rounded(rng.normal(size=count))}
            cases.add("SVMRegressor", f"{kernel}_{count}", [features(rng, F32, 5, 3)], [FLOAT], attributes)
    cases.add("SVMRegressor", "one_class", [features(rng, F32, 8, 3)], [FLOAT], {**attributes, "one_class": 1})
    cases.add("SVMRegressor", "linear", [features(rng, F32, 4, 2)], [FLOAT], {**none, "coefficients": [1.0, -2.0], "rho": [0.5], "n_supports": 0})
    x = features(rng, F32, 4, 2)
    cases.add("SVMRegressor", "logistic", [x], [FLOAT], {**none, "coefficients": [1.0, -2.0], "rho": [0.5], "n_supports": 0, "post_transform": "LOGISTIC"},
              expected=[transformed("LOGISTIC", (x[:, :1] - 2 * x[:, 1:] + 0.5).astype(F64)).astype(F32)],
              departs="the transform applies; ONNX Runtime leaves it out")
    for dtype in (F64, I64, I32):
        x = features(rng, dtype, 4, 2)
        cases.add("SVMRegressor", dtype.__name__, [x], [FLOAT], {**none, "coefficients": [1.0, -2.0], "rho": [0.5], "n_supports": 0},
                  expected=[(x[:, :1] - 2.0 * x[:, 1:] + 0.5).astype(F32)], departs="ONNX Runtime has the operator for float32 only")


FAMILIES = (linear_cases, svm_cases)
