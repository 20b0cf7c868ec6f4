"""Packed weights are kept for the next run, and --exact keeps to plain sums."""
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import UNMOOR, ProgramTest, unmoor


class Weights(ProgramTest):
    def setUp(self):
        super().setUp()
        model = models.ModelBuilder()
        draw = np.random.default_rng(1)
        model.node("MatMul", "product", ["x", model.constant("w", draw.standard_normal((1024, 1536)).astype(np.float32))])
        self.model = model.save(self.folder / "m.onnx", {"x": (models.FLOAT, [4, 1024])}, {"product_out": (models.FLOAT, [4, 1536])})
        time.sleep(2.1)  # A model that was written just now is not kept: time stamps may not tell the next change.
        self.environment = {"XDG_CACHE_HOME": str(self.folder / "cache"), "UNMOOR_WEIGHTS_CACHE": ""}

    def note_of(self, *arguments, environment=None):
        found = self.run_tool("run", self.model, *arguments, environment={**self.environment, **(environment or {})})
        return found["outputs"], found["plan"]["notes"][0]

    def files(self):
        return sorted((self.folder / "cache" / "unmoor" / "weights").glob("*.weights"))

    def test_the_second_run_maps_what_the_first_packed(self):
        first, note = self.note_of()
        self.assertIn("0 MiB from the cache, 6 MiB packed anew", note)
        self.assertEqual(len(self.files()), 1)
        self.assertEqual(self.files()[0].stat().st_mode & 0o777, 0o600)
        second, note = self.note_of()
        self.assertIn("6 MiB from the cache, 0 MiB packed anew", note)
        self.assertEqual(first, second)

    def test_a_damaged_file_is_packed_again(self):
        first, _ = self.note_of()
        path = self.files()[0]
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        again, note = self.note_of()
        self.assertIn("is damaged", note)
        self.assertEqual(first, again)
        self.assertIn("6 MiB from the cache", self.note_of()[1])

    def test_a_model_that_changed_is_packed_again(self):
        self.note_of()
        data = bytearray(Path(self.model).read_bytes())
        data[len(data) // 2] ^= 1
        before = os.stat(self.model)
        Path(self.model).write_bytes(data)
        os.utime(self.model, ns=(before.st_atime_ns, before.st_mtime_ns))
        time.sleep(2.1)
        self.assertIn("0 MiB from the cache", self.note_of()[1])

    def test_it_can_be_switched_off_and_kept_small(self):
        self.assertIn("the cache is off", self.note_of("--set", "cpu.weights_cache=off")[1])
        self.assertIn("the cache is off", self.note_of(environment={"UNMOOR_WEIGHTS_CACHE": "off"})[1])
        self.note_of("--set", "cpu.weights_cache=5M")
        self.assertEqual(self.files(), [])
        self.note_of("--set", "cpu.weights_cache=on", environment={"UNMOOR_WEIGHTS_CACHE": "off"})
        self.assertEqual(len(self.files()), 1)
        for value in ("maybe", "0"):
            reason = self.run_tool("run", self.model, "--set", f"cpu.weights_cache={value}", status=2)["reason"]
            self.assertIn("not on, off or how much it may hold", reason)

    def test_a_cache_folder_that_cannot_be_written_harms_nobody(self):
        note = self.note_of(environment={"XDG_CACHE_HOME": "/proc/nothing"})[1]
        self.assertIn("there is no cache folder", note)
        self.assertIn(note.split(";")[0], unmoor("run", self.model, "--explain", environment={**self.environment, "XDG_CACHE_HOME": "/proc/nothing"}).out)

    def test_many_at_once_agree(self):
        runs = [subprocess.Popen([UNMOOR, "run", str(self.model), "--threads", "1"], env={**os.environ, **self.environment}, stdout=subprocess.PIPE)
                for _ in range(6)]
        answers = {run.communicate()[0] for run in runs}
        self.assertEqual([run.returncode for run in runs], [0] * 6)
        self.assertEqual(len(answers), 1)
        self.assertEqual(len(self.files()), 1)
        self.assertIn("6 MiB from the cache", self.note_of()[1])


class Exact(ProgramTest):
    def kernels(self, *arguments):
        return [each["kernel"] for each in self.run_tool("run", models.images(self.folder / "m.onnx"), *arguments)["plan"]["placements"]]

    def test_no_kernel_rounds_otherwise_than_sums_do(self):
        self.assertTrue(any("winograd" in each for each in self.kernels()))
        for exact in (["--exact"], ["--exact", "--set", "cpu.winograd=on"], ["--set", "cpu.exact=on"]):
            self.assertFalse(any("winograd" in each for each in self.kernels(*exact)), exact)

    def test_every_device_and_tool_takes_it(self):
        model = models.images(self.folder / "m.onnx")
        for device in ("cpu", "opencl", "reference"):
            self.run_tool("run", model, "--on", device, "--exact")
            self.assertIn("not on or off", self.run_tool("run", model, "--on", device, "--set", f"{device}.exact=maybe", status=2)["reason"])
        self.run_tool("align", model, "--exact")
        self.run_tool("bench", model, "--exact", "--seconds", "0.02")
        self.run_tool("scan", model, "--exact")
        found = self.run_tool("conformance", "--op", "Conv", "--exact")
        self.assertEqual(found["failed"], 0)


class Amx(ProgramTest):
    def setUp(self):
        super().setUp()
        model = models.ModelBuilder()
        weights = np.random.default_rng(1).standard_normal((128, 128)).astype(np.float32)
        model.node("MatMul", "product", ["x", model.constant("w", weights)])
        self.model = model.save(self.folder / "m.onnx", {"x": (models.FLOAT, [128, 128])}, {"product_out": (models.FLOAT, [128, 128])})
        devices = {each["name"]: each for each in self.run_tool("doctor")["devices"]}
        self.amx = devices["cpu"]["versions"]["amx"]

    def test_it_is_on_or_every_tool_says_why_not(self):
        placed = self.run_tool("run", self.model)["plan"]["placements"][0]
        shown = " ".join(unmoor("run", self.model, "--kernels").out.split())
        if self.amx == "on":
            self.assertEqual(placed["kernel"], "cpu.matmul.f32x6")
            return
        self.assertTrue(self.amx.startswith("off: "), self.amx)
        reason = self.amx.removeprefix("off: ")
        self.assertEqual(placed["refusals"][0], {"device": "cpu", "kernel": "cpu.matmul.f32x6", "reason": "device-feature", "detail": reason})
        self.assertEqual(placed["kernel"], "cpu.matmul.packed")
        self.assertIn(f"not cpu.matmul.f32x6: device-feature: {reason}", shown)
        self.assertIn(f"amx off: {reason}", unmoor("doctor").out)

    def test_two_flags_switch_it_off(self):
        for arguments in (["--exact"], ["--set", "cpu.amx=off"]):
            shown = unmoor("run", self.model, "--kernels", *arguments).out
            self.assertNotIn("f32x6", shown)
            self.assertIn("cpu.matmul.packed", shown)
        self.assertIn("not on or off", self.run_tool("run", self.model, "--set", "cpu.amx=maybe", status=2)["reason"])


class Kernels(ProgramTest):
    def test_a_plan_says_why_not_each_other_kernel(self):
        placed = self.run_tool("run", models.relu(self.folder / "r.onnx"))["plan"]["placements"][0]
        asked = [each["kernel"] for each in placed["refusals"]] + [placed["kernel"]] + [each["kernel"] for each in placed["later"]]
        self.assertEqual(asked, self.doctor()["cpu"]["Relu"] + ["cpu.generic"])
        model = models.images(self.folder / "m.onnx")
        for placed in self.run_tool("run", model)["plan"]["placements"]:
            for each in placed["refusals"]:
                self.assertTrue(each["reason"] and each["detail"], each)
            if placed["kernel"] != "cpu.generic":
                self.assertEqual(placed["later"][-1], {"device": "cpu", "kernel": "cpu.generic", "reason": "", "detail": ""})
        shown = unmoor("run", model, "--kernels").out
        self.assertIn("  after it cpu.generic", shown)
        self.assertIn("  not cpu.", shown)
        self.assertNotIn("after it", unmoor("run", model, "--explain").out)

    def doctor(self):
        if not hasattr(self, "listed"):
            self.listed = self.run_tool("doctor", "--kernels")["kernels"]
        return self.listed

    def test_doctor_lists_the_kernels_of_every_device(self):
        listed = self.doctor()
        self.assertEqual(listed["cpu"]["MatMul"][0].split(".")[0], "cpu")
        self.assertEqual(listed["cpu"]["*"], ["cpu.generic"])
        self.assertIn("MatMul", listed["opencl:0"])
        self.assertNotIn("kernels", self.run_tool("doctor"))
        shown = unmoor("doctor", "--kernels").out
        self.assertIn("cpu: kernels by operator", shown)
        for line in shown[shown.index("cpu: kernels by operator") :].splitlines():
            self.assertLessEqual(len(line), 80, line)


if __name__ == "__main__":
    unittest.main()
