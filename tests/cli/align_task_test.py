"""`align --data`: what a task is about, over a data set, on both sides. The target is a Python file that changes what it is given."""
import os
import sys
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
from onnx import TensorProto

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

os.environ.setdefault("UNMOOR_PYTHON", sys.executable)  # One that has an engine.

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
ENGINE = """
import numpy as np

def load(model):
    pass

def run(inputs):
    outputs = {name + "_out": np.array(array) for name, array in inputs.items()}
    change(outputs)
    return outputs
"""


class Task(ProgramTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        self.data.mkdir()
        self.draw = np.random.default_rng(4)

    def model(self, **inputs):
        """Gives back its inputs, each under its name with _out: what a sample holds is what the reference answers."""
        model = models.ModelBuilder()
        for name in inputs:
            model.node("Identity", name, [name])
        path = self.folder / "same.onnx"
        return model.save(path, inputs, {f"{name}_out": kind for name, kind in inputs.items()})

    def engine(self, change):
        path = self.folder / "engine.py"
        path.write_text(ENGINE + "\ndef change(outputs):\n" + "".join(f"    {line}\n" for line in change.splitlines()))
        return f"py:{path}"

    def sample(self, number, **arrays):
        np.savez(self.data / f"{number:03}.npz", **arrays)

    def run_task(self, model, task, change, *extra, status=0, data=None):
        found = self.run_tool("align", model, "--reference", "cpu", "--target", self.engine(change), "--data", data or self.data, "--task", task, *extra,
                              status=status)["task"]
        self.assertEqual(found["passed"], status == 0)
        found["by_name"] = {each["name"]: each for each in found["numbers"]}
        return found


class Classification(Task):
    def setUp(self):
        super().setUp()
        self.same = self.model(x=(FLOAT, ["n", 10]))
        for i in range(40):
            scores = self.draw.normal(0, 1, (5, 10)).astype(np.float32)
            scores[:, 3] += 3
            self.sample(i, x=scores, label=np.full(5, 3))

    def test_what_agrees_passes(self):
        found = self.run_task(self.same, "classification", "outputs['x_out'] += 1e-6")
        self.assertEqual((found["samples"], found["answers"], found["flips"]), (40, 200, 0))
        self.assertEqual(found["by_name"]["top-1 agreement"]["between"], 1)
        accuracy = found["by_name"]["top-1 accuracy"]
        self.assertEqual(accuracy["reference"], accuracy["target"])
        self.assertGreater(accuracy["reference"], 0.8)

    def test_a_label_that_flips_is_near_or_clear(self):
        near = self.run_task(self.same, "classification", "outputs['x_out'] += np.random.default_rng(1).normal(0, 0.05, outputs['x_out'].shape).astype(np.float32)", status=1)
        self.assertGreater(near["flips"], 0)
        self.assertEqual(near["flips_near"], near["flips"], "small errors turn what is near only")
        self.assertTrue(all(each["near"] for each in near["flipped"]))
        clear = self.run_task(self.same, "classification", "outputs['x_out'] = np.roll(outputs['x_out'], 1, axis=1)", status=1)
        self.assertEqual(clear["by_name"]["top-1 agreement"]["between"], 0)
        self.assertLess(clear["by_name"]["top-1 accuracy"]["difference"], -0.8)
        self.assertLess(clear["flips_near"], 0.2 * clear["flips"])

    def test_one_flip_in_two_hundred_fails_the_gate(self):
        found = self.run_task(self.same, "classification", "if not hasattr(np, 'seen'): np.seen = 1; outputs['x_out'][0] *= -1", status=1)
        self.assertEqual(found["flips"], 1)
        self.assertAlmostEqual(found["by_name"]["top-1 agreement"]["between"], 0.995)

    def test_a_lone_score_is_held_to_its_threshold(self):
        lone = self.model(p=(FLOAT, ["n", 1]))
        data = self.folder / "lone"
        data.mkdir()
        np.savez(data / "a.npz", p=np.array([[0.1], [0.49], [0.8], [0.99], [0.05]], np.float32))
        found = self.run_task(lone, "classification", "outputs['p_out'] += 0.02", status=1, data=data)
        self.assertEqual([(each["row"], each["from"], each["to"], each["near"]) for each in found["flipped"]], [(1, 0, 1, True)], found["flipped"])

    def test_the_worst_samples_are_told_with_what_is_odd(self):
        self.sample(7, x=1e4 * self.draw.normal(0, 1, (5, 10)).astype(np.float32), label=np.full(5, 3))
        self.sample(9, x=self.draw.normal(0, 1, (400, 10)).astype(np.float32), label=np.full(400, 3))
        self.sample(11, x=np.zeros((5, 10), np.float32), label=np.full(5, 3))
        found = self.run_task(self.same, "classification", "x = outputs['x_out']\nbad = len(x) > 5 or not x.any() or abs(x).max() > 100\nif bad: x += np.roll(x, 1) + 1\n"
                              "if bad and not x[0, 0] == 1: x[0, 0] = np.nan", status=1)
        odd = {each["sample"]: each["odd"] for each in found["worst"]}
        self.assertTrue(any("largest number" in each for each in odd["007.npz"]), odd)
        self.assertTrue(any("length" in each for each in odd["009.npz"]), odd)
        self.assertIn("1 NaN in the target's outputs", odd["009.npz"])
        self.assertIn("nothing but zeros", odd["011.npz"])

    def test_samples_come_from_a_script_too(self):
        script = self.folder / "set.py"
        script.write_text("import numpy as np\ndef samples():\n    for i in range(7):\n        yield {'x': np.eye(10)[i:i + 1], 'label': np.array([i])}\n")
        found = self.run_task(self.same, "classification", "pass", data=script)
        self.assertEqual((found["samples"], found["by_name"]["top-1 accuracy"]["target"]), (7, 1))

    def test_what_a_script_does_wrong_is_told(self):
        script = self.folder / "set.py"
        for text, status, reason in (("samples = 3", 2, "samples"), ("def samples():\n    yield 3", 2, "no dict"), ("def samples():\n    yield {'y': 1}", 2, "no array 'x'"),
                                     ("def samples():\n    raise ValueError('gone')", 3, "gone"), ("def samples():\n    return iter(())", 2, "no samples")):
            script.write_text(text)
            result = unmoor("align", self.same, "--data", script, "--task", "classification")
            self.assertEqual(result.status, status, result)
            self.assertIn(reason, result.err)

    def test_wrong_samples_and_flags_are_told(self):
        np.savez(self.data / "000.npz", y=np.zeros(3, np.float32))
        result = unmoor("align", self.same, "--data", self.data, "--task", "classification")
        self.assertEqual(result.status, 2, result)
        self.assertIn("'000.npz' has no array 'x'", result.err)
        for flags in (["--data", self.data], ["--task", "classification"], ["--data", self.data, "--task", "x"], ["--data", self.data, "--task", "regression", "--atol", "1"],
                      ["--data", self.folder / "no", "--task", "regression"]):
            self.assertEqual(unmoor("align", self.same, *flags).status, 2, flags)

    def test_a_task_that_the_outputs_do_not_fit_says_what_it_needs(self):
        for task in ("detection", "segmentation", "generation"):
            result = unmoor("align", self.same, "--reference", "cpu", "--data", self.data, "--task", task)
            self.assertEqual(result.status, 2, result)
            self.assertIn("'x_out' float32[5,10]", result.err)

    def test_a_label_that_is_no_class_is_told(self):
        self.sample(40, x=np.eye(10, dtype=np.float32)[:1], label=np.array([10]))
        result = unmoor("align", self.same, "--reference", "cpu", "--target", "cpu", "--data", self.data, "--task", "classification")
        self.assertEqual(result.status, 2, result)
        self.assertIn("the label 10 is none of the 10 classes", result.err)

    def test_scores_without_a_margin_are_no_reason_to_stop(self):
        self.sample(40, x=np.full((2, 10), np.nan, np.float32), label=np.zeros(2, np.int64))
        self.sample(41, x=np.full((2, 10), np.inf, np.float32), label=np.zeros(2, np.int64))
        found = self.run_task(self.same, "classification", "outputs['x_out'][:, 7] = 99", status=1)
        self.assertEqual(found["samples"], 42)
        self.assertTrue(all(each["margin"] is not None for each in found["flipped"]))

    def test_it_fits_a_terminal_and_a_file_for_integration(self):
        result = unmoor("align", self.same, "--reference", "cpu", "--target", self.engine("outputs['x_out'] *= -1"), "--data", self.data, "--task", "classification",
                        "--junit", self.folder / "out.xml")
        self.assertEqual(result.status, 1)
        self.assertTrue(all(len(line) <= 80 for line in result.out.splitlines()), result)
        failed = [each.get("name") for each in xml.parse(self.folder / "out.xml").iter("testcase") if each.find("failure") is not None]
        self.assertEqual(failed, ["top-1 agreement"])


class OtherTasks(Task):
    def test_detection(self):
        same = self.model(boxes=(FLOAT, ["n", 4]), scores=(FLOAT, ["n"]), classes=(INT64, ["n"]))
        for i in range(6):
            corners = self.draw.uniform(0, 50, (8, 2))
            boxes = np.concatenate([corners, corners + self.draw.uniform(20, 40, (8, 2))], axis=1).astype(np.float32)
            classes = self.draw.integers(0, 3, 8)
            self.sample(i, boxes=boxes, scores=np.linspace(0.95, 0.55, 8, dtype=np.float32), classes=classes)
        good = self.run_task(same, "detection", "outputs['boxes_out'] += 1e-4")
        self.assertEqual(good["by_name"]["boxes that match"]["between"], 1)
        self.assertAlmostEqual(good["by_name"]["mAP"]["reference"], 1)
        moved = self.run_task(same, "detection", "outputs['boxes_out'] += np.float32(4)", status=1)
        self.assertLess(moved["by_name"]["mAP"]["difference"], -0.2)
        self.assertLess(moved["by_name"]["IoU of those that match"]["between"], 0.9)
        dropped = self.run_task(same, "detection", "outputs['scores_out'] -= 0.1", status=0)
        self.assertGreater(dropped["flips"], 0, "those that fell below the score that counts")

    def test_boxes_of_two_classes_at_one_place_are_matched_by_class_and_each_once(self):
        same = self.model(boxes=(FLOAT, ["n", 4]), scores=(FLOAT, ["n"]), classes=(INT64, ["n"]))
        self.sample(0, boxes=np.array([[0, 0, 10, 10]] * 2 + [[0, 0, 10, 9]], np.float32), scores=np.array([0.9, 0.8, 0.7], np.float32), classes=np.array([2, 5, 5]))
        kept = self.run_task(same, "detection", "outputs.update({name: array[::-1].copy() for name, array in outputs.items()})")
        self.assertEqual((kept["flips"], kept["by_name"]["boxes that match"]["between"]), (0, 1))
        lost = self.run_task(same, "detection", "outputs.update({name: array[:2] for name, array in outputs.items()})", status=1)
        self.assertAlmostEqual(lost["by_name"]["boxes that match"]["between"], 2 / 3, places=4)

    def test_mean_average_precision_is_that_of_coco(self):
        """Two classes; one right box, one too many above it: precision 1/2 at every recall for class 0, 1 for class 1."""
        same = self.model(boxes=(FLOAT, ["n", 4]), scores=(FLOAT, ["n"]), classes=(INT64, ["n"]))
        boxes = np.array([[50, 50, 60, 60], [0, 0, 10, 10], [20, 20, 30, 30]], np.float32)
        np.savez(self.data / "a.npz", boxes=boxes, scores=np.array([0.9, 0.8, 0.7], np.float32), classes=np.array([0, 0, 1]), labels=np.array([0, 1]))
        result = unmoor("align", same, "--reference", "cpu", "--target", "cpu", "--data", self.data, "--task", "detection")
        self.assertEqual(result.status, 2, "an array called as an input is the input, not a label")
        same = self.model(b=(FLOAT, ["n", 4]), scores=(FLOAT, ["n"]), classes=(INT64, ["n"]))
        np.savez(self.data / "a.npz", b=boxes, scores=np.array([0.9, 0.8, 0.7], np.float32), classes=np.array([0, 0, 1]), labels=np.array([0, 1]), boxes=boxes[1:])
        found = self.run_task(same, "detection", "pass")
        self.assertAlmostEqual(found["by_name"]["mAP"]["reference"], 0.75)

    def test_segmentation(self):
        same = self.model(x=(FLOAT, [1, 3, 8, 8]))
        for i in range(4):
            scores = self.draw.normal(0, 1, (1, 3, 8, 8)).astype(np.float32)
            label = scores.argmax(1)
            label[0, 0] = 255
            self.sample(i, x=scores, label=label)
        good = self.run_task(same, "segmentation", "outputs['x_out'] += 1e-6")
        self.assertEqual(good["by_name"]["mIoU"]["reference"], 1)
        bad = self.run_task(same, "segmentation", "outputs['x_out'][:, 0, 1] = 9", status=1)
        self.assertLess(bad["by_name"]["mIoU"]["difference"], -0.05)
        self.assertAlmostEqual(bad["by_name"]["pixel agreement"]["between"], 1 - bad["flips"] / 256, places=4)

    def test_regression(self):
        same = self.model(x=(FLOAT, ["n", 2]))
        for i in range(3):
            x = self.draw.normal(0, 1, (4, 2)).astype(np.float32)
            self.sample(i, x=x, y=x + 0.5)
        found = self.run_task(same, "regression", "outputs['x_out'][0, 0] += 0.25")
        self.assertAlmostEqual(found["by_name"]["largest error"]["between"], 0.25)
        self.assertAlmostEqual(found["by_name"]["mean error"]["between"], 0.25 / 8, places=5)
        self.assertAlmostEqual(found["by_name"]["mean absolute error"]["reference"], 0.5, places=4)
        self.assertAlmostEqual(found["by_name"]["mean absolute error"]["difference"], -0.25 / 8, places=4)

    def test_equal_infinities_are_no_error(self):
        same = self.model(x=(FLOAT, ["n"]))
        self.sample(0, x=np.array([1, np.inf, -np.inf], np.float32))
        found = self.run_task(same, "regression", "outputs['x_out'][0] += 0.25")
        self.assertAlmostEqual(found["by_name"]["largest error"]["between"], 0.25)

    def test_embedding(self):
        same = self.model(x=(FLOAT, [1, 16]))
        for i in range(20):
            self.sample(i, x=self.draw.normal(0, 1, (1, 16)).astype(np.float32))
        good = self.run_task(same, "embedding", "outputs['x_out'] *= 3")
        self.assertEqual((good["by_name"]["recall@1"]["between"], good["by_name"]["lowest cosine"]["between"]), (1, 1))
        bad = self.run_task(same, "embedding", "outputs['x_out'][:, :8] *= 0", status=1)
        self.assertLess(bad["by_name"]["mean cosine"]["between"], 0.9)
        self.assertLess(bad["by_name"]["recall@1"]["between"], 0.9)

    def test_generation(self):
        same = self.model(input_ids=(INT64, [1, 6]), logits=(FLOAT, [1, 6, 11]))
        for i in range(5):
            ids = self.draw.integers(0, 11, (1, 6))
            logits = np.zeros((1, 6, 11), np.float32)
            logits[0, np.arange(5), ids[0, 1:]] = np.log(10 * 4)  # The next token has a share of 0.8.
            self.sample(i, input_ids=ids, logits=logits)
        good = self.run_task(same, "generation", "pass", "--task-output", "logits_out")
        self.assertAlmostEqual(good["by_name"]["perplexity"]["target"], 1.25, places=3)
        self.assertEqual(good["by_name"]["tokens until one differs, mean"]["between"], 6)
        bad = self.run_task(same, "generation", "outputs['logits_out'][0, 3] = -outputs['logits_out'][0, 3]", "--task-output", "logits_out", status=1)
        self.assertEqual(bad["by_name"]["tokens until one differs, least"]["between"], 3)
        self.assertGreater(bad["by_name"]["perplexity"]["difference"], 0.5)

    def test_tokens_without_scores_have_no_margins_to_tell_of(self):
        same = self.model(tokens=(INT64, [1, 6]))
        self.sample(0, tokens=np.arange(6)[None])
        bad = self.run_task(same, "generation", "outputs['tokens_out'][0, 4] = 9", status=1)
        self.assertAlmostEqual(bad["by_name"]["token agreement"]["between"], 5 / 6, places=4)
        self.assertEqual((bad["answers"], bad["flips"]), (0, 0))


if __name__ == "__main__":
    unittest.main()
