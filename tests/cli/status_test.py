"""Exit statuses, and that a refusal is complete before anything runs."""
import os
import stat
import subprocess
import sys
import unittest
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import UNMOOR, ProgramTest, unmoor


class Status(ProgramTest):
    def test_unknown_device_is_wrong_use_and_absent_ones_are_missing(self):
        model = models.relu(self.folder / "m.onnx")
        for tool in ("run", "scan", "bench", "conformance"):
            arguments = [tool] if tool == "conformance" else [tool, model]
            unknown = self.run_tool(*arguments, "--on", "gpu", status=2)
            self.assertIn("opencl", unknown["reason"])  # What is known is listed.
            for absent in ("cuda", "hip", "ascend", "mlu", "musa", "xpu", "cpu:1", "opencl:9"):
                self.run_tool(*arguments, "--on", absent, status=3)
            self.run_tool(*arguments, "--on", "opencl:first", status=2)
        self.run_tool("migrate", model, "--to", "gpu", status=2)
        self.run_tool("migrate", model, "--to", "cuda", status=3)
        self.run_tool("align", model, "--reference", "gpu", status=2)
        self.run_tool("align", model, "--target", "hip", status=3)

    def test_missing_opencl_library_is_a_missing_device_with_the_reason(self):
        found = self.run_tool("run", models.relu(self.folder / "m.onnx"), "--on", "opencl", status=3,
                              environment={"OCL_ICD_VENDORS": str(self.folder)})
        self.assertIn("opencl", found["reason"].lower())

    def test_files_that_cannot_be_read_are_bad_input(self):
        model = models.block(self.folder / "m.onnx")
        damaged = self.folder / "damaged.onnx"
        data = model.read_bytes()
        for content in (b"", b"no model", data[: len(data) // 2], data[:40], b"\xff" * 64):
            damaged.write_bytes(content)
            for tool in (["run"], ["scan"], ["align"], ["bench"], ["migrate", "--to", "cpu"]):
                found = self.run_tool(tool[0], damaged, *tool[1:], status=2)
                self.assertIn("damaged.onnx", found["reason"])
        self.run_tool("run", self.folder / "none.onnx", status=2)
        self.run_tool("run", self.folder, status=2)

    def test_external_data_that_is_missing_is_bad_input(self):
        model = models.block(self.folder / "m.onnx")
        loaded = onnx.load(str(model))
        onnx.save(loaded, str(self.folder / "e.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0)
        self.run_tool("run", self.folder / "e.onnx")
        os.truncate(self.folder / "weights.bin", 100)
        self.assertIn("weights.bin", self.run_tool("run", self.folder / "e.onnx", status=2)["reason"])
        (self.folder / "weights.bin").unlink()
        self.assertIn("weights.bin", self.run_tool("run", self.folder / "e.onnx", status=2)["reason"])

    def test_outputs_that_cannot_be_written_are_bad_input(self):
        model = models.relu(self.folder / "m.onnx")
        for flags in (["-o", "/nowhere/out.npz"], ["--dump", "/proc/nowhere"], ["--html", "/nowhere/page.html"]):
            self.run_tool("run", model, *flags, status=2)

    def test_inputs_that_do_not_fit_are_bad_input(self):
        import numpy as np
        model = models.two_inputs(self.folder / "m.onnx")
        np.save(self.folder / "wide.npy", np.zeros((2, 5), np.float32))
        np.save(self.folder / "whole.npy", np.zeros((2, 3), np.int32))
        np.save(self.folder / "good.npy", np.zeros((2, 3), np.float32))
        (self.folder / "bad.npy").write_bytes(b"\x93NUMPY nonsense")
        for inputs in (["-i", f"a={self.folder}/wide.npy"], ["-i", f"a={self.folder}/whole.npy"], ["-i", f"nosuch={self.folder}/good.npy"],
                       ["-i", f"{self.folder}/good.npy"], ["-i", f"a={self.folder}/bad.npy"], ["-i", f"a={self.folder}/none.npy"],
                       ["--shapes", "nosuch:1x3"], ["--shapes", "a:1xx3"], ["--shapes", "a"], ["--range", "2"], ["--range", "3,1"],
                       ["--set", "cpu"], ["--set", "cpu.nosuch=1"], ["--seed", "-1"], ["--range", "1x,2"],
                       ["--range=-inf,inf"], ["--set", "nosuch.threads=1"], ["--set", "opencl.nosuch=1"], ["--set", "cpu:1.threads=1"]):
            self.assertTrue(self.run_tool("run", model, *inputs, status=2)["reason"], inputs)

    def test_numbers_that_would_never_end_or_allow_everything_are_wrong_use(self):
        model = models.relu(self.folder / "m.onnx")
        for seconds in ("inf", "nan", "-1", "1e300"):
            self.run_tool("bench", model, f"--seconds={seconds}", status=2)
        for tolerance in ("nan", "inf", "-1"):
            self.run_tool("align", model, f"--atol={tolerance}", status=2)
            self.run_tool("align", model, f"--rtol={tolerance}", status=2)

    def test_nodes_and_operators_that_are_not_there_are_wrong_use(self):
        model = models.block(self.folder / "m.onnx")
        for flags in (["--node", "block0.nrom"], ["--op", "MatMull"]):
            for tool in (["align"], ["scan"], ["run", "--explain"]):
                self.run_tool(tool[0], model, *tool[1:], *flags, status=2)
        self.run_tool("conformance", "--op", "Relu", "--category", "conv", status=2)
        shown = unmoor("run", model, "--node", "block0.norm")
        self.assertEqual(shown.status, 0, shown)
        self.assertIn("block0.norm", shown.out)
        self.assertNotIn("block1.norm", shown.out)

    def test_output_that_cannot_be_written_is_said(self):
        model = models.block(self.folder / "m.onnx", layers=40)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode), "the device that is always full is none here")
        for flags in ([], ["--json", "--explain"]):
            with open("/dev/full", "wb") as full:
                for target, options in (("closed", {"preexec_fn": lambda: os.close(1)}), ("full", {"stdout": full})):
                    done = subprocess.run([UNMOOR, "run", model, *flags], stderr=subprocess.PIPE, check=False, **options)
                    self.assertEqual(done.returncode, 2, (target, flags, done.stderr))
                    self.assertIn(b"standard output is closed or full", done.stderr)

    def test_a_folder_called_as_a_device_is_no_dump(self):
        model = models.relu(self.folder / "m.onnx")
        (self.folder / "cpu").mkdir()
        (self.folder / "reference").mkdir()
        self.assertEqual(self.run_tool("align", model, folder=self.folder)["target"], "cpu")

    def test_an_operator_nobody_knows_is_a_finding_under_any_policy(self):
        model = models.mystery(self.folder / "m.onnx")
        for device in ("cpu", "reference", "opencl"):
            for policy in ("report", "forbid"):
                reason = self.run_tool("run", model, "--on", device, "--fallback", policy, status=1)["reason"]
                self.assertIn("com.example:Mystery", reason)
                self.assertIn("strange", reason)

    def test_scan_names_an_operator_nobody_knows(self):
        found = self.run_tool("scan", models.mystery(self.folder / "m.onnx"), "--on", "cpu,opencl", status=1)
        for platform in ("cpu", "opencl:0"):
            strange = [each for each in found["nodes"] if each["node"] == "strange" and each["platform"] == platform]
            self.assertEqual([(each["op"], each["state"], each["reason"], each["priority"]) for each in strange],
                             [("com.example:Mystery", "unsupported", "no-kernel", "P0")])
            self.assertTrue(strange[0]["detail"] and strange[0]["advice"])

    def test_forbid_lists_every_refused_node_before_anything_runs(self):
        model = models.data_dependent(self.folder / "m.onnx")
        result = unmoor("run", model, "--on", "opencl", "--fallback", "forbid", "--dump", self.folder / "dump", "-o", self.folder / "out.npz")
        self.assertEqual(result.status, 1, result)
        refusal = result.err
        for node in ("places", "distinct"):
            lines = [line for line in refusal.splitlines() if f"'{node}'" in line]
            self.assertEqual(len(lines), 1, result)
            self.assertIn("dynamic", lines[0] + refusal)
        self.assertFalse(list(self.folder.glob("dump/*.npy")), "nothing ran")
        self.assertFalse((self.folder / "out.npz").exists())
        self.assertEqual(self.run_tool("run", model, "--on", "opencl", "--fallback", "forbid", status=1)["status"], 1)

    def test_report_runs_what_the_device_refuses_on_the_cpu_and_says_so(self):
        model = models.data_dependent(self.folder / "m.onnx")
        plan = self.run_tool("run", model, "--on", "opencl")["plan"]
        self.assertEqual(plan["devices"], ["opencl:0", "cpu"])
        self.assertGreaterEqual(plan["fallback_nodes"], 2)
        placed = {each["node"]: each for each in plan["placements"]}
        for node in ("places", "distinct"):
            self.assertEqual(placed[node]["device"], "cpu")
            self.assertEqual([each["device"] for each in placed[node]["refusals"]][:1], ["opencl:0"])
        self.assertGreater(plan["copy_count"], 0)
        self.assertGreater(plan["copied_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
