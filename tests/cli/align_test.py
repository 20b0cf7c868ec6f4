"""`align` names the node where a planted defect begins. The reference is a dump of the model before it was changed."""
import json
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

RANGE = ["--range", "-2,3"]
TARGETS = ("cpu", "opencl")
AGREES = ("match", "explained")


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
                self.assertIn(found["verdict"], AGREES)
                self.assertEqual((found["first_divergent"], found["first_nonfinite"]), (None, None))
                self.assertGreaterEqual(sum(each["verdict"] in AGREES for each in found["values"]), 8)

    def test_unchanged_model_matches_between_devices(self):
        path = models.block(self.folder / "m.onnx", gelu="tanh")
        for target in TARGETS:
            found = self.run_tool("align", path, "--target", target, *RANGE)
            self.assertEqual(found["reference"], "reference")
            self.assertIn(found["verdict"], AGREES)
            self.assertTrue(all(each["single"] for each in found["values"]), "every kernel is run alone")

    def test_every_kernel_of_an_image_model_is_run_alone(self):
        """Images lie with channels last on some devices; a reference knows them as the file has them."""
        for target in TARGETS:
            found = self.run_tool("align", models.images(self.folder / "images.onnx"), "--target", target)
            self.assertIn(found["verdict"], AGREES)
            self.assertTrue(all(each["single"] for each in found["values"]), [each["name"] for each in found["values"] if not each["single"]])
            self.assertGreaterEqual(len(found["values"]), 6)

    def test_gelu_in_tanh_form_is_the_first_divergent_node(self):
        dump = self.dump()
        for target in TARGETS:
            found = self.changed(dump, target, gelu="tanh")
            self.assertEqual((found["verdict"], found["first_divergent"]), ("differ", "block1.act"))
            self.assertIsNone(found["first_nonfinite"])

    def test_the_cause_is_named(self):
        """Of another engine's dump, which computed GELU by tanh where the model asks for erf."""
        asked = models.block(self.folder / "asked.onnx", gelu="none")
        computed = models.block(self.folder / "computed.onnx", gelu="tanh")
        self.run_tool("run", computed, "--on", "cpu", "--dump", self.folder / "engine", *RANGE)
        found = self.run_tool("align", asked, "--target", self.folder / "engine", *RANGE, status=1)
        self.assertEqual(found["first_divergent"], "block1.act")
        cause = next(each for each in found["values"] if each["node"] == "block1.act")["cause"]
        self.assertEqual((cause["id"], cause["also"], cause["with"]), ("gelu-tanh", [], None))
        self.assertLess(cause["excess"], 3)
        self.assertGreater(cause["bits"], 30)
        self.assertEqual(cause["hypotheses"][0]["id"], "gelu-tanh")

    def test_the_order_of_a_dump_does_not_matter(self):
        asked = models.block(self.folder / "asked.onnx", gelu="none")
        computed = models.block(self.folder / "computed.onnx", gelu="tanh")
        self.run_tool("run", computed, "--on", "cpu", "--dump", self.folder / "engine", *RANGE)
        manifest = self.folder / "engine" / "manifest.json"
        found = json.loads(manifest.read_text())
        found["values"].reverse()
        manifest.write_text(json.dumps(found))
        self.assertEqual(self.run_tool("align", asked, "--target", self.folder / "engine", *RANGE, status=1)["first_divergent"], "block1.act")

    def test_no_cause_is_looked_for_if_not_wanted(self):
        path = models.block(self.folder / "m.onnx")
        other = models.block(self.folder / "other.onnx", gelu="tanh")
        self.run_tool("run", other, "--on", "cpu", "--no-fuse", *RANGE, "--dump", self.folder / "other")
        found = self.run_tool("align", path, "--target", self.folder / "other", *RANGE, "--no-causes", "--reproductions", self.folder / "findings", status=1)
        off = [each for each in found["values"] if each["verdict"] in ("suspicious", "differ")]
        self.assertTrue(off)
        self.assertFalse([each for each in off if each["cause"] or each["pattern"]])
        self.assertTrue(any(self.folder.glob("findings/*/model.onnx")))

    def test_each_finding_is_written_to_be_run_again(self):
        """Under ONNX Runtime and here: what align says of the node must be there, and the words of the error with it."""
        asked = models.block(self.folder / "asked.onnx", gelu="none")
        computed = models.block(self.folder / "computed.onnx", gelu="tanh")
        self.run_tool("run", computed, "--on", "cpu", "--no-fuse", "--dump", self.folder / "engine", *RANGE)
        out = self.folder / "findings"
        found = self.run_tool("align", asked, "--target", self.folder / "engine", *RANGE, "--reproductions", out, status=1)
        off = [each for each in found["values"] if each["verdict"] in ("differ", "suspicious") and each["single"]]
        self.assertTrue(off)
        value = next(each for each in off if each["node"] == "block1.act")
        self.assertTrue(value["pattern"]["text"].startswith(("systematic: ", "random: ")), value["pattern"])
        folder = Path(value["replay"]["folder"])
        self.assertEqual(folder.parent, out)
        model = onnx.load(str(folder / "model.onnx"))
        self.assertEqual([(each.op_type, each.name) for each in model.graph.node], [("Gelu", "block1.act")])
        here, plain = value["replay"]["commands"]
        self.assertEqual(unmoor(*here.split()[1:]).status, 0)
        done = subprocess.run([sys.executable, *plain.split()[1:]], capture_output=True, text=True, check=True)
        self.assertLess(float(done.stdout.split()[-1]), 1e-5, done.stdout)
        self.run_tool("align", asked, "--target", self.folder / "engine", *RANGE, "--reproductions", out, status=2)

    def test_without_a_finding_nothing_is_written(self):
        path = models.block(self.folder / "m.onnx", gelu="none")
        self.run_tool("align", path, "--target", "cpu", *RANGE, "--reproductions", self.folder / "findings")
        self.assertFalse((self.folder / "findings").exists())

    def test_a_reference_that_ran_another_model_is_no_cause_of_the_target(self):
        dump = self.dump()
        found = self.changed(dump, "cpu", gelu="tanh")
        value = next(each for each in found["values"] if each["node"] == "block1.act")
        self.assertIsNone(value["cause"])
        self.assertIn("the target computes what the model says; the reference does not", value["note"])

    def test_why_a_cause_is_not_named_is_said(self):
        asked = models.block(self.folder / "asked.onnx", gelu="none")
        self.run_tool("run", asked, "--on", "cpu", "--no-fuse", "--dump", self.folder / "engine", *RANGE)
        manifest = json.loads((self.folder / "engine" / "manifest.json").read_text())
        for each in manifest["values"]:
            path = self.folder / "engine" / each["file"]
            value = np.load(path)
            if value.dtype == np.float32:
                np.save(path, value * np.float32(1.37))
        found = self.run_tool("align", asked, "--target", self.folder / "engine", *RANGE, status=1)
        off = [each for each in found["values"] if each["single"] and each["single"]["verdict"] == "differ"]
        self.assertGreaterEqual(len(off), 6)
        for each in off:
            self.assertTrue(each["cause"] or "unexplained" in each["note"] or "no cause is looked for" in each["note"], each)
        self.assertTrue(any("only the first 5" in each["note"] for each in off))
        self.assertTrue(any("unexplained: none of" in each["note"] for each in off))

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
            self.assertIn(found["verdict"], AGREES)
            self.assertEqual(found["first_nonfinite"], "block1.up")

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


