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
import onnxruntime
from onnx import helper

import ort_ml_features
import ort_ml_scores
import ort_ml_trees
from ort_ml_model import F32, Cases, as_proto


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
    for family in (*ort_ml_features.FAMILIES, *ort_ml_scores.FAMILIES, *ort_ml_trees.FAMILIES):
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
