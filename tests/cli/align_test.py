"""`align` names the node where a planted defect begins. The reference is a dump of the model before it was changed."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest

RANGE = ["--range", "-2,3"]
TARGETS = ("cpu", "opencl")


class Defects(ProgramTest):
    def dump(self, *extra, **model):
        path = models.block(self.folder / "original.onnx", **model)
        found = self.run_tool("run", path, "--on", "reference", "--dump", self.folder / "dump", *RANGE, *extra)
        self.assertEqual(found["plan"]["fallback_nodes"], 0)
        return self.folder / "dump"

    def changed(self, dump, target, *extra, status=1, **model):
        path = models.block(self.folder / "changed.onnx", **model)
        return self.run_tool("align", path, "--reference", dump, "--target", target, *extra, status=status)

    def test_unchanged_model_matches(self):
        for gelu in ("none", "erf-chain"):
            dump = self.dump(gelu=gelu)
            for target in TARGETS:
                found = self.changed(dump, target, gelu=gelu, status=0)
                self.assertEqual((found["verdict"], found["first_divergent"], found["first_nonfinite"]), ("match", None, None))
                self.assertGreaterEqual(sum(each["verdict"] == "match" for each in found["values"]), 8)

    def test_unchanged_model_matches_between_devices(self):
        path = models.block(self.folder / "m.onnx", gelu="tanh")
        for target in TARGETS:
            found = self.run_tool("align", path, "--target", target, *RANGE)
            self.assertEqual((found["reference"], found["verdict"]), ("reference", "match"))
            self.assertTrue(all(each["single"] for each in found["values"]), "every kernel is run alone")

    def test_every_kernel_of_an_image_model_is_run_alone(self):
        """Images lie with channels last on some devices; a reference knows them as the file has them."""
        for target in TARGETS:
            found = self.run_tool("align", models.images(self.folder / "images.onnx"), "--target", target)
            self.assertEqual(found["verdict"], "match")
            self.assertTrue(all(each["single"] for each in found["values"]), [each["name"] for each in found["values"] if not each["single"]])
            self.assertGreaterEqual(len(found["values"]), 6)

    def test_gelu_in_tanh_form_is_the_first_divergent_node(self):
        dump = self.dump()
        for target in TARGETS:
            found = self.changed(dump, target, gelu="tanh")
            self.assertEqual((found["verdict"], found["first_divergent"]), ("differ", "block1.act"))
            self.assertIsNone(found["first_nonfinite"])

    def test_gelu_chain_in_tanh_form_is_the_first_divergent_node(self):
        dump = self.dump(gelu="erf-chain")
        for target in TARGETS:
            self.assertEqual(self.changed(dump, target, gelu="tanh-chain")["first_divergent"], "block1.act")

    def test_another_epsilon_is_the_first_divergent_node(self):
        dump = self.dump()
        for target in TARGETS:
            self.assertEqual(self.changed(dump, target, epsilon=1e-3)["first_divergent"], "block1.norm")

    def test_a_nan_weight_is_the_origin_of_nan(self):
        dump = self.dump("--no-fuse")
        for target in TARGETS:
            found = self.changed(dump, target, defect="nan-weight")
            self.assertEqual((found["first_nonfinite"], found["first_divergent"]), ("block1.up", "block1.up"))
            self.assertEqual(found["nonfinite_origin"], "its inputs are finite")

    def test_a_nan_that_both_sides_make_is_named_too(self):
        path = models.block(self.folder / "m.onnx", defect="nan-weight")
        for target in TARGETS:
            found = self.run_tool("align", path, "--target", target, *RANGE)
            self.assertEqual((found["verdict"], found["first_nonfinite"]), ("match", "block1.up"))

    def test_the_logarithm_of_a_negative_number_is_the_origin_of_nan(self):
        dump = self.dump()
        for target in TARGETS:
            found = self.changed(dump, target, defect="log-of-negative")
            self.assertEqual((found["first_nonfinite"], found["first_divergent"]), ("log", "positive"))

    def test_given_tolerances_replace_the_table(self):
        dump = self.dump()
        loose = self.changed(dump, "cpu", "--atol", "0.01", "--rtol", "0.01", gelu="tanh", status=0)
        self.assertEqual((loose["verdict"], loose["atol"], loose["atol_scaled_by_rms"]), ("match", 0.01, False))
        strict = self.changed(dump, "cpu", "--atol", "0", "--rtol", "1e-12", status=1)
        self.assertEqual(strict["verdict"], "differ")

    def test_only_the_nodes_asked_for_are_run_alone(self):
        dump = self.dump()
        found = self.changed(dump, "cpu", "--node", "block0.norm", status=0)
        self.assertEqual([each["node"] for each in found["values"] if each["single"]], ["block0.norm"])

    def test_dumps_of_both_sides_need_no_device(self):
        dump = self.dump()
        path = models.block(self.folder / "changed.onnx", gelu="tanh")
        self.run_tool("run", path, "--dump", self.folder / "other", *RANGE)
        found = self.run_tool("align", path, "--reference", dump, "--target", self.folder / "other", status=1)
        self.assertEqual(found["verdict"], "differ")


if __name__ == "__main__":
    unittest.main()