class Dumps(ProgramTest):
    """A dump's values are judged by what the model makes of the dump's own values above them. Faults are made by NumPy."""

    def setUp(self):
        super().setUp()
        self.model = models.block(self.folder / "block.onnx", gelu="none")
        self.run_tool("run", self.model, "--on", "cpu", "--no-fuse", "--dump", self.folder / "dump", *RANGE)
        manifest = json.loads((self.folder / "dump" / "manifest.json").read_text())
        self.files = {each["name"]: self.folder / "dump" / each["file"] for each in manifest["values"]}

    def judged(self, status):
        found = self.run_tool("align", self.model, "--target", self.folder / "dump", *RANGE, status=status)
        return found, {each["name"]: each for each in found["values"]}

    def test_what_float32_kernels_made_is_explained(self):
        found, values = self.judged(0)
        self.assertIn(found["verdict"], AGREES)
        alone = [each for each in values.values() if each["single"]]
        self.assertGreaterEqual(len(alone), 8)
        excesses = [each["single"]["excess_e"] for each in alone if each["single"]["excess_e"] is not None]
        self.assertTrue(excesses and max(excesses) < 2, excesses)

    def test_a_dump_can_be_narrowed_to_nodes_and_operators(self):
        for narrow, key in ((["--node", "block0.norm"], "node"), (["--op", "MatMul"], "op")):
            found = self.run_tool("align", self.model, "--target", self.folder / "dump", *RANGE, *narrow)
            alone = [each for each in found["values"] if each["single"]]
            self.assertEqual({each[key] for each in alone}, {narrow[1]})
            self.assertEqual({each["verdict"] for each in found["values"] if not each["single"]}, {"hidden"})
        self.run_tool("align", self.model, "--target", self.folder / "dump", *RANGE, "--node", "nobody", status=2)

    def test_a_value_of_fewer_bits_is_the_first_that_differs(self):
        _, before = self.judged(0)
        sums = [name for name, each in before.items() if each["op"] in ("MatMul", "Gemm", "LayerNormalization", "Softmax", "Gelu")]
        self.assertGreaterEqual(len(sums), 3)
        for name in sums[:3]:
            clean = np.load(self.files[name])
            np.save(self.files[name], clean.astype(np.float16).astype(np.float32))
            found, values = self.judged(1)
            self.assertIn(values[name]["single"]["verdict"], ("differ", "suspicious"), name)
            self.assertEqual(found["first_divergent"], values[name]["node"])
            np.save(self.files[name], clean)

    def test_one_element_that_is_off_is_found(self):
        _, before = self.judged(0)
        name = next(name for name, each in before.items() if each["op"] in ("MatMul", "Gemm"))
        clean = np.load(self.files[name])
        wrong = clean.copy()
        middle = np.argsort(np.abs(clean).ravel())[clean.size // 2]
        wrong.ravel()[middle] *= 1 + 2000 * 2.0 ** -24
        np.save(self.files[name], wrong)
        found, values = self.judged(1)
        self.assertIn(values[name]["single"]["verdict"], ("differ", "suspicious"))


class Folders(ProgramTest):
    def test_a_folder_that_is_called_as_an_engine_is_given_with_its_path(self):
        path = models.relu(self.folder / "m.onnx")
        hint = "for the folder of that name write ./cpu"
        self.assertNotIn(hint, unmoor("align", path, "--target", "cpu", folder=self.folder).err)
        self.assertEqual(unmoor("run", path, "--dump", "cpu", folder=self.folder).status, 0)
        self.assertIn(hint, unmoor("align", path, "--target", "cpu", folder=self.folder).err)
        self.assertNotIn(hint, unmoor("align", path, "--target", "./cpu", folder=self.folder).err)


if __name__ == "__main__":
    unittest.main()
