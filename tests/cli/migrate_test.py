"""The main job, from a model to a verdict and a page."""
import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest

from schema import SCHEMAS, check

MODELS = Path(__file__).resolve().parent.parent.parent / "examples/models"


def data_of(page):
    """The result that a page carries."""
    text = page.read_text()
    start = text.index(">", text.index('type="application/json"')) + 1
    return json.loads(text[start:text.index("</script>", start)])


class Migrate(ProgramTest):
    def migrate(self, model, *arguments, status=0):
        page = self.folder / "report.html"
        found = self.run_tool("migrate", model, "--html", page, "--seconds", "0.2", *arguments, status=status)
        self.assertEqual(check(found, SCHEMAS["migrate"]), [])
        carried = data_of(page)
        for key in ("verdict", "sentence", "model", "next", "scan", "align", "bench"):
            self.assertEqual(carried[key], found[key], key)
        self.assertEqual((carried["status"], carried["reason"]), (found["status"], found["reason"]))
        return found

    def test_a_model_that_the_device_takes_whole_is_ready(self):
        for device in ("opencl", "cpu"):
            found = self.migrate(models.block(self.folder / "m.onnx", layers=1), "--to", device)
            self.assertEqual(found["verdict"], "ready", found["next"])
            self.assertIn(found["align"]["verdict"], ("match", "explained"))
            self.assertEqual(found["scan"]["platforms"][0]["native"], found["scan"]["platforms"][0]["nodes"])
            if device == "opencl":  # It is much slower here: the next step says so in the number that bench has.
                ratio = found["bench"]["ratios"][0]
                self.assertEqual((ratio["a"], ratio["b"]), ("opencl:0", "cpu"))
                times = [float(re.search(r"takes ([\d.]+) times", each["text"]).group(1)) for each in found["next"] if "times as long" in each["text"]]
                self.assertEqual(len(times), 1, found["next"])
                self.assertAlmostEqual(times[0], ratio["median"], delta=0.06)

    def test_a_model_with_refused_nodes_is_ready_with_limits_and_says_what_next(self):
        found = self.migrate(models.data_dependent(self.folder / "m.onnx"), "--to", "opencl")
        self.assertEqual(found["verdict"], "ready with limits")
        self.assertTrue(any("NonZero" in each["text"] for each in found["next"]), found["next"])
        self.assertEqual([each["runner"] for each in found["bench"]["runs"]], ["opencl:0", "cpu"])

    def test_an_operator_nobody_knows_blocks(self):
        found = self.run_tool("migrate", models.mystery(self.folder / "m.onnx"), "--to", "opencl", status=1)
        self.assertEqual(found["verdict"], "blocked")
        self.assertTrue(any("Mystery" in each["text"] for each in found["next"]), found["next"])

    def test_commands_that_are_suggested_are_what_a_shell_takes(self):
        import shlex
        model = models.mystery(self.folder / "it's $(touch hurt).onnx")
        found = self.run_tool("migrate", model, "--to", "cpu", "--shapes", "x:2x4", "--seed", "3", status=1)
        commands = [each["command"] for each in found["next"]] + [each["command"] for each in found["tools"] if each["command"]]
        for command in commands:
            words = shlex.split(command)
            self.assertEqual(words[0], "unmoor", command)
            if words[1] != "doctor":
                self.assertEqual(words[2], str(model), command)
                self.assertEqual(words[words.index("--shapes") + 1], "x:2x4", command)
            if words[1] in ("run", "align", "bench", "migrate"):
                self.assertEqual(words[words.index("--seed") + 1], "3", command)

    def test_a_page_of_3000_nodes_is_small(self):
        import gzip
        page = self.folder / "report.html"
        model = models.block(self.folder / "m.onnx", layers=600)
        found = self.run_tool("migrate", model, "--to", "cpu", "--html", page, "--seconds", "0.02")
        self.assertGreater(found["scan"]["platforms"][0]["nodes"], 3000)
        size = len(gzip.compress(page.read_bytes()))
        print(f"{found['scan']['platforms'][0]['nodes']} nodes: {size} bytes gzipped", file=sys.stderr)
        self.assertLess(size, 400_000)

    def test_the_type_is_that_of_the_model(self):
        model = models.ModelBuilder()
        model.node("Relu", "relu", ["x"])
        kind = models.TensorProto.FLOAT16
        path = model.save(self.folder / "m.onnx", {"x": (kind, [4])}, {"relu_out": (kind, [4])})
        self.assertEqual(self.run_tool("migrate", path, "--to", "cpu", "--seconds", "0.02")["dtype"], "float16")

    @unittest.skipUnless((MODELS / "ppocr2-cls.onnx").exists(), "the example models were not fetched")
    def test_a_trained_model(self):
        found = self.migrate(MODELS / "ppocr2-cls.onnx", "--to", "opencl", "--shapes", "x:1x3x48x192")
        self.assertEqual(found["verdict"], "ready", found["next"])
        self.assertIn(found["align"]["verdict"], ("match", "explained"))


if __name__ == "__main__":
    unittest.main()
