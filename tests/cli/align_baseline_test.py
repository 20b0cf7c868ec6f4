"""Three-way alignment: a target is blamed only for what is clearly worse than on the platform that the model comes from."""
import sys
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from engines import EngineTest
from program import unmoor

RANGE = ["--range", "-2,3"]

# An engine that shows all its values and runs another model than it is given.
ENGINE = """
import onnx, onnxruntime

def load(path):
    global model
    model = onnx.load({model!r})

def run(inputs, wanted=None):
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    known = {{each.name for each in model.graph.output}}
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted or () if name not in known)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(shown.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))
"""


class Baseline(EngineTest):
    def setUp(self):
        super().setUp()
        self.model = models.block(self.folder / "m.onnx", gelu="tanh")

    def dump(self, name, *arguments, **changes):
        path = models.block(self.folder / f"{name}.onnx", **{"gelu": "tanh", **changes})
        self.tool("run", path, *RANGE, "--no-fuse", "--dump", self.folder / name, *arguments)
        return self.folder / name

    def align(self, target, baseline, *arguments, status=0):
        return self.tool("align", self.model, *RANGE, "--target", target, "--baseline", baseline, *arguments, status=status)

    def verdicts(self, found):
        return {each["name"]: each["verdict"] for each in found["values"]}

    def test_the_same_defect_in_both_is_not_the_targets(self):
        wrong = self.dump("wrong", gelu="none")
        self.tool("align", self.model, *RANGE, "--target", wrong, status=1)
        found = self.align(wrong, self.dump("same", gelu="none"))
        self.assertEqual((found["verdict"], found["first_divergent"], found["baseline"]), ("explained", None, str(self.folder / "same")))
        self.assertEqual(self.verdicts(found)["block1.act_out"], "as-baseline")
        log = next(each for each in found["outputs"] if each["name"] == "log_out")
        self.assertEqual(log["verdict"], "as-baseline")
        act = next(each for each in found["values"] if each["name"] == "block1.act_out")
        self.assertIn("the baseline is off as much: E ", act["note"])
        self.assertEqual(act["baseline_single"]["excess_e"], act["single"]["excess_e"])
        self.assertIsNone(act["cause"])

    def test_a_defect_of_the_target_alone_is_the_targets(self):
        found = self.align(self.dump("wrong", gelu="none"), self.dump("right"), status=1)
        self.assertEqual(found["first_divergent"], "block1.act")
        self.assertNotIn("as-baseline", self.verdicts(found).values())

    def test_a_second_defect_of_the_target_is_the_first_that_is_told(self):
        found = self.align(self.dump("two", gelu="none", epsilon=0.05), self.dump("one", epsilon=0.05), status=1)
        self.assertEqual(self.verdicts(found)["block1.norm_out"], "as-baseline")
        self.assertEqual(found["first_divergent"], "block1.act")

    def test_where_the_baseline_is_off_by_less_the_target_is_blamed(self):
        found = self.align(self.dump("far", epsilon=0.05), self.dump("near", epsilon=0.001), status=1)
        self.assertEqual(found["first_divergent"], "block1.norm")
        norm = next(each for each in found["values"] if each["name"] == "block1.norm_out")
        self.assertGreater(norm["baseline_single"]["excess_e"], 5)
        self.assertIn("beyond the baseline", norm["note"])

    def test_a_target_that_is_better_than_the_baseline_is_not_blamed(self):
        self.assertEqual(self.align(self.dump("near", epsilon=0.001), self.dump("far", epsilon=0.05))["verdict"], "explained")

    def test_what_the_baseline_does_not_show_is_judged_without_it_and_said(self):
        baseline = self.dump("same", "--values", "block0.*", gelu="none")
        found = self.align(self.dump("wrong", gelu="none"), baseline, status=1)
        self.assertEqual(found["first_divergent"], "block1.act")
        self.assertIn("does not show it: judged without", next(each for each in found["values"] if each["name"] == "block1.act_out")["note"])
        text = unmoor("align", self.model, *RANGE, "--target", self.folder / "wrong", "--baseline", baseline).out
        self.assertRegex(" ".join(text.split()), r"of \d+ of \d+ values it says nothing")

    def test_a_wider_step_of_the_baseline_excuses_no_narrow_one(self):
        # The baseline is off somewhere between block1.norm and block1.act: not known where.
        baseline = self.dump("same", "--values", "block1.act_out", "--values", "block0.*", epsilon=0.05)
        found = self.align(self.dump("wrong", gelu="none"), baseline, status=1)
        self.assertEqual(found["first_divergent"], "block1.act")

    def test_nan_at_the_same_places_is_not_the_targets(self):
        found = self.align(self.dump("wrong", defect="nan-weight"), self.dump("same", defect="nan-weight"))
        self.assertEqual((found["verdict"], found["first_nonfinite"]), ("explained", None))
        found = self.align(self.folder / "wrong", self.dump("right"), status=1)
        self.assertEqual(found["first_nonfinite"], "block1.up")
        found = self.align(self.folder / "wrong", self.dump("other", defect="log-of-negative"), status=1)
        self.assertEqual(found["first_nonfinite"], "block1.up", "the baseline's NaN are elsewhere")

    def test_live_engines_on_all_sides(self):
        wrong = models.block(self.folder / "wrong.onnx", gelu="none")
        target = self.engine(ENGINE.format(model=str(wrong)), "target.py")
        same = self.engine(ENGINE.format(model=str(wrong)), "same.py")
        right = self.engine(ENGINE.format(model=str(self.model)), "right.py")
        self.assertEqual(self.align(target, right, status=1)["first_divergent"], "block1.act")
        self.assertEqual(self.align(target, same)["verdict"], "explained")
        found = self.align("cpu", same)
        self.assertIn(found["verdict"], ("match", "explained"))
        self.assertNotIn("as-baseline", self.verdicts(found).values(), "nothing is wrong in the target")
        self.assertIn("cpu", found["environment"]["devices"])
        self.assertIn(self.align("cpu", "ort:cpu")["verdict"], ("match", "explained"))

    def test_statistics_serve_as_a_baseline(self):
        for name, gelu in (("same", "none"), ("right", "tanh")):
            path = models.block(self.folder / f"{name}.onnx", gelu=gelu)
            self.tool("run", path, *RANGE, "--no-fuse", "--dump", self.folder / name, "--dump-stats")
        wrong = self.dump("wrong", gelu="none")
        self.assertEqual(self.align(wrong, self.folder / "same")["verdict"], "explained")
        self.assertEqual(self.align(wrong, self.folder / "right", status=1)["first_divergent"], "block1.act")

    def test_inputs_of_a_stored_baseline_are_used(self):
        baseline = self.dump("right")
        found = self.tool("align", self.model, "--target", "cpu", "--baseline", baseline)  # Without --range.
        self.assertIn(found["verdict"], ("match", "explained"))
        self.assertTrue(all(each["baseline_entire"]["rel_l2"] < 1e-5 for each in found["values"] if "baseline_entire" in each))

    def test_people_and_machines_of_continuous_integration_see_it(self):
        wrong, same = self.dump("wrong", gelu="none"), self.dump("same", gelu="none")
        result = unmoor("align", self.model, *RANGE, "--target", wrong, "--baseline", same, "--junit", self.folder / "j.xml")
        self.assertEqual(result.status, 0, result)
        self.assertTrue(all(len(line) <= 80 for line in result.out.splitlines()), result)
        for text in ("as-baseline", "base E", "is off only where"):
            self.assertIn(text, result.out)
        skipped = [each.get("message") for each in xml.parse(self.folder / "j.xml").iter("skipped")]
        self.assertTrue(any(each.startswith("as the baseline: ") for each in skipped), skipped)

    def test_the_page_has_the_baseline(self):
        wrong, same = self.dump("wrong", gelu="none"), self.dump("same", gelu="none")
        self.align(wrong, same, "--html", self.folder / "p.html")
        page = (self.folder / "p.html").read_text()
        self.assertIn("by as much on the baseline", page)
        self.assertIn('"baseline_excess"', page)

    def test_it_does_not_go_with_a_data_set(self):
        self.assertEqual(unmoor("align", self.model, "--baseline", "cpu", "--data", self.folder, "--task", "regression").status, 2)


if __name__ == "__main__":
    unittest.main()
