"""Operators where runtimes are known to go wrong: exact inputs and right answers from hard_cases.json, run as ONNX files of their opset.

    python hard_cases_test.py --on DEVICE
"""
import argparse
import json
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper, save

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from program import unmoor

CASES = json.loads((HERE / "hard_cases.json").read_text())
PART_OF_ATTRIBUTES = ("sizes", "scales")  # Of Resize; they are inputs.
DEVICE = "reference"


def array(value):
    return np.array([float(each) if isinstance(each, str) else each for each in value["data"]], dtype=value["dtype"]).reshape(value["shape"])


def model_of(case, inputs):
    """The case as a model of one node, its constant inputs included."""
    attributes = {key: value for key, value in case["attrs"].items() if key not in PART_OF_ATTRIBUTES}
    names, constants = list(inputs), []
    if case["op"] == "Resize":
        dtype = {"sizes": np.int64, "scales": np.float32}
        (key,) = [each for each in PART_OF_ATTRIBUTES if each in case["attrs"]]
        names += ["", "", key] if key == "sizes" else ["", key]
        constants.append(numpy_helper.from_array(np.array(case["attrs"][key], dtype[key]), key))
    node = helper.make_node(case["op"], names, list(case["outputs"]), name=case["id"], **attributes)

    def info(name, value):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(value["dtype"])), value["shape"])

    graph = helper.make_graph([node], "case", [info(*each) for each in case["inputs"].items()],
                              [info(*each) for each in case["outputs"].items()], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case["opset"])], ir_version=8)


def difference(expected, found, compare):
    """What is wrong, or nothing. `compare` is "exact", with "+signbit" or "+nan", or a tolerance."""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return f"{found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if compare.startswith("exact"):
        same = np.array_equal(expected, found, equal_nan=expected.dtype.kind == "f")
    else:
        same = np.allclose(found.astype(np.float64), expected.astype(np.float64), rtol=float(compare), atol=float(compare), equal_nan=True)
    if "+signbit" in compare:
        same = same and np.array_equal(np.signbit(expected), np.signbit(found))
    return "" if same else f"{found.tolist()} instead of {expected.tolist()}"


class HardCases(unittest.TestCase):
    def run_case(self, case, folder):
        inputs = {name: array(value) for name, value in case["inputs"].items()}
        save(model_of(case, inputs), str(folder / "case.onnx"))
        np.savez(folder / "in.npz", **inputs)
        result = unmoor("run", folder / "case.onnx", "--on", DEVICE, "-i", folder / "in.npz", "-o", folder / "out.npz")
        self.assertEqual(result.status, 0, result)
        with np.load(folder / "out.npz") as found:
            for name, value in case["outputs"].items():
                self.assertEqual(difference(array(value), found[name], case["compare"]), "", case["why"])

    def test_every_case(self):
        self.assertGreater(len(CASES), 40)
        for case in CASES:
            with self.subTest(case["id"]), tempfile.TemporaryDirectory() as folder:
                self.run_case(case, Path(folder))

    def test_a_wrong_answer_is_seen(self):
        one, zero = np.float32([1, 0]), np.float32([1, -0.0])
        self.assertEqual(difference(one, one, "exact+signbit"), "")
        self.assertNotEqual(difference(one, zero, "exact+signbit"), "")
        self.assertNotEqual(difference(one, one.astype(np.float64), "exact"), "")
        self.assertNotEqual(difference(one, one + np.float32(1e-5), "1e-6"), "")
        self.assertNotEqual(difference(np.float32([np.nan]), np.float32([1]), "exact+nan"), "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--on", default=DEVICE, help="the device to run on")
    given, rest = parser.parse_known_args()
    DEVICE = given.on
    unittest.main(argv=[sys.argv[0], *rest])
