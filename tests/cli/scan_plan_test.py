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
        self.assertIn(scanned.status, (0, 1), scanned)
        ran = unmoor("run", model, "--on", device, "--explain", "--json")
        if ran.status != 0:  # A node that nobody runs: then scan said so.
            self.assertIn("unsupported", {each["state"] for each in scanned.json["nodes"]}, ran)
            return
        placed = {}
        for each in ran.json["plan"]["placements"]:
            for name in [each["node"], *each["also"]]:
                placed.setdefault(name, []).append(each)
        apart = set()
        for node in scanned.json["nodes"]:
            where = (model.name, device, node)
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
        self.assertEqual(bool(apart), ran.json["plan"]["fallback_nodes"] > 0, (model.name, device))
        strict = unmoor("run", model, "--on", device, "--fallback", "forbid", "--json")
        self.assertEqual(strict.status != 0, bool(apart), (model.name, device, strict))

    def test_scan_of_the_cpu_is_what_run_does(self):
        for model in self.models():
            self.check(model, "cpu")

    def test_scan_of_opencl_is_what_run_does(self):
        for model in self.models():
            self.check(model, "opencl")


if __name__ == "__main__":
    unittest.main()
