"""Foreign engines behind the spellings of devices: what they give is compared, and whatever goes wrong in them is a result with a reason."""
import json
import os
import signal
import stat
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from engines import INSTALLED, PYTHON, EngineTest
from program import UNMOOR, unmoor

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "engines"
HAS_TORCH, HAS_OPENVINO = "torch" in INSTALLED, "openvino" in INSTALLED


def children_of(process):
    try:
        return [int(each) for each in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except OSError:
        return []


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class OnnxRuntime(EngineTest):
    def test_values_and_outputs_agree_with_ours_in_both_roles(self):
        path = models.block(self.folder / "m.onnx", gelu="erf-chain")
        for reference, target in (("ort:cpu", "cpu"), ("reference", "ort:cpu"), ("ort", "ort:cpu")):
            found = self.tool("align", path, "--reference", reference, "--target", target)
            self.assertIn(found["verdict"], ("match", "explained"))
            self.assertEqual(found["target"], target)
            self.assertGreater(sum(each["entire"] is not None for each in found["values"]), 8)
        self.assertIn("further outputs", " ".join(found["environment"]["notes"]))
        self.assertIn("CPUExecutionProvider", found["environment"]["versions"]["ort:cpu provider"])

    def test_a_planted_defect_is_found_from_its_values(self):
        original = models.block(self.folder / "m.onnx")
        self.tool("run", original, "--on", "ort:cpu", "--dump", self.folder / "dump", "--range", "-2,3")
        changed = models.block(self.folder / "changed.onnx", gelu="tanh")
        found = self.tool("align", changed, "--reference", self.folder / "dump", "--target", "ort:cpu", "--range", "-2,3", status=1)
        self.assertEqual(found["first_divergent"], "block1.act")

    def test_it_is_timed_in_turns_with_ours(self):
        found = self.tool("bench", models.block(self.folder / "m.onnx"), "--on", "cpu,ort:cpu", "--seconds", "0.1", "--threads", "1")
        self.assertEqual([each["runner"] for each in found["runs"]], ["cpu", "ort:cpu"])
        self.assertEqual((found["ratios"][0]["a"], found["ratios"][0]["b"]), ("cpu", "ort:cpu"))
        self.assertTrue(all(each["warm"]["count"] >= 5 and each["load_ms"] > 0 and each["peak_bytes"] > 1e6 for each in found["runs"]))

    def test_settings_reach_it_and_wrong_ones_are_told(self):
        path = models.relu(self.folder / "m.onnx")
        self.tool("run", path, "--on", "ort:cpu", "--set", "ort.optimize=off")
        self.tool("run", path, "--on", "ort:cpu", "--set", "ort:cpu.optimize=basic")
        self.assertIn("known are: optimize", self.tool("run", path, "--on", "ort:cpu", "--set", "ort.fuse=off", status=2)["reason"])
        self.assertIn("not 'maybe'", self.tool("run", path, "--on", "ort:cpu", "--set", "ort.optimize=maybe", status=2)["reason"])
        self.assertIn("not used here", self.tool("run", path, "--on", "cpu", "--set", "ort.optimize=off", status=2)["reason"])

    def test_what_it_cannot_be_told_is_refused(self):
        path = models.relu(self.folder / "m.onnx")
        for flag in ("--explain", "--exact", "--no-fuse"):
            self.tool("run", path, "--on", "ort:cpu", flag, status=2)
        self.assertIn("is an engine", self.tool("conformance", "--on", "ort:cpu", status=2)["reason"])

    def test_every_type_of_input_crosses(self):
        path = models.two_inputs(self.folder / "m.onnx")
        ours, theirs = (self.folder / "ours.npz", self.folder / "theirs.npz")
        self.tool("run", path, "-o", ours)
        self.tool("run", path, "--on", "ort:cpu", "-o", theirs)
        import numpy as np
        with np.load(ours) as a, np.load(theirs) as b:
            self.assertEqual(sorted(a.files), sorted(b.files))
            for name in a.files:
                self.assertEqual(a[name].dtype, b[name].dtype)
                np.testing.assert_allclose(a[name], b[name], rtol=1e-6)

    def test_an_absent_provider_says_what_brings_it(self):
        found = self.tool("run", models.relu(self.folder / "m.onnx"), "--on", "ort:qnn", status=3)
        self.assertIn("no execution provider 'qnn'", found["reason"])
        self.assertIn("onnxruntime-qnn", found["reason"])

    def test_a_refused_operator_is_named_with_a_remedy(self):
        path = models.mystery(self.folder / "m.onnx")
        found = self.tool("run", path, "--on", "ort:cpu", status=3)
        self.assertIn("operator com.example:", found["reason"])
        self.assertIn("what usually helps: ", found["reason"])
        scanned = self.tool("scan", path, "--on", "ort:cpu", status=1)
        states = {each["op"]: each["state"] for each in scanned["nodes"]}
        self.assertEqual(set(states.values()), {"unknown", "unsupported"}, states)

    def test_a_node_is_called_unsupported_only_if_it_must_be_the_one(self):
        model = models.ModelBuilder()
        product = model.node("MatMul", "product", ["x", "x"])
        model.node("Mul", "second", [model.node("Mul", "first", [product, "x"]), "x"])
        path = model.save(self.folder / "m.onnx", {"x": (models.FLOAT, [4, 4])}, {"second_out": (models.FLOAT, [4, 4])})
        message = "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for {}(13) node with name '{}'"

        def states(op, name=""):
            engine = self.engine(f"def load(model): raise RuntimeError({message.format(op, name)!r})\ndef run(inputs): pass\n")
            found = self.tool("scan", path, "--on", engine, status=1 if op == "MatMul" or name else 0)
            return {each["node"]: each["state"] for each in found["nodes"]}, " ".join(each["detail"] for each in found["nodes"])

        self.assertEqual(states("MatMul")[0], {"product": "unsupported", "first": "unknown", "second": "unknown"})
        found, details = states("Mul")
        self.assertEqual(set(found.values()), {"unknown"})
        self.assertEqual(details.count("it may be this node"), 2)
        self.assertEqual(states("Mul", "second")[0], {"product": "unknown", "first": "unknown", "second": "unsupported"})

    def test_scan_and_migrate_take_it(self):
        path = models.block(self.folder / "m.onnx")
        platform = self.tool("scan", path, "--on", "ort:cpu")["platforms"][0]
        self.assertEqual((platform["name"], platform["native"]), ("ort:cpu", platform["nodes"]))
        self.assertIn("onnxruntime", platform["version"])
        found = self.tool("migrate", path, "--to", "ort:cpu", "--seconds", "0.1")
        self.assertEqual(found["verdict"], "ready")

    def test_doctor_lists_engines_with_versions_or_the_reason(self):
        ort, torch = self.tool("doctor")["engines"]
        self.assertEqual((ort["name"], ort["state"], ort["reason"]), ("ort", "ready", ""))
        self.assertIn("ort:cpu", ort["runners"])
        self.assertEqual(torch["state"], "ready" if HAS_TORCH else "absent")
        if not HAS_TORCH:
            self.assertIn("pip install torch", torch["reason"])
        for engine in self.tool("doctor", "--python", "/no/such/python")["engines"]:
            self.assertEqual(engine["state"], "absent")
            self.assertIn("/no/such/python", engine["reason"])


class Faults(EngineTest):
    """What user code and vendors' libraries do in the child."""

    def setUp(self):
        super().setUp()
        self.model = models.relu(self.folder / "m.onnx")

    def reason(self, body, status=3, **environment):
        reason = self.tool("run", self.model, "--on", self.engine(body), status=status, **environment)["reason"]
        self.assertEqual(list(self.temporary.iterdir()), [])
        return reason

    def test_a_crash_a_kill_and_an_exit_say_how_it_ended_and_its_last_words(self):
        head = "import os, sys, signal\ndef load(model): pass\n"
        for end, words in (("os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"), ("os.abort()", "killed by SIGABRT"), ("os._exit(7)", "exit status 7")):
            reason = self.reason(f"{head}def run(inputs):\n print('driver: lost', file=sys.stderr, flush=True)\n {end}\n")
            self.assertIn(words, reason)
            self.assertIn("driver: lost", reason)
        self.assertIn("SystemExit", self.reason(f"{head}def run(inputs): sys.exit(3)\n"))

    def test_an_exception_says_where(self):
        reason = self.reason("def load(model): pass\ndef run(inputs):\n    return {}['y']\n")
        self.assertIn("KeyError: 'y'", reason)
        self.assertIn("engine.py, line 3", reason)

    def test_what_it_prints_is_no_part_of_the_conversation(self):
        body = ("import os, sys\nprint('hello'); os.write(1, b'\\xff' * 100000)\ndef load(model): print('loading')\n"
                "def run(inputs):\n os.write(1, b'UNME' * 1000); sys.stdout.write('x' * 100000)\n return {'relu_out': inputs['x'] * (inputs['x'] > 0)}\n")
        self.assertEqual(self.tool("run", self.model, "--on", self.engine(body))["outputs"][0]["name"], "relu_out")

    def test_a_python_that_prints_before_it_starts(self):
        for prints, status in (("echo welcome", 0), ("head -c 200000 /dev/zero", 3), ("exec yes", 3), ("exit 5", 3), ("exec sleep 1000", 3)):
            wrapper = self.folder / "python"
            wrapper.write_text(f"#!/bin/sh\n{prints}\nexec {PYTHON} \"$@\"\n")
            wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
            found = self.tool("run", self.model, "--on", "ort:cpu", "--python", wrapper, status=status, **({"UNMOOR_PATIENCE": "3"} if status else {}))
            if status:
                self.assertIn("does not work as Python", found["reason"])

    def test_a_hang_is_given_up(self):
        start = time.monotonic()
        reason = self.reason("import time\ndef load(model): pass\ndef run(inputs): time.sleep(1000)\n", UNMOOR_PATIENCE="3")
        self.assertIn("killed after 3 s of silence", reason)
        self.assertLess(time.monotonic() - start, 60)

    def test_wrong_files_and_answers_are_told(self):
        self.assertIn("has no function run()", self.reason("def load(model): pass\n", status=2))
        self.assertIn("must return arrays by name", self.reason("def load(model): pass\ndef run(inputs): return 3\n", status=2))
        self.assertIn("gave no relu_out", self.reason("def load(model): pass\ndef run(inputs): return {'y': inputs['x']}\n", status=2))
        self.assertIn("SyntaxError", self.reason("def load(model:\n"))
        self.assertIn("needs the Python package no_such_package", self.reason("import no_such_package\n"))
        self.assertIn("there is no file", self.tool("run", self.model, "--on", f"py:{self.folder}/none.py", status=2)["reason"])

    def test_text_that_is_no_utf8_crosses(self):
        reason = self.reason("def load(model): pass\ndef run(inputs): raise RuntimeError('no file \\udcff there')\n")
        self.assertIn("no file ? there", reason)

    def slow(self):
        return self.engine("import time\ndef load(model): pass\ndef run(inputs):\n time.sleep(1000)\n")

    def start(self, *arguments):
        process = subprocess.Popen([UNMOOR, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True, env={**os.environ, **self.environment})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(wait_for(lambda: children_of(process)), "no child was started")
        time.sleep(2)
        return process, children_of(process)

    def test_a_child_that_somebody_kills_is_a_result(self):
        process, children = self.start("run", self.model, "--on", self.slow(), "--json")
        os.kill(children[0], signal.SIGKILL)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3)
        self.assertIn("killed by SIGKILL", json.loads(out)["reason"])

    def test_nothing_stays_when_unmoor_is_killed_or_stopped(self):
        for each in (signal.SIGKILL, signal.SIGINT):
            process, children = self.start("run", self.model, "--on", self.slow())
            process.send_signal(each)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, -each)
            self.assertTrue(wait_for(lambda: not any(map(is_running, children))), "orphans")
            self.assertEqual(list(self.temporary.iterdir()), [])


