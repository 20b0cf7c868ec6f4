"""onnx_sets.py finds planted defects, and onnx_released_tests.py corrects only what is wrong."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import onnx_released_tests
import onnx_sets


def result(*cases):
    return {"cases": [{"case": f"folder/{name}", "verdict": verdict, "detail": detail} for name, verdict, detail in cases]}


class Complaints(unittest.TestCase):
    def test_all_passed_is_fine(self):
        self.assertEqual(onnx_sets.complaints(result(("a", "passed", "")), 1, [], False), [])

    def test_a_missing_case_is_found(self):
        self.assertEqual(len(onnx_sets.complaints(result(("a", "passed", "")), 2, [], False)), 1)

    def test_a_failure_is_found_wherever_refusals_are_fine(self):
        self.assertEqual(len(onnx_sets.complaints(result(("a", "failed", "off")), 1, [], True)), 1)

    def test_only_the_named_cases_may_be_refused(self):
        found = result(("a", "refused", "no-kernel"), ("b", "refused", "no-kernel"))
        self.assertIn("b: refused", onnx_sets.complaints(found, 2, ["a"], False)[0])
        self.assertEqual(onnx_sets.complaints(found, 2, ["a"], True), [])

    def test_a_refusal_needs_a_reason_and_must_happen_where_it_is_named(self):
        self.assertIn("without a reason", onnx_sets.complaints(result(("a", "refused", " ")), 1, [], True)[0])
        self.assertIn("was to be refused", onnx_sets.complaints(result(("a", "passed", "")), 1, ["a"], False)[0])


class Reason(unittest.TestCase):
    def test_the_device_s_own_line_is_shown(self):
        text = "opencl:0 refuses 1 of 2 nodes:\n  ArgMax 'n'\n    opencl:0: no-kernel: no kernel for ArgMax\n    cpu.line: attribute: no"
        self.assertEqual(onnx_sets.reason_in(text, "opencl:0"), "opencl:0: no-kernel: no kernel for ArgMax")
        self.assertEqual(onnx_sets.reason_in("nobody:\n  Gradient", "cpu"), "Gradient")


class Released(unittest.TestCase):
    def write(self, folder, declared, stored):
        """A case of one input, declared as one dtype and stored as another."""
        (folder / "test_data_set_0").mkdir(parents=True)
        value = helper.make_tensor_value_info("x", declared, [2])
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [value], [helper.make_tensor_value_info("y", declared, [2])])
        onnx.save(helper.make_model(graph), str(folder / "model.onnx"))
        for name in ("input_0.pb", "output_0.pb"):
            (folder / "test_data_set_0" / name).write_bytes(numpy_helper.from_array(stored).SerializeToString())

    def run_tool(self, source, target):
        return subprocess.run([sys.executable, ROOT / "tools" / "onnx_released_tests.py", target, "--from", source], capture_output=True, text=True)

    def test_bits_of_bfloat16_get_their_dtype_and_others_stay(self):
        with tempfile.TemporaryDirectory() as name:
            source, target = pathlib.Path(name) / "source", pathlib.Path(name) / "target"
            self.write(source / "node" / "test_cast_FLOAT_to_BFLOAT16", TensorProto.BFLOAT16, np.array([16117, 0], np.uint16))
            self.write(source / "node" / "test_other", TensorProto.UINT16, np.array([16117, 0], np.uint16))
            for _ in range(2):  # What it wrote itself it may replace.
                self.assertIn("2 cases", self.run_tool(source, target).stdout)
            dtypes = {case: TensorProto.FromString((target / "node" / case / "test_data_set_0" / "input_0.pb").read_bytes()).data_type
                      for case in ("test_cast_FLOAT_to_BFLOAT16", "test_other")}
            self.assertEqual(dtypes, {"test_cast_FLOAT_to_BFLOAT16": TensorProto.BFLOAT16, "test_other": TensorProto.UINT16})
            self.assertIn("something else", self.run_tool(source, source).stderr)

    def test_a_release_without_the_defect_is_an_error(self):
        with tempfile.TemporaryDirectory() as name:
            source = pathlib.Path(name) / "source"
            self.write(source / "test_cast_FLOAT_to_BFLOAT16", TensorProto.UINT16, np.array([1, 2], np.uint16))
            self.assertIn("another release", self.run_tool(source, pathlib.Path(name) / "target").stderr)

    def test_every_correction_says_why(self):
        for corrections in onnx_released_tests.CORRECTIONS.values():
            for correction in corrections:
                self.assertGreater(len(correction.__doc__), 40)


if __name__ == "__main__":
    unittest.main()
