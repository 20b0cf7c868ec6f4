"""What scan says of a device that is here, against what run then does on it."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

SMALL = ("relu", "images", "two_inputs", "mystery", "data_dependent", "loop")
EXAMPLES = sorted((Path(__file__).resolve().parent.parent.parent / "examples").rglob("*.onnx"))


class ScanAndRun(ProgramTest):
    def models(self):
        made = [getattr(models, name)(self.folder / f"{name}.onnx") for name in SMALL]
        for gelu in ("none", "tanh", "erf-chain", "tanh-chain"):
            made.append(models.block(self.folder / f"block_{gelu}.onnx", gelu=gelu))
        made.append(models.resized(self.folder / "resized.onnx", 8))
        made.append(models.wide(self.folder / "wide.onnx", 3, 4))
        return [*made, *EXAMPLES]

    def check(self, model, device):
        scanned = unmoor("scan", model, "--on", device, "--json")
        ran = unmoor("run", model, "--on", device, "--explain", "--json")
        if scanned.status == 2:  # Sizes that were made up do not suit a trained model: then both say so.
            self.assertIn(model, EXAMPLES, scanned)
            self.assertEqual(ran.status, 2, ran)
            self.unfit.append(model.name)
            return
        self.assertIn(scanned.status, (0, 1), scanned)
        if ran.status != 0:  # A node that nobody runs: then scan said so. Or made-up inputs do not suit a trained model.
            if "unsupported" not in {each["state"] for each in scanned.json["nodes"]}:
                self.assertIn(model, EXAMPLES, ran)
                self.unfit.append(model.name)
            return
        placed = {}
        for each in ran.json["plan"]["placements"]:
            for name in [each["node"], *each["also"]]:
                placed.setdefault(name, []).append(each)
        apart = set()
        for node in scanned.json["nodes"]:
            where = (model.name, device, node)
            if node["state"] == "unknown":  # The sizes that were made up do not suit what stands before it: nothing is said of it.
                self.assertEqual(node["reason"], "dynamic", where)
                self.assertIn(model, EXAMPLES, where)
                if model.name not in self.unfit:
                    self.unfit.append(model.name)
                continue
            mine = placed.get(node["node"], [])
            on_device = [each for each in mine if each["device"].startswith(device)]
            refused = [each for each in mine if not each["device"].startswith(device) and each["refusals"] and each["state"] not in ("host", "choice")]
            if node["state"] == "fallback":
                apart.add(node["node"])
                self.assertTrue(refused, where)
                told = {(why["reason"], why["detail"]) for each in refused for why in each["refusals"] if why["device"].startswith(device)}
                self.assertIn((node["reason"], node["detail"]), told, where)
            elif node["state"] == "expanded":
                self.assertTrue(any(each["state"] == "expanded" for each in mine), where)
            else:
                self.assertEqual(node["state"], "native", where)
                self.assertFalse(refused, where)
                if on_device and node["detail"] and not node["detail"].startswith(("nothing", "small", "the device could")):
                    self.assertIn(node["detail"], {each["kernel"] for each in on_device}, where)
        if model.name in self.unfit:
            return
        self.assertEqual(bool(apart), ran.json["plan"]["fallback_nodes"] > 0, (model.name, device))
        strict = unmoor("run", model, "--on", device, "--fallback", "forbid", "--json")
        self.assertEqual(strict.status != 0, bool(apart), (model.name, device, strict))

    def check_all(self, device):
        self.unfit = []
        for model in self.models():
            self.check(model, device)
        self.assertLessEqual(len(self.unfit), 4, self.unfit)

    def test_scan_of_the_cpu_is_what_run_does(self):
        self.check_all("cpu")

    def test_scan_of_opencl_is_what_run_does(self):
        self.check_all("opencl")


if __name__ == "__main__":
    unittest.main()
