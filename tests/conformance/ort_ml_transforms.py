"""The transforms that end classifiers and regressors of ai.onnx.ml, as ONNX's evaluator defines them."""
import numpy as np

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def softmax(rows):
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def softmax_zero(rows):
    top = rows.max(axis=1, keepdims=True)
    powers = np.where(np.abs(rows) > 1e-7, np.exp(rows - top), rows * np.exp(-top))
    return powers / powers.sum(axis=1, keepdims=True)


def probit(rows):
    x = 2 * rows - 1
    log = np.log((1 - x) * (1 + x))
    half = 2 / (np.pi * 0.147) + log / 2
    return np.sqrt(2) * np.copysign(np.sqrt(np.sqrt(half * half - log / 0.147) - half), x)


def transformed(how, rows):
    functions = {"NONE": lambda each: each, "SOFTMAX": softmax, "LOGISTIC": lambda each: 1 / (1 + np.exp(-each)), "SOFTMAX_ZERO": softmax_zero,
                 "PROBIT": probit}
    return functions[how](rows)
