"""The main job, from a model to a verdict and a page."""
import json
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
            self.assertEqual((found["verdict"], found["align"]["verdict"]), ("ready", "match"), found["next"])
            self.assertEqual(found["scan"]["platforms"][0]["native"], found["scan"]["platforms"][0]["nodes"])

    def test_a_model_with_refused_nodes_is_ready_with_limits_and_says_what_next(self):
        found = self.migrate(models.data_dependent(self.folder / "m.onnx"), "--to", "opencl")
        self.assertEqual(found["verdict"], "ready with limits")
        self.assertTrue(any("NonZero" in each["text"] for each in found["next"]), found["next"])
        self.assertEqual([each["runner"] for each in found["bench"]["runs"]], ["opencl:0", "cpu"])

    def test_an_operator_nobody_knows_blocks(self):
        found = self.run_tool("migrate", models.mystery(self.folder / "m.onnx"), "--to", "opencl", status=1)
        self.assertEqual(found["verdict"], "blocked")
        self.assertTrue(any("Mystery" in each["text"] for each in found["next"]), found["next"])

    @unittest.skipUnless((MODELS / "ppocr2-cls.onnx").exists(), "the example models were not fetched")
    def test_a_trained_model(self):
        found = self.migrate(MODELS / "ppocr2-cls.onnx", "--to", "opencl", "--shapes", "x:1x3x48x192")
        self.assertEqual((found["verdict"], found["align"]["verdict"]), ("ready", "match"), found["next"])


if __name__ == "__main__":
    unittest.main()
