"""Inputs, shapes, outputs and dumps in every form that is promised."""
import json
import sys
import unittest
from pathlib import Path

import numpy as np
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest


class Inputs(ProgramTest):
    def shapes_of(self, model, *arguments):
        return {each["name"]: each["shape"] for each in self.run_tool("run", model, *arguments)["model"]["inputs"]}

    def test_every_spelling_of_a_shape(self):
        model = models.two_inputs(self.folder / "m.onnx")
        expected = {"a": [2, 3], "b": [2, 3], "n": [5]}
        for text in ("a:2x3;b:2x3;n:5", "a:[2,3];b:[2,3];n:[5]", "a:2,3;b:2,3;n:5", "a:2x3;b:[2,3];n:5"):
            self.assertEqual(self.shapes_of(model, "--shapes", text), expected, text)

    def test_a_shape_for_a_name_with_a_colon(self):
        model = models.ModelBuilder()
        model.node("Relu", "y", ["image:0"])
        path = model.save(self.folder / "m.onnx", {"image:0": (models.FLOAT, ["n", 3])}, {"y_out": (models.FLOAT, ["n", 3])})
        self.assertEqual(self.shapes_of(path, "--shapes", "image:0:4x3"), {"image:0": [4, 3]})

    def test_every_form_of_an_input(self):
        path = models.relu(self.folder / "m.onnx", ["n", 4])
        x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "turned.npy", np.asfortranarray(x))
        np.savez(self.folder / "all.npz", x=x)
        np.savez_compressed(self.folder / "small.npz", x=x)
        (self.folder / "x.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
        for form in ("x.npy", "x=x.npy", "all.npz", "small.npz", "x=x.pb", "turned.npy"):
            name, equals, file = form.rpartition("=")
            self.run_tool("run", path, "-i", f"{name}{equals}{self.folder / file}", "-o", self.folder / "out.npz")
            with np.load(self.folder / "out.npz") as out:
                self.assertEqual(out.files, ["relu_out"])
                np.testing.assert_array_equal(out["relu_out"], np.maximum(x, 0), form)

    def test_flags_before_the_model_do_not_swallow_it(self):
        path = models.relu(self.folder / "m.onnx")
        np.save(self.folder / "x.npy", np.zeros((3, 4), np.float32))
        found = self.run_tool("run", "--on", "cpu", "-i", self.folder / "x.npy", path)
        self.assertEqual(found["outputs"][0]["shape"], [3, 4])

    def test_inputs_may_be_given_in_part(self):
        path = models.two_inputs(self.folder / "m.onnx")
        np.save(self.folder / "a.npy", np.full((4, 3), 10, np.float32))
        found = self.run_tool("run", path, "-i", f"a={self.folder}/a.npy", "--shapes", "b:4x3")
        self.assertGreater(found["outputs"][-1]["mean"], 5)

    def test_output_names_are_unchanged(self):
        model = models.ModelBuilder()
        model.node("Relu", "y", ["x"])
        names = ["a/b:0", "späti", "..up", "with space.npy"]
        for i, name in enumerate(names):
            model.nodes.append(models.helper.make_node("Identity", ["y_out"], [name], name=f"n{i}"))
        path = model.save(self.folder / "m.onnx", {"x": (models.FLOAT, [2])}, {name: (models.FLOAT, [2]) for name in names})
        self.run_tool("run", path, "-o", self.folder / "out.npz", "--dump", self.folder / "dump")
        with np.load(self.folder / "out.npz") as out:
            # NumPy takes one `.npy` off the end of each member's name.
            self.assertEqual(sorted(out.files), sorted(names))
        manifest = json.loads((self.folder / "dump/manifest.json").read_text())
        self.assertTrue(set(names) <= {each["name"] for each in manifest["values"]})

    def test_types_that_numpy_lacks_are_stored_as_bits(self):
        model = models.ModelBuilder()
        kind = models.TensorProto.BFLOAT16
        model.node("Cast", "low", ["x"], to=kind)
        path = model.save(self.folder / "m.onnx", {"x": (models.FLOAT, [3])}, {"low_out": (kind, [3])})
        np.save(self.folder / "x.npy", np.array([1, -2, 0.5], np.float32))
        found = self.run_tool("run", path, "-i", self.folder / "x.npy", "--dump", self.folder / "dump", "-o", self.folder / "out.npz")
        self.assertEqual((found["outputs"][0]["dtype"], found["outputs"][0]["min"]), ("bfloat16", -2))
        with np.load(self.folder / "out.npz") as out:
            self.assertEqual(out["low_out"].dtype, np.uint16)
            np.testing.assert_array_equal(out["low_out"], [0x3F80, 0xC000, 0x3F00])
        manifest = json.loads((self.folder / "dump/manifest.json").read_text())
        entry = next(each for each in manifest["values"] if each["name"] == "low_out")
        self.assertEqual((entry["dtype"], entry["shape"]), ("bfloat16", [3]))
        self.run_tool("align", path, "--reference", self.folder / "dump")  # And read again as what they are.

    def test_a_dump_comes_back_as_reference_with_its_inputs(self):
        path = models.block(self.folder / "m.onnx")
        self.run_tool("run", path, "--dump", self.folder / "dump", "--seed", "5")
        manifest = json.loads((self.folder / "dump/manifest.json").read_text())["values"]
        for each in manifest:
            stored = np.load(self.folder / "dump" / each["file"])
            self.assertEqual((list(stored.shape), str(stored.dtype)), (each["shape"], each["dtype"]), each)
        found = self.run_tool("align", path, "--reference", self.folder / "dump")  # Seed 0 would differ.
        self.assertEqual(found["verdict"], "match")
        self.assertEqual(found["outputs"][0]["entire"]["max_abs"], 0)

    def test_a_bare_folder_of_npy_files_is_a_dump(self):
        path = models.relu(self.folder / "m.onnx", ["n", 4])
        (self.folder / "bare").mkdir()
        x = np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 4)
        np.save(self.folder / "bare/x.npy", x)
        np.save(self.folder / "bare/relu%5Fout.npy", np.maximum(x, 0))
        self.assertEqual(self.run_tool("align", path, "--reference", self.folder / "bare")["verdict"], "match")
        np.save(self.folder / "bare/relu%5Fout.npy", x)
        self.assertEqual(self.run_tool("align", path, "--reference", self.folder / "bare", status=1)["first_divergent"], "relu")

    def test_dumps_that_are_damaged_are_bad_input(self):
        path = models.relu(self.folder / "m.onnx", ["n", 4])
        for content in ("", "{}", '{"values": 3}', '{"values": [{"name": "x"}]}', '{"values": [{"name": "x", "file": "none.npy"}]}',
                        '{"values": [{"name": 1, "file": 2}]}', '{"values": [{"name": "x", "file": "../m.onnx"}]}'):
            (self.folder / "bad").mkdir(exist_ok=True)
            (self.folder / "bad/manifest.json").write_text(content)
            self.run_tool("align", path, "--reference", self.folder / "bad", status=2)


if __name__ == "__main__":
    unittest.main()
