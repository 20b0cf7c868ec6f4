"""`conformance --onnx-tests`: ONNX's own layout, right, wrong and broken."""
import os
import shutil
import sys
import unittest
import unittest.mock
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from program import ProgramTest


class OnnxTests(ProgramTest):
    def write_case(self, name, op, inputs, outputs, **attributes):
        """A case of one node; outputs are what the files claim."""
        folder = self.folder / "tests" / name
        sets = folder / "test_data_set_0"
        sets.mkdir(parents=True)
        typed = [[helper.make_tensor_value_info(f"{stem}{i}", helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                  for i, value in enumerate(values)] for stem, values in (("i", inputs), ("o", outputs))]
        node = helper.make_node(op, [each.name for each in typed[0]], [each.name for each in typed[1]], **attributes)
        onnx.save(helper.make_model(helper.make_graph([node], "g", *typed)), str(folder / "model.onnx"))
        for stem, values in (("input", inputs), ("output", outputs)):
            for i, value in enumerate(values):
                (sets / f"{stem}_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
        return folder

    def run_tests(self, status, *more):
        return self.run_tool("conformance", "--onnx-tests", self.folder / "tests", *more, status=status)

    def test_a_written_case_keeps_its_node_where_all_inputs_are_constants(self):
        """It was folded: whoever answered such a case repeated our own value."""
        self.run_tool("conformance", "--op", "Shape", "--write", self.folder / "cases")
        models = [onnx.load(str(each)) for each in sorted((self.folder / "cases").glob("*/model.onnx"))]
        self.assertTrue(models)
        self.assertEqual({node.op_type for model in models for node in model.graph.node}, {"Shape"})

    def test_right_and_wrong_values_are_told_apart(self):
        x = np.array([-1, 0, 2], np.float32)
        self.write_case("right", "Relu", [x], [np.maximum(x, 0)])
        wrong = np.maximum(x, 0)
        wrong[2] *= 1.002
        self.write_case("wrong_value", "Relu", [x], [wrong])
        self.write_case("wrong_dtype", "Cast", [x], [x.astype(np.float64)], to=1)
        self.write_case("wrong_shape", "Identity", [x], [x.reshape(3, 1)])
        self.write_case("unknown", "NobodyKnowsThis", [x], [x])
        for device in ("cpu", "reference"):
            found = self.run_tests(1, "--on", device)
            verdicts = {Path(case["case"]).name: case["verdict"] for case in found["cases"]}
            self.assertEqual(verdicts, {"right": "passed", "wrong_value": "failed", "wrong_dtype": "failed", "wrong_shape": "failed",
                                        "unknown": "refused"})
        self.assertEqual(len(self.run_tests(0, "--case", "right")["cases"]), 1)
        self.run_tests(2, "--case", "no such case")

    def test_broken_folders_fail_by_name_and_nothing_else_suffers(self):
        x = np.array([1], np.float32)
        (self.write_case("a_no_input", "Relu", [x], [x]) / "test_data_set_0" / "input_0.pb").unlink()
        (self.write_case("b_garbled", "Relu", [x], [x]) / "test_data_set_0" / "output_0.pb").write_bytes(b"\xff" * 20)
        (self.write_case("c_model", "Relu", [x], [x]) / "model.onnx").write_bytes(b"no model")
        self.write_case("d_right", "Relu", [x], [x])
        found = self.run_tests(1)
        self.assertEqual([case["verdict"] for case in found["cases"]], ["failed"] * 3 + ["passed"])
        self.assertIn("has 0 inputs", found["cases"][0]["detail"])
        self.run_tool("conformance", "--onnx-tests", self.folder / "none", status=2)

    def test_more_cases_than_pipes_hold_do_not_wait_for_each_other(self):
        """Names and answers of 400 cases, each more than a pipe takes."""
        x = np.array([1], np.float32)
        first = self.write_case("n" * 200 + "0", "NobodyKnowsThis" + "x" * 200, [x], [x])
        for i in range(1, 400):
            shutil.copytree(first, first.with_name("n" * 200 + str(i)))
        os.environ["UNMOOR_PATIENCE"] = "20"
        self.addCleanup(os.environ.pop, "UNMOOR_PATIENCE")
        found = self.run_tests(0)
        self.assertEqual((len(found["cases"]), found["refused"]), (400, 400))

    def test_kernels_of_many_cases_are_compiled_as_one_program(self):
        x = np.array([0.25, 1, 4], np.float32)
        for name, result in {"Abs": x, "Neg": -x, "Relu": x, "Sqrt": np.sqrt(x), "Exp": np.exp(x), "Tanh": np.tanh(x)}.items():
            self.write_case(name, name, [x], [result])
        self.write_case("Unknown", "NobodyKnowsThis", [x], [x])
        cache = self.folder / "cache"
        with unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=str(cache)):
            found = self.run_tests(0, "--on", "opencl")
        self.assertEqual((found["passed"], found["refused"]), (6, 1))
        files = list((cache / "unmoor" / "gpu").iterdir())
        self.assertEqual(len(files), 7, "one of each kernel, and one of the program that they share")

    def test_random_operators_are_judged_by_their_rate_and_named(self):
        share = np.full(1000, 0.3, np.float32)
        draw = (np.arange(1000) < 300).astype(np.float32)
        self.write_case("rate", "Bernoulli", [share], [draw])
        self.write_case("wrong_rate", "Bernoulli", [share], [(np.arange(1000) < 600).astype(np.float32)])
        self.write_case("wrong_values", "Bernoulli", [share], [draw * 2])
        cases = {Path(case["case"]).name: case for case in self.run_tests(1)["cases"]}
        self.assertIn("random", cases["rate"]["detail"])
        self.assertEqual([cases[name]["verdict"] for name in ("rate", "wrong_rate", "wrong_values")], ["passed", "failed", "failed"])


if __name__ == "__main__":
    unittest.main()
