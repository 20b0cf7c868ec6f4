#!/usr/bin/env python3
"""Compares the operators of ai.onnx.ml, and com.microsoft's Tokenizer, with ONNX Runtime over random models.

  tests/conformance/ort_ml_cases.py UNMOOR FOLDER [--only TEXT] [--on reference,cpu]

Writes each case into FOLDER in ONNX's test layout, expected outputs by ONNX Runtime, and runs `UNMOOR conformance --onnx-tests FOLDER`.
Where ONNX Runtime departs from the specification, the case says why and brings its own expected outputs; it fails, too, if ONNX Runtime no
longer departs.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import ort_ml_trees as trees
from ort_ml_transforms import TRANSFORMS, transformed

ML = "ai.onnx.ml"
F32, F64, I64, I32 = np.float32, np.float64, np.int64, np.int32
NUMBERS = (F32, F64, I64, I32)


class Cases:
    """Collects cases as (name, model, inputs, expected outputs or None for ONNX Runtime's, why it departs)."""

    def __init__(self):
        self.all = []

    def add(self, op, what, inputs, outputs, attributes, opset=3, expected=None, departs=None, domain=ML):
        name = f"{op}_{sum(each[0].startswith(op.lower() + '_') for each in self.all):03}_{what}".lower()
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(op, [f"in{i}" for i in range(len(inputs))], [f"out{i}" for i in range(len(outputs))], name=op, domain=domain,
                                **attributes)
        graph = helper.make_graph([node], name, [helper.make_value_info(f"in{i}", type_of(x)) for i, x in enumerate(inputs)],
                                  [helper.make_value_info(f"out{i}", declared) for i, declared in enumerate(outputs)])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(domain, opset)])
        self.all.append((name, model, inputs, expected, departs))


def tensor(dtype):
    return helper.make_tensor_type_proto(dtype, None)


FLOAT, DOUBLE, INT64, STRING = (tensor(each) for each in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING))


def map_type(key, value):
    return helper.make_map_type_proto(key, tensor(value))


def type_of(value):
    if isinstance(value, dict):
        key, item = next(iter(value.items()))
        text = isinstance(key, str)
        return map_type(TensorProto.STRING if text else TensorProto.INT64,
                        TensorProto.STRING if isinstance(item, str) else helper.np_dtype_to_tensor_dtype(np.asarray(item).dtype))
    value = np.asarray(value)
    dtype = TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(dtype, value.shape)


def as_proto(value, wanted_type=None):
    """A value as ONNX's test data holds it; maps with their entries in the order given."""
    if isinstance(value, list):
        proto = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP)
        proto.map_values.extend(as_proto(each) for each in value)
        return proto
    if isinstance(value, dict):
        proto = onnx.MapProto()
        texts = isinstance(next(iter(value), 0), str)
        proto.key_type = TensorProto.STRING if texts else TensorProto.INT64
        if texts:
            proto.string_keys.extend(key.encode() for key in value)
        else:
            proto.keys.extend(value)
        proto.values.elem_type = onnx.SequenceProto.TENSOR
        proto.values.tensor_values.extend(numpy_helper.from_array(np.asarray(each, dtype=object if isinstance(each, str) else None))
                                          for each in value.values())
        return proto
    value = np.asarray(value)
    return numpy_helper.from_array(value.astype(object) if value.dtype.kind in "US" else value)


def features(rng, dtype, *shape):
    if dtype in (F32, F64):
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(-4, 5, size=shape).astype(dtype)


def rounded(values, digits=3):
    return [round(float(each), digits) for each in np.asarray(values).ravel()]


