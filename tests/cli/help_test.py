"""Help and version; docs/cli.md says what the program says."""
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import UNMOOR, ProgramTest, unmoor

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ("migrate", "scan", "run", "align", "bench", "doctor", "conformance", "catalog", "report")


class Help(ProgramTest):
    def test_every_tool_shows_an_example_and_fits_80_columns(self):
        overview = unmoor("--help")
        self.assertEqual(overview.status, 0)
        for tool in TOOLS:
            self.assertIn(f"  {tool} ", overview.out)
            shown = unmoor(tool, "--help")
            self.assertEqual((shown.status, shown.err), (0, ""))
            self.assertIn(f"Example: unmoor {tool}", shown.out)
            self.assertIn("Exit status: 0", shown.out)
            self.assertIn(f"Usage: unmoor {tool}", shown.out)
            for line in (shown.out + overview.out).splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_engines_stand_where_they_are_taken_and_nowhere_else(self):
        for tool in ("run", "scan", "bench", "migrate", "align", "conformance"):
            shown = unmoor(tool, "--help").out
            self.assertEqual("engine" in shown, tool != "conformance", shown)

    def test_version(self):
        shown = unmoor("--version")
        self.assertRegex(shown.out, r"\Aunmoor \d+\.\d+\.\d+\n\Z")
        self.assertEqual(shown.status, 0)

    def test_wrong_use_is_said_on_the_error_stream_with_what_to_try(self):
        result = unmoor("run")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assertIn("MODEL", result.err)
        self.assertIn("unmoor run --help", result.err)

    def test_results_fit_80_columns_and_hold_no_colour_or_progress(self):
        model = models.block(self.folder / "m.onnx")
        for arguments in (["run", model, "--explain"], ["run", model, "--kernels"], ["scan", model, "--on", "cpu,opencl"], ["align", model],
                          ["bench", model, "--seconds", "0.05"], ["conformance", "--op", "Relu"]):
            result = unmoor(*arguments)
            self.assertEqual(result.status, 0, result)
            self.assertNotIn("\x1b", result.out + result.err)
            self.assertNotIn("\r", result.out + result.err)
            for line in result.out.splitlines():
                if not line.lstrip().startswith(("not ", "note:", "wrote ")):
                    self.assertLessEqual(len(line), 80, line)

    def test_docs_are_what_the_program_says(self):
        done = subprocess.run([sys.executable, ROOT / "tools/make_docs.py", "--check", UNMOOR], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