class UserFile(EngineTest):
    BODY = """import numpy as np, onnxruntime
def load(model):
    global session
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
def run(inputs, wanted=None):
    found = dict(zip([each.name for each in session.get_outputs()], session.run(None, inputs)))
    return {**found, **{name: np.zeros(1, np.float32) for name in wanted or () if name == "nothing"}}
"""

    def test_two_functions_are_an_engine(self):
        path = models.block(self.folder / "m.onnx")
        name = self.engine(self.BODY)
        self.assertIn(self.tool("align", path, "--target", name)["verdict"], ("match", "explained"))
        self.assertEqual(len(self.tool("bench", path, "--on", f"{name},cpu", "--seconds", "0.1")["ratios"]), 1)
        self.assertIn("--fallback forbid", self.tool("run", path, "--on", name, "--fallback", "forbid", status=2)["reason"])

    def test_threads_are_told_before_the_file_is_loaded(self):
        path = models.relu(self.folder / "m.onnx")
        name = self.engine("import os, numpy\nN = [int(os.environ[each]) for each in ('UNMOOR_THREADS', 'OMP_NUM_THREADS')]\ndef load(model): pass\n"
                           "def run(inputs): return {'relu_out': numpy.full_like(inputs['x'], N[0] * 100 + N[1])}\n")
        self.assertEqual(self.tool("run", path, "--on", name, "--threads", "3", OMP_NUM_THREADS="7")["outputs"][0]["max"], 303)
        self.assertEqual(self.tool("run", path, "--on", name, OMP_NUM_THREADS="7")["outputs"][0]["max"], len(os.sched_getaffinity(0)) * 100 + 7)

    def test_the_time_to_load_is_that_of_load(self):
        name = self.engine("import time\ntime.sleep(2)\ndef load(model): time.sleep(0.3)\ndef run(inputs): return {'relu_out': inputs['x']}\n")
        found = self.tool("bench", models.relu(self.folder / "m.onnx"), "--on", name, "--seconds", "0.01")
        self.assertTrue(300 <= found["runs"][0]["load_ms"] < 2000, found["runs"])

    @unittest.skipUnless(HAS_OPENVINO, f"openvino is not installed for {PYTHON}")
    def test_openvino_shows_its_values(self):
        path = models.block(self.folder / "m.onnx")
        found = self.tool("align", path, "--target", f"py:{EXAMPLES / 'openvino.py'}")
        self.assertIn(found["verdict"], ("match", "explained"))
        self.assertGreater(len(found["values"]), 5)
        threads = self.engine((EXAMPLES / "openvino.py").read_text() + "\nraise RuntimeError(f\"uses {settings['INFERENCE_NUM_THREADS']} threads\")\n", "ov.py")
        self.assertIn("uses 2 threads", self.tool("run", path, "--on", threads, "--threads", "2", status=3)["reason"])

    def test_the_examples_say_what_they_need(self):
        path = models.relu(self.folder / "m.onnx")
        for file, package in (("tensorrt", "tensorrt"), ("migraphx", "migraphx"), ("ascend_acl", "acl")):
            if package not in INSTALLED:
                self.assertIn(f"needs the Python package {package}", self.tool("run", path, "--on", f"py:{EXAMPLES / file}.py", status=3)["reason"])


class PyTorchWithoutIt(EngineTest):
    def test_the_script_for_another_machine_is_python_and_needs_no_package(self):
        path = models.block(self.folder / "m.onnx")
        result = unmoor("align", path, "--write-dump-script", environment={"UNMOOR_PYTHON": "/usr/bin/python3"})
        self.assertEqual(result.status, 0, result)
        compile(result.out, "dump.py", "exec")

    def test_without_a_pytorch_model_it_says_what_to_give(self):
        found = self.tool("run", models.relu(self.folder / "m.onnx"), "--on", "torch:cpu", status=2 if HAS_TORCH else 3)
        self.assertIn("--set torch.model=FILE.pt2" if HAS_TORCH else "pip install torch", found["reason"])


if __name__ == "__main__":
    unittest.main()
