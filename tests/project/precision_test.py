"""docs/precision.md names every operator without a noise model, as the test of the noise has them."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Precision(unittest.TestCase):
    def test_every_operator_without_a_floor_is_named_and_no_other(self):
        known = (ROOT / "tests/unit/workbench/noise_test.cpp").read_text().split("known{")[1].split("};")[0]
        tested = {name.rsplit(":", 1)[-1] for name in re.findall(r'"([^"]+)"', known)}
        self.assertGreater(len(tested), 20)
        page = (ROOT / "docs/precision.md").read_text()
        paragraph = page.split("**Without a floor**")[1].split("\n\n")[0]
        self.assertEqual(set(re.findall(r"`(\w+)`", paragraph)), tested)


if __name__ == "__main__":
    unittest.main()
