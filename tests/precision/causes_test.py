"""The search for causes names what ONNX Runtime and NumPy planted, and nothing where nothing is; a reproduction gives the same elsewhere."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "bench")]
import cases
import precision_causes as bench
import sown

PROGRAM = os.environ["NAME_CAUSES"]
UNMOOR = os.environ.get("UNMOOR")
# Stable: they are in the JSON of `align`.
IDS = """gelu-tanh gelu-quick epsilon epsilon-outside variance-naive variance-unbiased mean-kept softmax-unstable softmax-axis softmax-flattened
missing-bias missing-scale missing-mask mask-finite nan-as-number resize-coordinates resize-nearest resize-antialias count-include-pad ceil-mode
same-side window-shifted transposed-weights flipped-weights gate-order reset-after rotary-interleaved rotary-sign rotary-offset zero-point-order
saturation scale-float16 floor-division float16-infinity denormals-flushed half-away truncated""".split()
IDS += [f"{kind}-{grid}" for kind in ("inputs", "weights", "result", "sums", "steps") for grid in ("float16", "bfloat16", "tf32")]


class Causes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def ask(self, plants, name):
        return bench.answers(PROGRAM, plants, self.folder / name)

    def test_every_id_has_plants_and_each_kind_is_named(self):
        self.assertEqual(sorted(IDS), sorted(sown.PLANTS))
        effective = {}
        for cause, generators in sown.PLANTS.items():
            plants = [make(np.random.default_rng([11, k, *cause.encode()])) for k, make in enumerate(generators)]
            for plant, answer in self.ask(plants, cause):
                with self.subTest(cause=cause, op=plant.case.op):
                    self.assertNotIn("error", answer)
                    self.assertFalse(answer["untried"])
                    if bench.has_effect(answer):
                        effective[cause] = effective.get(cause, 0) + 1
                        self.assertTrue(bench.is_named(plant, answer), answer)
        self.assertEqual(sorted(set(IDS) - set(effective)), [], "no plant of these had an effect")

    def test_nothing_fires_on_nodes_as_onnx_runtime_computes_them(self):
        for plant, answer in self.ask(sown.clean_cases(7, 2), "clean"):
            with self.subTest(op=plant.case.op):
                self.assertNotIn("error", answer)
                self.assertIsNone(answer["cause"], answer)

    def test_two_causes_at_once_are_both_named(self):
        results = self.ask(sown.paired_plants(5, 1), "pairs")
        named = [plant for plant, answer in results if bench.is_named(plant, answer)]
        self.assertGreaterEqual(len(named), 0.85 * len(results), [(plant.ids, answer["cause"], answer.get("with")) for plant, answer in results])

    def test_what_no_hypothesis_predicts_stays_unexplained(self):
        rng = np.random.default_rng(3)
        case = cases.matmul(rng)
        target = case.run()
        target *= 1.3
        (_, answer), = self.ask([bench.sown.Plant((), case, target)], "unexplained")
        self.assertIsNone(answer["cause"], answer)


class Reproductions(unittest.TestCase):
    """Written by the program, replayed by ONNX Runtime and by `unmoor conformance`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, case, *more):
        case.write(self.folder / "case", case.run())
        out = self.folder / "reproduction"
        done = subprocess.run([PROGRAM, "--reproduce", self.folder / "case", out, *more], capture_output=True, text=True, check=True)
        return out, json.loads(done.stdout)

    def replay(self, out):
        done = subprocess.run([sys.executable, "replay.py"], cwd=out, capture_output=True, text=True, check=True)
        self.assertIn("largest difference", done.stdout)
        self.assertLess(float(done.stdout.split()[-1]), 1e-4, done.stdout)
        if UNMOOR:
            subprocess.run([UNMOOR, "conformance", "--onnx-tests", out, "--on", "reference"], check=True, capture_output=True)
            self.assertIn("unmoor conformance --onnx-tests .", (out / "README.md").read_text())

    def test_a_node_of_a_file_keeps_its_opset_and_its_form(self):
        case = cases.softmax(np.random.default_rng(1))
        case.opset = 11  # There Softmax flattens, and its axis is 1 unless given.
        case.attributes["axis"] = 2
        out, answer = self.write(case, "file")
        self.assertEqual(answer, {"as_in_file": True, "why_not": ""})
        model = onnx.load(str(out / "model.onnx"))
        self.assertEqual([(each.domain, each.version) for each in model.opset_import], [("", 11)])
        self.replay(out)

    def test_weights_stay_in_the_model_and_inputs_out_of_it(self):
        for number, more in enumerate([("file",), ()]):
            with self.subTest(more=more):
                folder = self.folder
                self.folder = folder / str(number)
                self.folder.mkdir()
                out, answer = self.write(cases.conv(np.random.default_rng(2)), *more)
                self.assertEqual(answer["as_in_file"], bool(more))
                model = onnx.load(str(out / "model.onnx"))
                self.assertEqual((len(model.graph.node), len(model.graph.initializer), len(model.graph.input)), (1, 2, 1))
                self.replay(out)
                self.folder = folder


if __name__ == "__main__":
    unittest.main()
