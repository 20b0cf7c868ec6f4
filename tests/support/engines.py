"""What tests of engines share: the user's Python, and files that are engines."""
import os
import subprocess
import sys
from pathlib import Path

from program import ProgramTest

PYTHON = os.environ.get("UNMOOR_PYTHON") or sys.executable  # UNMOOR_PYTHON may name one that has torch and openvino, too.


def packages(*names):
    """Those that are installed, found without importing them."""
    program = "import importlib.util as u, sys; print(*(each for each in sys.argv[1:] if u.find_spec(each)))"
    return set(subprocess.run([PYTHON, "-c", program, *names], capture_output=True, text=True, check=True).stdout.split())


INSTALLED = packages("torch", "openvino", "onnxscript", "tensorrt", "migraphx", "acl")


class EngineTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.environment = {"UNMOOR_PYTHON": PYTHON, "TMPDIR": str(self.temporary)}

    def tool(self, *arguments, status=0, **environment):
        return self.run_tool(*arguments, status=status, environment={**self.environment, **environment})

    def engine(self, body, name="engine.py"):
        path = self.folder / name
        path.write_text(body)
        return f"py:{path}"