def simple_cases(cases, rng):
    for dtype in (F32, F64, I64, I32):
        x = features(rng, dtype, 3, 5)
        out = tensor(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        cases.add("ArrayFeatureExtractor", dtype.__name__, [x, np.array([0, 3, 3], I64)], [out], {})
        cases.add("ArrayFeatureExtractor", f"vector_{dtype.__name__}", [x[0], np.array([[4, 1]], I64)], [out], {})
        cases.add("ArrayFeatureExtractor", f"cube_{dtype.__name__}", [features(rng, dtype, 2, 3, 4), np.array([2], I64)], [out], {})
        for norm in ("MAX", "L1", "L2"):
            cases.add("Normalizer", f"{norm}_{dtype.__name__}", [x], [FLOAT], {"norm": norm})
        cases.add("Normalizer", f"zeros_{dtype.__name__}", [np.zeros((2, 3), dtype)], [FLOAT], {"norm": "L2"})
        cases.add("Normalizer", f"row_{dtype.__name__}", [x[1]], [FLOAT], {"norm": "L1"})
        cases.add("Scaler", f"each_{dtype.__name__}", [x], [FLOAT], {"offset": rounded(rng.normal(size=5)), "scale": rounded(rng.normal(size=5))})
        cases.add("Scaler", f"one_{dtype.__name__}", [x], [FLOAT], {"offset": [0.5], "scale": [-2.0]})
        cases.add("Scaler", f"row_{dtype.__name__}", [x[0]], [FLOAT], {"offset": [1.0, 2, 3, 4, 5], "scale": [1.0, 2, 3, 4, 5]})
        cases.add("Scaler", f"offset_{dtype.__name__}", [x], [FLOAT], {"offset": [1.0]}, expected=[(x - F64(1)).astype(F32)],
                  departs="offset and scale are optional; ONNX Runtime wants both")
        y = features(rng, dtype, 3, 2)
        cases.add("FeatureVectorizer", dtype.__name__, [x, y], [FLOAT], {"inputdimensions": [5, 2]})
        cases.add("FeatureVectorizer", f"cut_and_padded_{dtype.__name__}", [x, y], [FLOAT], {"inputdimensions": [3, 4]})
        cases.add("FeatureVectorizer", f"rows_{dtype.__name__}", [x[0], y[0]], [FLOAT], {"inputdimensions": [5, 2]})
    for threshold in (0.0, 1.0, -0.5, float("inf")):
        cases.add("Binarizer", f"{threshold}", [features(rng, F32, 4, 3)], [FLOAT], {"threshold": threshold})
    cases.add("Binarizer", "nan", [np.array([np.nan, np.inf, -np.inf, 0, 2], F32)], [FLOAT], {"threshold": 0.0},
              expected=[np.array([0, 1, 0, 0, 1], F32)], departs="NaN is above nothing; ONNX Runtime refuses it")
    for shape in ((), (1,), (0, 3), (2, 3, 4)):
        cases.add("Binarizer", f"rank_{len(shape)}", [features(rng, F32, *shape)], [FLOAT], {"threshold": 0.25})
    for dtype in (F64, I64, I32):
        x = features(rng, dtype, 3, 4)
        cases.add("Binarizer", dtype.__name__, [x], [tensor(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))], {"threshold": 1.0},
                  expected=[(x > 1).astype(dtype)], departs="ONNX Runtime has the operator for float32 only")
    text = np.array([["a", "b", "c"], ["d", "e", "f"]], dtype=object)
    cases.add("ArrayFeatureExtractor", "text", [text, np.array([2, 0], I64)], [STRING], {})


def imputer_cases(cases, rng):
    for i in range(4):
        x = features(rng, F32, 5, 3)
        x = np.where(rng.random(x.shape) < 0.3, x.dtype.type(np.nan), x)
        each = {"imputed_value_floats": rounded(rng.normal(size=3))}
        cases.add("Imputer", f"nan_{i}", [x], [FLOAT], {"replaced_value_float": float("nan"), **each})
        cases.add("Imputer", f"nan_by_one_{i}", [x], [FLOAT], {"replaced_value_float": float("nan"), "imputed_value_floats": [9.0]})
        whole = rng.integers(-2, 3, size=(5, 3))
        cases.add("Imputer", f"int64_{i}", [whole.astype(I64)], [INT64], {"imputed_value_int64s": [7, 8, 9], "replaced_value_int64": i - 2})
        cases.add("Imputer", f"int32_{i}", [whole.astype(I32)], [tensor(TensorProto.INT32)],
                  {"imputed_value_int64s": [7], "replaced_value_int64": i - 2},
                  expected=[np.where(whole == i - 2, 7, whole).astype(I32)], departs="ONNX Runtime has no int32 here")
        cases.add("Imputer", f"float64_{i}", [x.astype(F64)], [DOUBLE], {"imputed_value_floats": [0.5], "replaced_value_float": float("nan")},
                  expected=[np.where(np.isnan(x), 0.5, x).astype(F64)], departs="ONNX Runtime has no float64 here")
    cases.add("Imputer", "zero", [np.array([[0, -0.0, 1]], F32)], [FLOAT], {"imputed_value_floats": [5.0]})


