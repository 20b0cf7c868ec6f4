"""What the catalogue says of ONNX Runtime's cpu agrees with what ONNX Runtime accepts (tools/check_catalog.py has the limits)."""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from program import UNMOOR

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "check_catalog.py"


class Agreement(unittest.TestCase):
    def test_answers_agree_and_every_disagreement_is_listed(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, TOOL, UNMOOR, Path(folder) / "cases"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-2000:])
        *listed, total = done.stdout.splitlines()
        cases, agreement = re.match(r"(\d+) cases .*?: ([\d.]+)% agree", total).groups()
        self.assertGreaterEqual(int(cases), 1884)
        self.assertAlmostEqual(len(listed), int(cases) * (1 - float(agreement) / 100), delta=1)


if __name__ == "__main__":
    unittest.main()
