"""What never ends is ended: by a limit, by Ctrl-C, by SIGTERM. Nothing is left behind."""
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import UNMOOR, ProgramTest, unmoor


class Stop(ProgramTest):
    def start(self, *arguments, environment=None):
        """A run in a session of its own, so that a signal meets it alone; given a second to get under way."""
        process = subprocess.Popen([UNMOOR, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True, env={**os.environ, **(environment or {})})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        time.sleep(1)
        self.assertIsNone(process.poll(), "it ended by itself")
        return process

    def processes(self, session):
        """Ids of the processes of a session."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3]) == session:
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def test_a_loop_without_end_meets_the_limit(self):
        model = models.endless_loop(self.folder / "m.onnx")
        found = self.run_tool("run", model, status=2, environment={"UNMOOR_LOOP_LIMIT": "1000"})
        for words in ("1000 rounds", "Loop 'for_ever'", "UNMOOR_LOOP_LIMIT"):
            self.assertIn(words, found["reason"])
        self.assertIn("'many' is no number of rounds", self.run_tool("run", model, status=2, environment={"UNMOOR_LOOP_LIMIT": "many"})["reason"])

    def test_a_signal_ends_a_run_by_the_signal_and_leaves_nothing(self):
        model = models.endless_loop(self.folder / "m.onnx")
        for each in (signal.SIGINT, signal.SIGTERM):
            process = self.start("run", model, "-o", self.folder / "out.npz", "--json")
            process.send_signal(each)
            out, err = process.communicate(timeout=20)
            self.assertEqual(process.returncode, -each, err)
            self.assertEqual(out, b"")
            self.assertIn(b"stopped", err)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["m.onnx"])

    def test_workers_end_with_the_run(self):
        model = models.endless_loop(self.folder / "m.onnx")
        process = self.start("bench", model, "--on", "cpu")
        self.assertGreater(len(self.processes(process.pid)), 1, "no worker was started")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual(self.processes(process.pid), [])

    def test_a_shell_sees_130(self):
        model = models.endless_loop(self.folder / "m.onnx")
        process = subprocess.run(["sh", "-c", 'timeout --signal=INT --preserve-status 1 "$0" run "$1"', UNMOOR, str(model)], capture_output=True, timeout=60)
        self.assertEqual(process.returncode, 130, process.stderr)

    def test_what_is_ignored_stays_ignored(self):
        model = models.endless_loop(self.folder / "m.onnx")
        result = subprocess.run(["sh", "-c", 'trap "" INT; "$0" run "$1" & sleep 1; kill -INT $!; wait $!', UNMOOR, str(model)], capture_output=True,
                                timeout=240, env={**os.environ, "UNMOOR_LOOP_LIMIT": "200000"})
        self.assertEqual(result.returncode, 2, result.stderr)


if __name__ == "__main__":
    unittest.main()
