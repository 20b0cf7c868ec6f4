"""A worker that crashes, lies or hangs is a result with a reason; nothing is left behind."""
import os
import stat
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import UNMOOR, ProgramTest, unmoor


def processes_with(text):
    """Ids of processes whose command line holds a text."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class Worker(ProgramTest):
    def worker(self, body):
        """A program in place of our own as worker."""
        path = self.folder / "worker.sh"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return {"UNMOOR_WORKER": str(path), "UNMOOR_PATIENCE": "2"}

    def assert_reason(self, environment, words, *tools):
        model = models.relu(self.folder / "m.onnx")
        for tool in tools or (["run", "--on", "opencl"], ["bench", "--on", "cpu", "--seconds", "0.1"], ["align", "--target", "opencl"]):
            start = time.monotonic()
            found = self.run_tool(tool[0], model, *tool[1:], status=3, environment=environment)
            self.assertIn(words, found["reason"])
            self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(processes_with(str(self.folder)), [], "orphans")

    def test_a_worker_that_aborts(self):
        self.assert_reason(self.worker("echo 'driver: assertion failed' >&2; kill -ABRT $$"), "SIGABRT")
        self.assert_reason(self.worker("echo 'driver: assertion failed' >&2; kill -SEGV $$"), "driver: assertion failed")

    def test_a_worker_that_exits(self):
        self.assert_reason(self.worker("exit 7"), "exit status 7")
        self.assert_reason(self.worker("exit 0"), "exit status 0")

    def test_a_worker_that_prints_garbage(self):
        for garbage in ("head -c 100000 /dev/urandom", "yes garbage | head -c 1000000", "printf '\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377'",
                        "printf '\\002\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000{]'"):
            self.assert_reason(self.worker(garbage), "the process that runs")

    def test_a_worker_that_hangs(self):
        self.assert_reason(self.worker("exec sleep 1000"), "the process that runs", ["run", "--on", "opencl"])

    def test_a_worker_that_is_not_there(self):
        model = models.relu(self.folder / "m.onnx")
        result = unmoor("run", model, "--on", "opencl", environment={"UNMOOR_WORKER": str(self.folder / "none")})
        self.assertIn(result.status, (2, 3), result)
        self.assertIn("none", result.err)

    def test_doctor_reports_a_probe_that_crashes(self):
        found = self.run_tool("doctor", status=1, environment=self.worker("kill -SEGV $$"))
        opencl = next(each for each in found["devices"] if each["backend"] == "opencl")
        self.assertEqual(opencl["state"], "broken")
        self.assertIn("SIGSEGV", opencl["reason"])

    def test_conformance_fails_the_case_that_crashed_and_goes_on(self):
        # Dies at the second case that it is given in a batch, answers the others.
        body = ('[ "$1" = --worker-cases ] || exit 1\nn=0\necho \'{"opened":true}\'\necho \'{"running":true}\'\nwhile read -r line; do n=$((n+1));\n'
                'if [ "$line" = "$CRASH" ]; then kill -ABRT $$; fi\necho \'{"verdict":"passed","detail":"x"}\'\ndone')
        cases = [each["case"] for each in self.run_tool("conformance", "--op", "Relu")["cases"]]
        found = self.run_tool("conformance", "--op", "Relu", status=1, environment={**self.worker(body), "CRASH": cases[1]})
        verdicts = {each["case"]: each["verdict"] for each in found["cases"]}
        self.assertEqual([case for case in cases if verdicts[case] == "failed"], [cases[1]])
        self.assertEqual((found["passed"], found["failed"]), (len(cases) - 1, 1))
        self.assertIn("SIGABRT", next(each["detail"] for each in found["cases"] if each["verdict"] == "failed"))

    def test_migrate_is_blocked_by_a_device_that_crashes(self):
        model = models.relu(self.folder / "m.onnx")
        found = self.run_tool("migrate", model, "--to", "opencl", status=1, environment=self.worker("kill -ABRT $$"))
        self.assertEqual(found["verdict"], "blocked")
        self.assertIn("SIGABRT", found["reason"])

    def test_a_killed_program_leaves_no_worker(self):
        import signal
        import subprocess
        model = models.relu(self.folder / "m.onnx")
        process = subprocess.Popen([UNMOOR, "bench", str(model), "--seconds", "100"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        children = []
        while not children and time.monotonic() < deadline:
            time.sleep(0.05)
            children = [int(each) for each in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        self.assertTrue(children)
        time.sleep(0.3)  # The worker asks for its death signal when it starts.
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 10
        while any(os.path.exists(f"/proc/{child}") for child in children) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual([child for child in children if os.path.exists(f"/proc/{child}")], [])


if __name__ == "__main__":
    unittest.main()