def encoder_cases(cases, rng):
    words = ["cat", "dog", "", "owl"]
    picks = np.array([words[i] if i < 4 else "new" for i in rng.integers(0, 5, size=9)], dtype=object)
    numbers = rng.integers(0, 6, size=(3, 4)).astype(I64)
    floats = np.array([1, 2.5, np.nan, -3, 7], F32)
    add = lambda what, x, out, **attributes: cases.add("LabelEncoder", what, [x], [out], attributes, opset=attributes.pop("opset", 4),
                                                       expected=attributes.pop("expected", None), departs=attributes.pop("departs", None))
    for opset in (2, 4):
        add(f"text_int64_{opset}", picks, INT64, keys_strings=words, values_int64s=[4, 3, 2, 1], default_int64=-7, opset=opset)
        add(f"text_text_{opset}", picks, STRING, keys_strings=words, values_strings=["a", "b", "c", "d"], opset=opset)
        add(f"text_float_{opset}", picks, FLOAT, keys_strings=words, values_floats=[0.5, 1, 2, 3], opset=opset)
        add(f"int64_text_{opset}", numbers, STRING, keys_int64s=[0, 1, 2], values_strings=["x", "y", "z"], default_string="w", opset=opset)
        add(f"int64_int64_{opset}", numbers, INT64, keys_int64s=[0, 1, 2], values_int64s=[9, 8, 7], opset=opset)
        add(f"int64_float_{opset}", numbers, FLOAT, keys_int64s=[0, 1, 2], values_floats=[0.5, 1, 2], default_float=-1.0, opset=opset)
        add(f"float_text_{opset}", floats, STRING, keys_floats=[1.0, 2.5], values_strings=["x", "y"], opset=opset)
        add(f"float_int64_{opset}", floats, INT64, keys_floats=[1.0, 2.5], values_int64s=[5, 6], opset=opset)
        add(f"float_float_{opset}", floats, FLOAT, keys_floats=[float("nan"), 2.5], values_floats=[5.0, 6], opset=opset,
            expected=[np.array([-0.0, 6, 5, -0.0, -0.0], F32)] if opset == 2 else None,
            departs="even NaN can be mapped; in ONNX Runtime only from opset 4 on" if opset == 2 else None)
    for keys, values in (("INT64", "STRING"), ("STRING", "INT64"), ("DOUBLE", "DOUBLE"), ("INT16", "INT16")):
        dtypes = {"INT64": I64, "DOUBLE": F64, "STRING": object, "INT16": np.int16}
        given = np.array(words[:3], dtype=object) if keys == "STRING" else np.array([1, 2, 3], dtypes[keys])
        made = np.array(["x", "y", "z"], dtype=object) if values == "STRING" else np.array([10, 20, 30], dtypes[values])
        default = np.array(["none"], dtype=object) if values == "STRING" else np.array([42], dtypes[values])
        x = picks if keys == "STRING" else np.array([1, 5, 3, 2], dtypes[keys])
        out = tensor(getattr(TensorProto, values))
        lists = {"keys_tensor": as_proto(given), "values_tensor": as_proto(made)}
        places = {key: i for i, key in enumerate(given.tolist())}
        want = lambda other: [np.array([made[places[each]] if each in places else other for each in x.tolist()], made.dtype)]
        runs = (keys, values) != ("INT16", "INT16")
        why = "ONNX Runtime has no kernel for these types" if not runs else None
        add(f"tensor_{keys}_{values}", x, out, **lists, default_tensor=as_proto(default), expected=None if runs else want(default[0]), departs=why)
        plain = "_Unused" if values == "STRING" else -1 if values != "DOUBLE" else -0.0
        add(f"tensor_default_{keys}_{values}", x, out, **lists, expected=None if runs else want(plain), departs=why)
    add("repeated", np.array([1, 2], I64), INT64, keys_int64s=[1, 1], values_int64s=[5, 6], expected=[np.array([6, -1], I64)],
        departs="of a repeated key the last takes precedence; in ONNX Runtime the first")
    add("zeros_2", np.array([0.0, -0.0], F32), INT64, keys_floats=[0.0], values_int64s=[5], opset=2, expected=[np.array([5, -1], I64)],
        departs="before opset 4 keys are compared bit by bit: -0 is not 0")
    for i, classes in enumerate((["a", "b", "c"], words)):
        x = np.array([["a", "b"], ["owl", "?"]], dtype=object)
        want = np.array([[classes.index(each) if each in classes else 9 for each in row] for row in x], I64)
        add(f"classes_text_{i}", x, INT64, classes_strings=classes, default_int64=9, opset=1, expected=None if i == 0 else [want])
        back = np.array([0, 2, 5, -1], I64)
        add(f"classes_int64_{i}", back, STRING, classes_strings=classes, default_string="none", opset=1)
    for i in range(5):
        texts = [f"t{j}" for j in range(i + 1)]
        whole = rng.permutation(20)[: i + 1].tolist()
        lists = {"cats_strings": texts, "cats_int64s": whole}
        x = np.array([f"t{j}" for j in rng.integers(0, i + 2, size=6)], dtype=object).reshape(2, 3)
        cases.add("CategoryMapper", f"text_{i}", [x], [INT64], {**lists, "default_int64": -i})
        back = rng.choice(whole + [99], size=7).astype(I64)
        cases.add("CategoryMapper", f"int64_{i}", [back], [STRING], {**lists, "default_string": "none"})
    for dtype in NUMBERS:
        x = rng.integers(0, 4, size=(2, 3)).astype(dtype)
        for what, given, categories in ((dtype.__name__, x, [2, 0, 3]), (f"all_{dtype.__name__}", x[0], [3, 2, 1, 0])):
            lacks = dtype == I32
            cases.add("OneHotEncoder", what, [given], [FLOAT], {"cats_int64s": categories, "zeros": int(len(categories) < 4)},
                      expected=[(given[..., None] == np.array(categories)).astype(F32)] if lacks else None,
                      departs="ONNX Runtime has no int32 here" if lacks else None)
    cases.add("OneHotEncoder", "text", [picks], [FLOAT], {"cats_strings": words})
    cases.add("OneHotEncoder", "fractions", [np.array([1.9, -0.5, 0.2], F32)], [FLOAT], {"cats_int64s": [0, 1]})
    cases.add("OneHotEncoder", "text_cube", [np.array(words, dtype=object).reshape(2, 1, 2)], [FLOAT], {"cats_strings": words[:2]})


