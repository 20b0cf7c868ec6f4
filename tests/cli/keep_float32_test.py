"""What to keep in float32 in a model of 16 bits: the curve of `align`, and `--keep-float32`, which applies it."""
import os
import sys
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

HALF = TensorProto.FLOAT16


def half_model(path, blocks=3, kind=HALF):
    """Blocks of LayerNormalization, MatMul, Gelu, MatMul and a residual in float16; the logits of the last are 16 by 64."""
    dtype = np.float16 if kind == HALF else np.float32
    draw, model, x = np.random.default_rng(5), models.ModelBuilder(), "x"
    weights = lambda name, *shape: model.constant(name, (draw.standard_normal(shape) / np.sqrt(shape[0])).astype(dtype))
    for i in range(blocks):
        scale, shift = model.constant(f"scale{i}", draw.uniform(0.5, 1.5, 64).astype(dtype)), weights(f"shift{i}", 64)
        normal = model.node("LayerNormalization", f"norm{i}", [x, scale, shift], axis=-1)
        up = model.node("Gelu", f"act{i}", [model.node("MatMul", f"up{i}", [normal, weights(f"w{i}", 64, 128)])])
        x = model.node("Add", f"sum{i}", [x, model.node("MatMul", f"down{i}", [up, weights(f"v{i}", 128, 64)])])
    logits = model.node("MatMul", "logits", [x, weights("head", 64, 64)])
    model.node("Softmax", "probabilities", [logits])
    return model.save(path, {"x": (kind, [16, 64])}, {logits: (kind, [16, 64]), "probabilities_out": (kind, [16, 64])})


class KeepFloat32(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = half_model(self.folder / "half.onnx")
        self.list = self.folder / "keep.txt"

    def curve(self, *extra, status=0):
        return self.run_tool("align", self.model, "--keep-curve", self.list, *extra, status=status)["keep_float32"]

    def test_the_prediction_holds_when_it_is_applied(self):
        for target in ("cpu", "opencl"):
            for part in (0.8, 0.5):
                found = self.curve("--keep-error", part, "--target", target)
                self.assertLessEqual(found["predicted"], part)
                self.assertTrue(all(each["elements"] >= 500 for each in found["outputs"]))
                for each in found["outputs"]:
                    self.assertLess(abs(each["applied"] - each["predicted"]), 0.1, (target, part, found["outputs"]))
                    self.assertGreater(each["sum_over_whole"], 0.8)
                    self.assertLess(each["sum_over_whole"], 1.25)
                    self.assertTrue(1 <= each["effective"] <= each["elements"])

    def test_every_kernel_of_a_16_bit_model_runs_alone(self):
        """The cpu device runs them in float32 between two conversions, which are steps of their own."""
        for extra in ([], ["--no-fuse"]):
            found = self.run_tool("align", self.model, *extra)
            self.assertEqual([each["name"] for each in found["values"] if each["verdict"] not in ("match", "explained")], [])
            self.assertTrue(all(each["single"] for each in found["values"]))

    def test_an_engine_that_keeps_16_bit_values_in_float32_on_the_way_is_no_reason_for_a_finding(self):
        os.environ.setdefault("UNMOOR_PYTHON", sys.executable)
        found = self.run_tool("align", self.model, "--reference", "ort:cpu")
        self.assertEqual([each["name"] for each in found["values"] if each["verdict"] in ("suspicious", "differ")], [])

    def test_the_curve_falls_from_the_largest_share_to_what_stays(self):
        found = self.curve()
        shares = [each["share"] for each in found["curve"]]
        errors = [each["error"] for each in found["curve"]]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertEqual(errors, sorted(errors, reverse=True))
        self.assertAlmostEqual(errors[-1], found["unavoidable"], places=4)
        self.assertGreater(found["unavoidable"], 0.01, "the outputs themselves are of 16 bits")
        self.assertLess(found["chosen"], len(shares))

    def test_what_it_writes_is_what_run_and_align_take(self):
        chosen = self.curve("--keep-error", "0.6")
        applied = self.run_tool("run", self.model, "--keep-float32", self.list)["keep_float32"]
        wanted = {node for each in chosen["curve"][:chosen["chosen"]] for node in each["nodes"]}
        self.assertLessEqual(wanted, set(applied["nodes"]))
        self.assertEqual(applied["left"], [])
        before = self.run_tool("align", self.model)
        after = self.run_tool("align", self.model, "--keep-float32", self.list)
        error = lambda result: result["outputs"][0]["entire"]["rel_l2"]
        self.assertAlmostEqual(error(after) / error(before), chosen["outputs"][0]["applied"], delta=0.05)

    def test_what_moves_values_behind_a_kept_node_is_kept_with_it(self):
        draw, model = np.random.default_rng(2), models.ModelBuilder()
        weight = lambda name: model.constant(name, (draw.standard_normal((32, 32)) / 6).astype(np.float16))
        product = model.node("MatMul", "product", ["x", weight("w")])
        turned = model.node("Transpose", "turned", [model.node("Relu", "rest", [product])], perm=[1, 0])
        model.node("MatMul", "last", [turned, weight("v")])
        self.model = model.save(self.folder / "moves.onnx", {"x": (HALF, [32, 32])}, {"last_out": (HALF, [32, 32])})
        found = self.curve("--no-fuse")
        self.assertEqual(found["curve"][0]["nodes"], ["product", "rest", "turned"])
        self.assertLess(abs(found["applied"] - found["predicted"]), 0.1)

    def test_a_dump_of_another_machine_has_a_curve_too(self):
        dump = self.folder / "dump"
        self.run_tool("run", self.model, "--dump", dump, "--no-fuse")
        found = self.curve("--target", dump)
        self.assertIsNone(found["applied"])
        self.assertGreater(len(found["curve"]), 8)

    def test_what_cannot_be_is_refused_with_the_reason(self):
        wide = half_model(self.folder / "wide.onnx", kind=TensorProto.FLOAT)
        cases = [(["align", wide, "--keep-curve", self.list], 1, "stores no value in float16 or bfloat16"),
                 (["align", self.model, "--keep-float32", self.list, "--target", "ort:cpu"], 2, "is for Unmoor's devices"),
                 (["run", self.model, "--keep-float32", self.list, "--on", "ort:cpu"], 2, "is for Unmoor's devices"),
                 (["align", self.model, "--keep-error", "0.5"], 2, "--keep-curve")]
        self.list.write_text("norm0\n")
        for arguments, status, reason in cases:
            result = unmoor(*arguments)
            self.assertEqual(result.status, status, result)
            self.assertIn(reason, result.err + result.out)

    def test_a_list_is_checked_against_the_model(self):
        for text, reason in (("norm0\nnobody\n", "line 2"), ("# norm0\n\n", "names no node"), ('"norm0', "no JSON string")):
            self.list.write_text(text)
            result = unmoor("run", self.model, "--keep-float32", self.list)
            self.assertEqual(result.status, 2, result)
            self.assertIn(reason, result.err)

    def test_a_node_that_cannot_be_kept_is_named_with_the_reason(self):
        model = models.ModelBuilder()
        model.node("Cast", "wide", ["x"], to=TensorProto.FLOAT)
        path = model.save(self.folder / "cast.onnx", {"x": (HALF, [4])}, {"wide_out": (TensorProto.FLOAT, [4])})
        self.list.write_text('"wide"\n')
        found = self.run_tool("run", path, "--keep-float32", self.list)["keep_float32"]
        self.assertEqual(found, {"nodes": [], "left": [{"node": "wide", "reason": "its results are not of 16 bits"}]})


if __name__ == "__main__":
    unittest.main()
