"""Scans of platforms that are not here, against a count of our own from the same data."""
import json
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import UNMOOR, ProgramTest, unmoor

from scan_count import DATA, REFUSED, TAKEN, UNKNOWN, count, count_calls

STATES = ("native", "constrained", "expanded", "fallback", "unsupported", "unknown")
TRAINED = sorted((Path(__file__).resolve().parent.parent.parent / "examples" / "models").glob("*.onnx"))


def platforms(vocabulary):
    found = {}
    for path in sorted(DATA.glob("*@*.json")):
        content = json.loads(path.read_text())
        if content["vocabulary"] == vocabulary:
            found[path.stem] = content
    return found


class Scan(ProgramTest):
    def made(self):
        makers = (models.relu, models.images, models.two_inputs, models.block, models.data_dependent, models.loop, models.mystery)
        made = [make(self.folder / f"{make.__name__}.onnx") for make in makers]
        return [*made, *(models.block(self.folder / f"block_{gelu}.onnx", gelu=gelu) for gelu in ("erf-chain", "tanh-chain"))]

    def scanned(self, model, on):
        result = unmoor("scan", model, "--on", on, "--json")
        self.assertIn(result.status, (0, 1), result)
        return result.json

    def test_totals_agree_with_an_independent_count(self):
        names = [name for name, content in platforms("onnx").items() if not content.get("static_shapes")]  # Whether data decides a shape, onnx does not tell.
        # What the program computes ahead of a run is a constant to it; this count computes nothing, so limits on constants are for small models alone.
        simple = [name for name in names if '"constant"' not in (DATA / f"{name}.json").read_text()]
        for path in [*self.made(), *TRAINED[:8]]:
            model = onnx.load(str(path))
            found = self.scanned(path, ",".join(simple if path in TRAINED else names))
            for platform in found["platforms"]:
                mine = count(model, platform["name"])
                theirs = {TAKEN: platform["native"] + platform["constrained"], UNKNOWN: platform["unknown"],
                          REFUSED: platform["expanded"] + platform["fallback"] + platform["unsupported"]}
                self.assertEqual(theirs, {key: mine[key] for key in theirs}, (path.name, platform["name"]))

    def test_totals_of_calls_agree_with_an_independent_count(self):
        names = list(platforms("aten"))
        self.assertGreater(len(names), 20)
        for path in self.made():
            model = onnx.load(str(path))
            for platform in self.scanned(path, ",".join(names))["platforms"]:
                mine = count_calls(model, platform["name"])
                theirs = {TAKEN: platform["native"] + platform["constrained"], UNKNOWN: platform["unknown"],
                          REFUSED: platform["expanded"] + platform["fallback"] + platform["unsupported"]}
                self.assertEqual(theirs, {key: mine[key] for key in theirs}, (path.name, platform["name"]))

    def test_every_model_scans_on_every_platform_and_unknown_is_never_unsupported(self):
        for path in [*self.made(), *TRAINED]:
            found = self.scanned(path, "all")
            self.assertGreaterEqual(len(found["platforms"]), 27)
            for platform in found["platforms"]:
                self.assertEqual(sum(platform[state] for state in STATES), platform["nodes"])
            absent = {name.split("@")[0]: set(content["ops"]) for name, content in platforms("onnx").items() if content["absent"] == "unknown"}
            for node in found["nodes"]:
                if node["platform"] in absent and node["op"] not in absent[node["platform"]]:
                    self.assertEqual(node["state"], "unknown", node)
                    self.assertEqual(node["priority"], "", node)

    def test_nine_tenths_of_the_nodes_have_an_answer_on_torch_platforms(self):
        names = sorted({name.split("@")[0] for name in platforms("aten")})
        totals = {}
        for path in [*self.made(), *TRAINED]:
            if path.name == "mystery.onnx":  # Half of its nodes are of no library.
                continue
            for platform in self.scanned(path, ",".join(names))["platforms"]:
                known, nodes = totals.get(platform["name"], (0, 0))
                totals[platform["name"]] = (known + platform["nodes"] - platform["unknown"], nodes + platform["nodes"])
        for name, (known, nodes) in totals.items():
            self.assertGreaterEqual(known / nodes, 0.9, (name, known, nodes))

    def test_devices_and_platforms_stand_side_by_side_in_80_columns(self):
        model = models.block(self.folder / "m.onnx")
        for on in ("cpu,ort-cuda,torch-npu@7.3", "all"):
            shown = unmoor("scan", model, "--on", on, "--memory", "16G", "--link", "12G", "--exit-zero")
            self.assertEqual(shown.status, 0, shown)
            for line in shown.out.splitlines():
                self.assertLessEqual(len(line), 80, line)
        found = self.run_tool("scan", model, "--on", "cpu,ort-cuda@1.25,tensorrt@10.1")
        self.assertEqual([(each["name"], each["source"]) for each in found["platforms"]],
                         [("cpu", "plan"), ("ort-cuda@1.25", "catalogue"), ("tensorrt@10.1", "catalogue")])

    def test_names_that_nobody_knows_are_wrong_use(self):
        model = models.relu(self.folder / "m.onnx")
        for wrong in ("nosuch", "ort-cpu@99", "all@1", "tensorrt@"):
            self.run_tool("scan", model, "--on", wrong, status=2)
        for flag in (["--memory", "x"], ["--memory", "-1"], ["--link", "1Q"], ["--memory", "inf"]):
            self.run_tool("scan", model, *flag, status=2)

    def test_flags_that_could_not_tell_anything_are_refused(self):
        model = models.block(self.folder / "m.onnx")
        found = self.run_tool("scan", model, "--on", "cpu", "--link", "1G", "--memory", "16G")
        self.assertEqual(found["platforms"][0]["copy_ms"], 0)
        self.assertIn("Copies for what the host takes: 0 B a run, 0 ms", " ".join(unmoor("scan", model, "--on", "cpu", "--link", "1G").out.split()))
        self.assertIn("--link", self.run_tool("scan", model, "--on", "ort-cuda", "--link", "1G", "--op", "MatMul", status=2)["reason"])
        odd = models.misfit(self.folder / "odd.onnx")
        for flag in ("--memory", "--link"):
            self.assertIn(flag, self.run_tool("scan", odd, "--on", "ort-cpu", flag, "1G", status=2)["reason"])

    def test_without_inferred_types_no_value_counts_as_a_constant(self):
        odd = models.misfit(self.folder / "odd.onnx")  # A Slice whose starts are an input of the model, behind an addition of no size.
        found = self.run_tool("scan", odd, "--on", "ort-coreml", "--op", "Slice", status=1)
        self.assertEqual([(each["state"], each["reason"]) for each in found["nodes"]], [("fallback", "dynamic")])
        self.assertIn("dimensions", self.run_tool("scan", odd, "--on", "ort-coreml", "--shapes", "x:4", status=2)["reason"])

    def test_an_operator_nobody_knows_is_told_by_every_platform(self):
        found = self.scanned(models.mystery(self.folder / "m.onnx"), "ort-cpu,mnn,torch-npu")
        states = {each["platform"]: each["state"] for each in found["nodes"] if each["node"] == "strange"}
        self.assertEqual(states, {"ort-cpu": "unsupported", "mnn": "unknown", "torch-npu": "unknown"})

    def test_a_large_model_is_scanned_fast_and_without_its_weights(self):
        path = self.large_model()
        script = ("import resource, subprocess, sys, time\n"
                  "start = time.monotonic()\n"
                  "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=False)\n"
                  "usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                  "print(time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)\n")
        best, memory = 1e9, 0
        for _ in range(5):
            done = subprocess.run([sys.executable, "-c", script, UNMOOR, "scan", str(path), "--on", "all"], capture_output=True, check=True, text=True)
            _, processor, kilobytes = map(float, done.stdout.split())
            best, memory = min(best, processor), max(memory, kilobytes)
        self.assertLess(best, 0.1)  # Of the processor: what else the machine does is not ours.
        self.assertLess(memory, 60e3)

    def test_weights_inside_the_file_are_not_read_into_memory(self):
        path = self.inline_model()
        watch = ("import resource, subprocess, sys, time\n"
                 "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
                 "most, looks = 0, 0\n"
                 "while child.poll() is None:\n"
                 "    try:\n"
                 "        for line in open(f'/proc/{child.pid}/status'):\n"
                 "            if line.startswith('RssAnon:'): most, looks = max(most, int(line.split()[1])), looks + 1\n"
                 "    except OSError: pass\n"
                 "usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                 "print(most, looks, usage.ru_utime + usage.ru_stime)\n")
        most, best = 0, 1e9
        for _ in range(5):
            done = subprocess.run([sys.executable, "-c", watch, UNMOOR, "scan", str(path), "--on", "all"], capture_output=True, check=True, text=True)
            kilobytes, looks, processor = map(float, done.stdout.split())
            self.assertGreater(looks, 3)
            most, best = max(most, kilobytes), min(best, processor)
        self.assertLess(most, 60e3)  # Memory of the process's own, apart from pages of files.
        self.assertLess(best, 0.1)

    def inline_model(self):
        """400 MB of weights inside the ONNX file, which is sparse: they take no room on the disk."""
        layers, side = 50, 1414
        model = models.ModelBuilder()
        value = "x"
        for i in range(layers):
            value = model.node("MatMul", f"product{i}", [value, f"w{i}"])
            value = model.node("Gelu", f"gelu{i}", [value])
        path = model.save(self.folder / "inline.onnx", {"x": (models.FLOAT, ["batch", side])}, {value: (models.FLOAT, ["batch", side])})
        whole = onnx.load(str(path))
        graph = whole.graph.SerializeToString()
        whole.ClearField("graph")
        size = side * side * 4

        def field(number, length):
            return bytes([number << 3 | 2]) + self.varint(length)
        tensors = []
        for i in range(layers):
            start = onnx.TensorProto(name=f"w{i}", data_type=models.FLOAT, dims=[side, side]).SerializeToString() + field(9, size)  # raw_data
            tensors.append(field(5, len(start) + size) + start)  # initializer
        with open(path, "wb") as file:
            file.write(whole.SerializeToString() + field(7, len(graph) + sum(map(len, tensors)) + layers * size) + graph)
            for head in tensors:
                file.write(head)
                file.seek(size, 1)
            file.truncate(file.tell())
        self.assertGreater(path.stat().st_size, 390e6)
        self.assertLess(path.stat().st_blocks * 512, 50e6)
        return path

    @staticmethod
    def varint(value):
        made = bytearray()
        while value > 127:
            made.append(value & 127 | 128)
            value >>= 7
        return bytes([*made, value])

    def large_model(self):
        """400 MB of weights in 50 layers, in a file of their own as exporters put them there."""
        model = models.ModelBuilder()
        value, weight = "x", np.zeros((1414, 1414), np.float32)
        for i in range(50):
            value = model.node("MatMul", f"product{i}", [value, model.constant(f"w{i}", weight)])
            value = model.node("Gelu", f"gelu{i}", [value])
            value = model.node("LayerNormalization", f"norm{i}", [value, model.constant(f"s{i}", np.ones(1414, np.float32))])
        path = model.save(self.folder / "large.onnx", {"x": (models.FLOAT, ["batch", 1414])}, {value: (models.FLOAT, ["batch", 1414])})
        onnx.save(onnx.load(str(path)), str(path), save_as_external_data=True, location="weights.bin", size_threshold=1024)
        self.assertGreater((self.folder / "weights.bin").stat().st_size, 390e6)
        return path


if __name__ == "__main__":
    unittest.main()