def map_cases(cases, rng):
    for i, count in enumerate((1, 2, 5)):
        for j in range(4):
            keys = rng.permutation(50)[:count].tolist()
            values = rng.normal(size=count).astype(F32)
            floats = {int(key): value for key, value in zip(keys, values)}
            texts = {int(key): str(round(float(value), 3)) for key, value in zip(keys, values)}
            whole = {int(key): str(int(10 * value)) for key, value in zip(keys, values)}
            one = "the text says that the output has one dimension; ONNX Runtime gives it two"
            dense = lambda kind, given: [np.array([kind(given[key]) for key in sorted(given)], None if kind is not str else object)]
            add = lambda what, given, out, expected, **attributes: cases.add("CastMap", f"{what}_{i}{j}", [given], [out], attributes,
                                                                            expected=expected, departs=one)
            if j == 0:
                add("float", floats, FLOAT, dense(F32, floats))
                add("float_text", texts, FLOAT, dense(F32, texts), cast_to="TO_FLOAT")
            elif j == 1:
                add("int64", floats, INT64, dense(lambda each: I64(np.trunc(each)), floats), cast_to="TO_INT64")
                add("int64_text", whole, INT64, dense(I64, whole), cast_to="TO_INT64")
            elif j == 2:
                add("text", texts, STRING, dense(str, texts), cast_to="TO_STRING")
            else:
                sparse = np.zeros(60, F32)
                for key, value in floats.items():
                    sparse[key] = value
                add("sparse", floats, FLOAT, [sparse], map_form="SPARSE", max_map=60)
    only_floats = "ONNX Runtime's Python interface takes maps to float32 only"
    for i in range(3):
        names = [f"k{j}" for j in range(i + 3)]
        numbers = rng.permutation(9)[: i + 3].tolist()
        for dtype in (F32, F64, I64, object):
            for keys, key in ((names, "string_vocabulary"), (numbers, "int64_vocabulary")):
                if keys == names and dtype == object or keys == numbers and dtype == I64:
                    continue  # No such map is allowed.
                values = [f"w{j}" for j in range(i + 2)] if dtype == object else rng.integers(-9, 9, size=i + 2).astype(dtype).tolist()
                given = {name: value if dtype == object else dtype(value) for name, value in zip(keys[:-1], values)}
                out = STRING if dtype == object else tensor(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
                want = np.array([[given.get(name, "" if dtype == object else 0) for name in keys[::-1]]], dtype)
                cases.add("DictVectorizer", f"{key}_{dtype.__name__}_{i}", [given], [out], {key: keys[::-1]},
                          expected=None if dtype == F32 else [want], departs=None if dtype == F32 else only_floats)
    for i in range(6):
        x = rng.random(size=(i, 3)).astype(F32) if i else rng.random(3).astype(F32)
        for labels in ([3, 5, 9], ["x", "y z", "é"]):
            key = "classlabels_int64s" if isinstance(labels[0], int) else "classlabels_strings"
            kind = map_type(TensorProto.INT64 if isinstance(labels[0], int) else TensorProto.STRING, TensorProto.FLOAT)
            out = helper.make_sequence_type_proto(kind)
            cases.add("ZipMap", f"{i}", [x], [out], {key: labels})


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


def tokenizer_cases(cases, rng):
    """What comes before TfIdfVectorizer in text models."""
    texts = np.array(["Hello World", "I love computer science !", "  a  b ", "", "\u00e9t\u00e9 \u00e0 la carte", "aXbXXc", "one 2 three", "four4five", "abcabc", "XX"],
                     dtype=object)
    ways = [{"separators": each} for each in ([" "], [";", "e"], ["X+", " "], ["[0-9]", "o"], ["x*"], [""])]
    ways += [{"tokenexp": each} for each in ("[a-zA-Z]+", ".", r"\w+|[^\w\s]", "a|ab|abc", "x*")]
    for i, way in enumerate(ways):
        for mark, shortest in ((0, 1), (1, 1), (0, 2)):
            if shortest > 1 and way in ({"separators": [""]}, {"tokenexp": "."}):
                continue
            x = texts.reshape(5, 2) if mark else rng.permutation(texts)
            cases.add("Tokenizer", str(i), [x], [STRING], {"mark": mark, "mincharnum": shortest, "pad_value": "#", **way}, opset=1,
                      domain="com.microsoft")
    for x in (np.array([], dtype=object), np.zeros((2, 0), dtype=object), np.array(["", ""], dtype=object)):
        cases.add("Tokenizer", "empty", [x], [STRING], {"mark": 1, "mincharnum": 1, "pad_value": "#", "separators": [" "]}, opset=1,
                  domain="com.microsoft")


def run_runtime(model, inputs):
    """ONNX Runtime's outputs, or why there are none."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {f"in{i}": value for i, value in enumerate(inputs)}), ""
    except Exception as error:  # Its exceptions have no common type but this one.
        return None, str(error).splitlines()[0]


def same(found, wanted):
    if found is None:
        return False
    for a, b in zip(found, wanted):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype.kind != b.dtype.kind and "O" not in (a.dtype.kind, b.dtype.kind):
            return False
        if a.dtype.kind in "fiu" and not np.allclose(a, b, rtol=1e-3, atol=1e-6, equal_nan=True):
            return False
        if a.dtype.kind not in "fiu" and a.tolist() != b.tolist():
            return False
    return True


def ordered(outputs, model):
    """Maps in the order of the labels, as the node has them: ONNX Runtime sorts them."""
    labels = [key.decode() if isinstance(key, bytes) else key for each in model.graph.node[0].attribute if each.name.startswith("classlabels")
              for key in helper.get_attribute_value(each)]
    return [[{key: F32(row[key]) for key in labels} for row in value] if isinstance(value, list) else value for value in outputs]


def write(case, folder):
    """Writes one case. Returns what is wrong with it, or ""."""
    name, model, inputs, expected, departs = case
    found, problem = run_runtime(model, inputs)
    if departs is None and found is None:
        return f"{name}: ONNX Runtime does not run it: {problem}"
    if departs is not None and same(found, expected):
        return f"{name}: ONNX Runtime departs no longer: {departs}"
    place = folder / name / "test_data_set_0"
    place.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(model.SerializeToString())
    for stem, values in (("input", inputs), ("output", ordered(found, model) if expected is None else expected)):
        for i, value in enumerate(values):
            (place / f"{stem}_{i}.pb").write_bytes(as_proto(value).SerializeToString())
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("unmoor", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--on", default="reference,cpu")
    options = parser.parse_args()
    cases = Cases()
    for family in (simple_cases, imputer_cases, encoder_cases, map_cases, linear_cases, svm_cases, trees.tree_cases, tokenizer_cases):
        family(cases, np.random.default_rng(zlib.crc32(family.__name__.encode())))
    shutil.rmtree(options.folder, ignore_errors=True)
    chosen = [case for case in cases.all if options.only.lower() in case[0]]
    problems = [problem for case in chosen if (problem := write(case, options.folder))]
    counts = {}
    for name, *_ in chosen:
        counts[name.split("_")[0]] = counts.get(name.split("_")[0], 0) + 1
    few = [] if options.only else [f"{op} has {count} cases, fewer than 10" for op, count in counts.items() if count < 10]
    departing = sum(case[4] is not None for case in chosen)
    print(f"{len(chosen)} cases of {len(counts)} operators; ONNX Runtime {onnxruntime.__version__} departs in {departing}")
    print("\n".join(problems + few))
    ended = [subprocess.run([options.unmoor, "conformance", "--onnx-tests", options.folder, "--on", device], check=False).returncode
             for device in options.on.split(",")]
    sys.exit(1 if problems or few or any(ended) else 0)


if __name__ == "__main__":
    main()
