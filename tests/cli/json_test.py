"""Every tool's JSON holds the keys, types and defaults that are promised."""
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

from schema import COUNT, NUMBER, SCHEMAS, check


class Schema(ProgramTest):
    """The check itself must be able to fail."""

    def test_schema_finds_missing_keys_wrong_types_and_unknown_words(self):
        self.assertEqual(check({"a": 1}, {"a": COUNT}), [])
        for value, schema in [({}, {"a": COUNT}), ({"a": "1"}, {"a": COUNT}), ({"a": True}, {"a": COUNT}), ({"a": -1}, {"a": COUNT}),
                              ([{"a": "x"}], [{"a": {"y"}}]), ("nan?", NUMBER), (1, (None, str)), ({}, [str])]:
            self.assertTrue(check(value, schema), (value, schema))


class Json(ProgramTest):
    def assert_schema(self, found, name):
        self.assertEqual(check(found, SCHEMAS[name]), [])
        self.assertEqual(found["tool"], name)

    def test_run_keys_and_defaults(self):
        model = models.two_inputs(self.folder / "m.onnx")
        found = self.run_tool("run", model, "-o", self.folder / "out.npz")
        self.assert_schema(found, "run")
        self.assertEqual(found["plan"]["devices"], ["cpu"])  # --on cpu
        self.assertEqual(found["model"]["inputs"], [{"name": "a", "dtype": "float32", "shape": [1, 3]},  # Symbolic dimensions are 1.
                                                    {"name": "b", "dtype": "float32", "shape": [1, 3]},
                                                    {"name": "n", "dtype": "int64", "shape": [1]}])
        self.assertEqual({each["name"] for each in found["outputs"]}, {"sum_out", "same_out"})
        self.assertNotIn("sha256", found["model"])

    def test_generated_floats_are_normal_and_integers_are_0_or_1(self):
        model = models.two_inputs(self.folder / "m.onnx")
        shapes = ["--shapes", "a:4000x3;b:4000x3;n:4000"]
        self.run_tool("run", model, *shapes, "-o", self.folder / "out.npz", "--dump", self.folder / "dump")
        again = self.run_tool("run", model, *shapes, "--seed", 0)
        other = self.run_tool("run", model, *shapes, "--seed", 1)
        with np.load(self.folder / "out.npz") as file:
            sums, whole = file["sum_out"], file["same_out"]
        self.assertAlmostEqual(float(sums.mean()), 0, delta=0.1)
        self.assertAlmostEqual(float(sums.std()), 2 ** 0.5, delta=0.1)  # Of two independent standard normal values.
        self.assertGreater(np.abs(sums).max(), 4)  # Not uniform.
        self.assertEqual(set(np.unique(whole)), {0, 1})
        self.assertAlmostEqual(float(whole.mean()), 0.5, delta=0.1)
        mean = {each["name"]: each["mean"] for each in again["outputs"]}
        self.assertAlmostEqual(mean["sum_out"], float(sums.mean(dtype=np.float64)), places=5)  # The same seed by default.
        self.assertNotEqual(mean, {each["name"]: each["mean"] for each in other["outputs"]})

    def test_range_makes_floats_uniform(self):
        model = models.relu(self.folder / "m.onnx", ["n"])
        self.run_tool("run", model, "--shapes", "x:5000", "--range", "2,4", "-o", self.folder / "out.npz")
        with np.load(self.folder / "out.npz") as file:
            values = file["relu_out"]
        self.assertTrue(((values >= 2) & (values <= 4)).all())
        self.assertAlmostEqual(float(values.std()), 2 / 12 ** 0.5, delta=0.05)

    def test_nan_and_infinities_are_texts(self):
        np.save(self.folder / "x.npy", np.array([[np.nan, np.inf, -np.inf, 1]], np.float32))
        model = models.ModelBuilder()
        model.node("Identity", "y", ["x"])
        path = model.save(self.folder / "m.onnx", {"x": (models.FLOAT, [1, 4])}, {"y_out": (models.FLOAT, [1, 4])})
        found = self.run_tool("run", path, "-i", self.folder / "x.npy")
        self.assert_schema(found, "run")
        self.assertEqual((found["outputs"][0]["nan"], found["outputs"][0]["inf"]), (1, 2))
        # Nothing to compare but classes; -log10(0) is infinite.
        same = self.run_tool("align", path, "-i", self.folder / "x.npy")
        self.assert_schema(same, "align")
        self.assertEqual(same["outputs"][0]["entire"]["sqnr_db"], "inf")

    def test_scan_keys(self):
        found = self.run_tool("scan", models.data_dependent(self.folder / "m.onnx"), "--on", "opencl,cpu", status=1)
        self.assert_schema(found, "scan")
        self.assertEqual([each["name"] for each in found["platforms"]], ["opencl:0", "cpu"])
        for platform in found["platforms"]:
            states = [platform[state] for state in ("native", "constrained", "expanded", "fallback", "unsupported", "unknown")]
            self.assertEqual(sum(states), platform["nodes"])
            self.assertEqual(len(platform["effort_days"]), 2)
        refused = {each["node"] for each in found["nodes"] if each["platform"] == "opencl:0" and each["state"] == "fallback"}
        self.assertTrue({"places", "distinct"} <= refused, refused)
        # Declared shapes, symbols included.
        self.assertEqual(self.run_tool("scan", models.relu(self.folder / "r.onnx"))["model"]["inputs"][0]["shape"], ["batch", 4])

    def test_scan_counts_the_nodes_asked_for(self):
        found = self.run_tool("scan", models.data_dependent(self.folder / "m.onnx"), "--on", "opencl", "--node", "product")
        self.assertEqual([each["node"] for each in found["nodes"]], ["product"])
        platform = found["platforms"][0]
        self.assertEqual((platform["nodes"], platform["native"], platform["p0"] + platform["p1"], platform["effort_days"]), (1, 1, 0, [0, 0]))

    def test_versions_are_those_of_the_device(self):
        model = models.relu(self.folder / "m.onnx")
        found = self.run_tool("scan", model, "--on", "opencl,cpu")
        self.assertIn("driver", found["platforms"][0]["version"])
        self.assertEqual(found["platforms"][1]["version"], f"unmoor {found['version']}")
        for tool in (["scan", "--on", "opencl"], ["run", "--on", "opencl"], ["align", "--target", "opencl"], ["bench", "--on", "opencl", "--seconds", "0.02"]):
            self.assertIn("opencl:0 driver", self.run_tool(tool[0], model, *tool[1:])["environment"]["versions"])

    def test_fallback_is_told_by_every_tool_that_runs(self):
        model = models.data_dependent(self.folder / "m.onnx")
        nodes = self.run_tool("run", model, "--on", "opencl")["plan"]["fallback_nodes"]
        self.assertGreater(nodes, 0)
        self.assertEqual(self.run_tool("align", model, "--target", "opencl")["fallback_nodes"], nodes)
        found = self.run_tool("bench", model, "--on", "opencl", "--seconds", "0.02")
        self.assertEqual(found["runs"][0]["fallback_nodes"], nodes)
        self.assertTrue(any("fell back" in each for each in found["warnings"]))
        for tool in (["align", "--target", "opencl"], ["bench", "--on", "opencl", "--seconds", "0.02"]):
            self.assertIn("fell back", unmoor(tool[0], model, *tool[1:]).out)

    def test_fallback_in_a_body_is_told(self):
        model = models.loop(self.folder / "m.onnx")
        plan = self.run_tool("run", model, "--on", "opencl")["plan"]
        inside = {each["node"]: each["device"] for each in plan["placements"] if each["node"].startswith("loop/body/")}
        self.assertEqual((inside["loop/body/square"], inside["loop/body/distinct"]), ("opencl:0", "cpu"), plan)
        self.assertEqual(plan["fallback_nodes"], 1)
        refused = self.run_tool("run", model, "--on", "opencl", "--fallback", "forbid", status=1)["reason"]
        self.assertIn("distinct", refused)
        scanned = {each["node"]: each["state"] for each in self.run_tool("scan", model, "--on", "opencl", status=1)["nodes"]}
        self.assertEqual((scanned["loop/body/square"], scanned["loop/body/distinct"]), ("native", "fallback"))

    def test_align_keys(self):
        self.assert_schema(self.run_tool("align", models.block(self.folder / "m.onnx")), "align")

    def test_bench_keys_and_order(self):
        model = models.relu(self.folder / "m.onnx")
        found = self.run_tool("bench", model, "--on", "reference,cpu", "--seconds", "0.05", "--threads", 1)
        self.assert_schema(found, "bench")
        self.assertEqual([each["runner"] for each in found["runs"]], ["reference", "cpu"])
        self.assertEqual([each["threads"] for each in found["runs"]], [1, 1])
        for each in found["runs"]:
            self.assertGreaterEqual(each["warm"]["count"], 5)
            self.assertTrue(0 < each["warm"]["min"] <= each["warm"]["p50"] <= each["warm"]["p90"] <= each["warm"]["p99"], each)
            self.assertGreater(each["peak_bytes"], 100_000)
        self.assertEqual((found["ratios"][0]["a"], found["ratios"][0]["b"]), ("reference", "cpu"))

    def test_bench_batch_is_that_of_the_inputs(self):
        model = models.relu(self.folder / "m.onnx")
        found = self.run_tool("bench", model, "--seconds", "0.02", "--shapes", "x:7x4")
        self.assertEqual(found["runs"][0]["batch"], 7)

    def test_doctor_names_every_platform(self):
        found = self.run_tool("doctor")
        self.assert_schema(found, "doctor")
        states = {each["backend"]: each for each in found["devices"]}
        self.assertEqual(set(states), {"cpu", "reference", "opencl", "cuda", "hip", "ascend", "mlu", "musa", "xpu"})
        self.assertEqual(states["cpu"]["state"], "ready")
        self.assertGreater(states["cpu"]["check_ms"], 0)
        self.assertEqual((states["cuda"]["name"], states["cuda"]["state"]), ("cuda", "absent"))
        self.assertTrue(states["cuda"]["reason"])

    def test_conformance_keys(self):
        found = self.run_tool("conformance", "--op", "Relu")
        self.assert_schema(found, "conformance")
        self.assertEqual(found["device"], "cpu")
        self.assertEqual(found["passed"] + found["failed"] + found["refused"], len(found["cases"]))
        self.assertGreater(found["passed"], 0)
        one = self.run_tool("conformance", "--case", found["cases"][0]["case"])
        self.assertEqual([each["case"] for each in one["cases"]], [found["cases"][0]["case"]])

    def test_hash_adds_the_files_sha256(self):
        import hashlib
        model = models.relu(self.folder / "m.onnx")
        found = self.run_tool("run", model, "--hash")
        self.assertEqual(found["model"]["sha256"], hashlib.sha256(model.read_bytes()).hexdigest())

    def test_fingerprint_follows_weights_and_not_the_path(self):
        first = self.run_tool("scan", models.block(self.folder / "a.onnx"))["model"]["fingerprint"]
        self.assertEqual(first, self.run_tool("scan", models.block(self.folder / "b.onnx"))["model"]["fingerprint"])
        changed = onnx.load(str(self.folder / "b.onnx"))
        weight = changed.graph.initializer[0]
        weight.raw_data = bytes([weight.raw_data[0] ^ 1]) + weight.raw_data[1:]
        onnx.save(changed, str(self.folder / "b.onnx"))
        self.assertNotEqual(first, self.run_tool("scan", self.folder / "b.onnx")["model"]["fingerprint"])

    def test_names_that_are_not_utf8_are_replaced(self):
        model = models.relu(self.folder / "m.onnx")
        data = model.read_bytes().replace(b"relu_out", b"relu\xff\xfe\xfdx")
        model.write_bytes(data)
        result = unmoor("run", model, "--json")
        self.assertEqual(result.status, 0, result)
        self.assertIn("\ufffd", result.json["outputs"][0]["name"])
        for tool in (["run", "--on", "opencl"], ["align", "--target", "opencl"], ["bench", "--on", "opencl", "--seconds", "0.02"]):
            result = unmoor(tool[0], model, *tool[1:], "--json")
            self.assertEqual(result.status, 0, result)

    def test_input_names_that_are_not_utf8_reach_a_worker(self):
        model = models.ModelBuilder()
        model.node("Relu", "relu", ["xyz"])
        path = model.save(self.folder / "m.onnx", {"xyz": (models.FLOAT, [4])}, {"relu_out": (models.FLOAT, [4])})
        path.write_bytes(path.read_bytes().replace(b"xyz", b"\xff\xfe\xfd"))
        self.assertEqual(self.run_tool("run", path, "--on", "opencl")["plan"]["devices"][0], "opencl:0")

    def test_standard_output_is_one_object_at_every_status(self):
        model = models.relu(self.folder / "m.onnx")
        for arguments, status in [(["run"], 2), (["run", model, "--nosuch"], 2), (["nosuch"], 2), ([], 2), (["run", model, "--fallback", "maybe"], 2),
                                  (["run", self.folder / "none.onnx"], 2), (["run", model, "--on", "cuda"], 3), (["bench", model, "--seed", "x"], 2),
                                  (["migrate", model], 2), (["conformance", "--op", "Nosuch"], 2), (["align", model, "--target", "cuda"], 3),
                                  (["scan", models.mystery(self.folder / "s.onnx")], 1), (["doctor", "extra"], 2)]:
            result = unmoor(*arguments, "--json")
            self.assertEqual(result.status, status, result)
            found = result.json  # Fails on anything but one object.
            self.assertEqual(check(found, SCHEMAS["error"]), [], result)
            self.assertEqual(found["status"], status)
            self.assertTrue(found["reason"], result)

    def test_exit_zero_reports_findings_only(self):
        model = models.mystery(self.folder / "m.onnx")
        found = self.run_tool("scan", model, status=1)
        result = unmoor("scan", model, "--json", "--exit-zero")
        self.assertEqual((result.status, result.json["status"]), (0, 0))
        self.assertEqual(result.json["nodes"], found["nodes"])
        self.assertEqual(unmoor("run", self.folder / "none.onnx", "--exit-zero").status, 2)


if __name__ == "__main__":
    unittest.main()
