"""What `align` looks at: some values only, and statistics in place of values."""
import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

RANGE = ["--range", "-2,3"]


class Selection(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = models.block(self.folder / "m.onnx", gelu="tanh")

    def names(self, *arguments, **options):
        return [each["name"] for each in self.run_tool("align", self.model, *RANGE, *arguments, **options)["values"]]

    def test_only_values_of_these_names_are_compared(self):
        every = self.names("--no-fuse")
        self.assertEqual(self.names("--no-fuse", "--values", "block0.*"), [name for name in every if name.startswith("block0.")])
        self.assertEqual(self.names("--no-fuse", "--values", "*norm_out", "--values", "log_out"), [name for name in every if name.endswith("norm_out") or name == "log_out"])

    def test_every_nth_value_is_compared_in_order_of_the_run(self):
        every = self.names("--no-fuse")
        self.assertEqual(self.names("--no-fuse", "--every", 3), every[::3])
        self.assertEqual(self.run_tool("align", self.model, *RANGE, "--no-fuse", "--every", 3)["selected"], {"values": len(every[::3]), "of": len(every)})

    def test_outputs_are_compared_whatever_is_looked_at(self):
        found = self.run_tool("align", self.model, *RANGE, "--values", "block0.norm_out")
        self.assertEqual([each["name"] for each in found["outputs"]], ["log_out"])

    def test_a_pattern_without_a_value_is_an_error(self):
        result = unmoor("align", self.model, "--values", "nothing*")
        self.assertEqual(result.status, 2, result)
        self.assertIn("--values 'nothing*'", result.err)

    def test_a_dump_of_some_values_serves_as_a_side(self):
        dump = self.folder / "dump"
        self.run_tool("run", self.model, *RANGE, "--no-fuse", "--dump", dump, "--values", "block?.act_out")
        manifest = json.loads((dump / "manifest.json").read_text())
        self.assertEqual([each["name"] for each in manifest["values"]], ["x", "block0.act_out", "block1.act_out", "log_out"])
        found = self.run_tool("align", self.model, "--reference", dump, *RANGE)
        self.assertIn(found["verdict"], ("match", "explained"))
        changed = models.block(self.folder / "changed.onnx", gelu="tanh", epsilon=0.05)
        found = self.run_tool("align", changed, "--target", dump, *RANGE, status=1)
        self.assertEqual(found["first_divergent"], "block1.act", "the first value that shows it")

    def test_flags_that_need_a_dump_say_so(self):
        for flags in (["--values", "a"], ["--dump-stats"], ["--every", "2"]):
            self.assertEqual(unmoor("run", self.model, *flags).status, 2)


class Statistics(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = models.block(self.folder / "m.onnx", gelu="tanh")
        self.stats = self.folder / "stats"

    def write(self, *arguments, model=None):
        self.run_tool("run", model or self.model, *RANGE, "--dump", self.stats, "--dump-stats", *arguments)

    def test_what_agrees_is_explained_on_either_side(self):
        self.write()
        for sides in (["--target", self.stats], ["--reference", self.stats, "--target", "cpu"], ["--reference", self.stats, "--target", self.stats],
                      ["--target", self.stats, "--reference", "cpu"]):
            found = self.run_tool("align", self.model, *RANGE, *sides)
            self.assertIn(found["verdict"], ("match", "explained"), sides)
            self.assertGreater(len(found["values"]), 5)
            self.assertGreater(len(found["statistics"]["not_shown"]), 3)
            self.assertTrue(all(each["single"] is None for each in found["values"]))

    def test_the_first_value_that_differs_is_named_with_an_estimate_of_its_error(self):
        self.write("--no-fuse", model=models.block(self.folder / "other.onnx", gelu="none"))
        found = self.run_tool("align", self.model, *RANGE, "--target", self.stats, status=1)
        self.assertEqual(found["first_divergent"], "block1.act")
        shown = {each["name"]: each["entire"] for each in found["values"]}
        dump = self.folder / "dump"
        self.run_tool("run", self.folder / "other.onnx", *RANGE, "--no-fuse", "--dump", dump)
        known = {each["name"]: each["entire"] for each in self.run_tool("align", self.model, *RANGE, "--target", dump, status=1)["values"]}
        for name in ("block1.act_out", "block1.down_out", "log_out"):
            self.assertAlmostEqual(shown[name]["rel_l2"] / known[name]["rel_l2"], 1, delta=0.25, msg=name)

    def test_the_folder_holds_no_value_but_inputs_and_outputs(self):
        self.write()
        self.assertEqual(len(list(self.stats.glob("*.npy"))), 2)
        self.assertLess(sum(each.stat().st_size for each in self.stats.iterdir()), 100_000)

    def test_sixteen_bit_storage_of_values_that_are_left_out_is_known(self):
        from keep_float32_test import half_model
        half = half_model(self.folder / "half.onnx", blocks=6)
        self.run_tool("run", half, "--no-fuse", "--dump", self.stats, "--dump-stats", "--values", "sum5_out")
        self.assertEqual(self.run_tool("align", half, "--target", self.stats)["verdict"], "explained")

    def test_a_nan_is_seen_by_its_count(self):
        self.write("--no-fuse", model=models.block(self.folder / "nan.onnx", gelu="tanh", defect="nan-weight"))
        found = self.run_tool("align", self.model, *RANGE, "--target", self.stats, status=1)
        self.assertEqual(found["first_nonfinite"], "block1.up")

    def test_what_statistics_do_not_show_is_said_to_people(self):
        self.write()
        result = unmoor("align", self.model, *RANGE, "--target", self.stats)
        self.assertIn("statistics do not show:", result.out)
        self.assertTrue(all(len(line) <= 80 for line in result.out.splitlines()), result)

    def test_what_needs_values_is_refused(self):
        self.write()
        for flags in (["--atol", "1"], ["--node", "log"], ["--keep-curve", "f"], ["--reproductions", "f"]):
            result = unmoor("align", self.model, "--target", self.stats, *flags)
            self.assertEqual(result.status, 2, result)
            self.assertIn("holds only statistics", result.err)

    def test_a_broken_folder_is_an_error_that_names_it(self):
        self.write()
        manifest = json.loads((self.stats / "manifest.json").read_text())
        for broken in ({"statistics": 3}, {**manifest, "statistics": [{"name": "a"}]}, {**manifest, "outputs": [{"name": "a", "file": "../x.npy", "dtype": "float32"}]}):
            (self.stats / "manifest.json").write_text(json.dumps(broken))
            result = unmoor("align", self.model, "--target", self.stats)
            self.assertEqual(result.status, 2, result)
            self.assertIn("stats", result.err)


if __name__ == "__main__":
    unittest.main()
