"""PyTorch as an engine: the values of the program that an ONNX file was exported from, here and by a script on another machine."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from engines import INSTALLED, PYTHON, EngineTest
from program import unmoor

MODULE = """import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
    def forward(self, x):
        return self.last(torch.nn.functional.gelu(self.norm(self.first(x))))
def make():
    torch.manual_seed(5)
    return Net(), (torch.linspace(-2, 2, 24).reshape(3, 8),)
"""
# Two outputs by name, which the ONNX model lists the other way round, and a module that runs twice.
NAMED = """import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.inner = torch.nn.Tanh(), torch.nn.Linear(8, 8)
    def forward(self, x):
        low = self.act(self.inner(x))
        return {"low": low * 0.5, "high": self.act(low + 1) * 2}
def make():
    torch.manual_seed(5)
    return Net(), {"x": torch.linspace(-2, 2, 24).reshape(3, 8)}
def wrong():
    return Net(), (torch.ones(3, 8), torch.ones(3, 8))
"""
EXPORT = """import onnx, torch
import net, named
module, example = net.make()
torch.export.save(torch.export.export(module.eval(), example), "net.pt2")
torch.onnx.export(module, example, "net.onnx", input_names=["x"], output_names=["y"], dynamo=True, verbose=False)
torch.onnx.export(module, example, "old.onnx", input_names=["x"], output_names=["y"], dynamo=False)
module, example = named.make()
torch.export.save(torch.export.export(module.eval(), (), example), "named.pt2")
torch.onnx.export(module, (example["x"],), "named.onnx", input_names=["x"], output_names=["low", "high"], dynamo=True, verbose=False)
model = onnx.load("named.onnx")
outputs = list(model.graph.output)[::-1]
del model.graph.output[:]
model.graph.output.extend(outputs)
onnx.save(model, "named.onnx")
"""


@unittest.skipUnless({"torch", "onnxscript"} <= INSTALLED, f"torch and onnxscript are not installed for {PYTHON}")
class PyTorch(EngineTest):
    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(shared.cleanup)
        cls.models = Path(shared.name)
        (cls.models / "net.py").write_text(MODULE)
        (cls.models / "named.py").write_text(NAMED)
        subprocess.run([PYTHON, "-c", EXPORT], cwd=cls.models, check=True, capture_output=True)

    def setUp(self):
        super().setUp()
        shutil.copytree(self.models, self.folder, dirs_exist_ok=True)

    def values(self, found):
        return [each["name"] for each in found["values"] if each["entire"]]

    def test_an_exported_program_beside_the_model_is_used(self):
        for onnx in ("net.onnx", "old.onnx"):
            extra = [] if onnx == "net.onnx" else ["--set", f"torch.model={self.folder / 'net.pt2'}"]
            found = self.tool("align", self.folder / onnx, "--reference", "torch:cpu", "--target", "cpu", "--no-fuse", *extra)
            self.assertIn(found["verdict"], ("match", "explained"))
            self.assertGreaterEqual(len(self.values(found)), 3, found["environment"]["notes"])
            self.assertIn("are matched", " ".join(found["environment"]["notes"]))

    def test_a_function_that_returns_a_module_is_a_model(self):
        model = f"torch.model={self.folder / 'net.py'}:make"
        found = self.tool("align", self.folder / "net.onnx", "--reference", "torch:cpu", "--target", "cpu", "--no-fuse", "--set", model)
        self.assertIn(found["verdict"], ("match", "explained"))
        self.assertGreaterEqual(len(self.values(found)), 2)
        self.assertIn("has no function 'none'", self.tool("run", self.folder / "net.onnx", "--on", "torch:cpu", "--set", model.replace(":make", ":none"), status=2)["reason"])

    def test_a_pytorch_model_with_other_weights_differs(self):
        (self.folder / "other.py").write_text(MODULE.replace("manual_seed(5)", "manual_seed(6)"))
        found = self.tool("align", self.folder / "net.onnx", "--reference", "torch:cpu", "--target", "cpu", "--set",
                          f"torch.model={self.folder / 'other.py'}:make", status=1)
        self.assertEqual(found["verdict"], "differ")

    def test_compiled_it_shows_outputs_only_and_says_so(self):
        result = self.tool("run", self.folder / "net.onnx", "--on", "torch:cpu", "--set", "torch.compile=on", "--dump", self.folder / "dump")
        self.assertIn("outputs only", " ".join(result["environment"]["notes"]))
        self.assertEqual({each["name"] for each in json.loads((self.folder / "dump" / "manifest.json").read_text())["values"]}, {"x", "y"})

    def test_the_script_for_another_machine_makes_a_dump_that_align_reads(self):
        script = self.folder / "dump.py"
        script.write_text(unmoor("align", self.folder / "net.onnx", "--write-dump-script", environment=self.environment).out)
        for spec in ("net.pt2", "net.py:make"):
            subprocess.run([PYTHON, script, spec, "there"], cwd=self.folder, check=True, capture_output=True)
            found = self.tool("align", self.folder / "net.onnx", "--reference", self.folder / "there", "--target", "cpu", "--no-fuse")
            self.assertIn(found["verdict"], ("match", "explained"))
            self.assertGreaterEqual(len(self.values(found)), 2)

    def test_outputs_are_matched_by_name(self):
        for model in ("named.pt2", "named.py:make"):
            found = self.tool("align", self.folder / "named.onnx", "--reference", "torch:cpu", "--target", "cpu", "--set", f"torch.model={self.folder / model}")
            self.assertIn(found["verdict"], ("match", "explained"), model)
            self.assertEqual([each["name"] for each in found["outputs"]], ["high", "low"])

    def test_the_script_leaves_out_what_a_module_makes_twice_and_takes_outputs_by_name(self):
        script = self.folder / "dump.py"
        script.write_text(unmoor("align", self.folder / "named.onnx", "--write-dump-script", environment=self.environment).out)

        def said(spec, folder, **options):
            return subprocess.run([PYTHON, script, spec, folder], cwd=self.folder, capture_output=True, text=True, **options)

        for spec, folder in (("named.pt2", "exported"), ("named.py:make", "eager")):
            text = said(spec, folder, check=True).stdout
            names = [each["name"] for each in json.loads((self.folder / folder / "manifest.json").read_text())["values"]]
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual("more than once" in text, folder == "eager", text)
            found = self.tool("align", self.folder / "named.onnx", "--reference", self.folder / folder, "--target", "cpu", "--no-fuse")
            self.assertIn(found["verdict"], ("match", "explained"))
        failed = said("named.py:wrong", "wrong")
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("the PyTorch model has 2 inputs", failed.stderr)


if __name__ == "__main__":
    unittest.main()
