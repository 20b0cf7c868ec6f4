"""A small set of what bench/precision/measure.py measures: each figure must be reached here, too."""
import os
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / each) for each in ("tests/precision", "bench/precision", "bench")]
import nodes
import sown

PROGRAM = os.environ["NAME_CAUSES"]
SEED = 23


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        place = Path(folder.name)
        cls.float32 = nodes.ask(PROGRAM, sown.float32_plants(SEED, 1), place / "float32")
        cls.float16 = nodes.ask(PROGRAM, sown.narrow_plants(SEED, 1, np.float16), place / "float16")
        cls.systematic = nodes.ask(PROGRAM, nodes.systematic_plants(SEED, 5), place / "systematic")
        cls.right = nodes.ask_plain(PROGRAM, nodes.clean_by(nodes.by_onnx_runtime, sown.clean_cases(SEED, 2)), place / "right")
        cls.stored = nodes.ask_plain(PROGRAM, nodes.clean_narrow(sown.clean_cases(SEED, 2), np.float16), place / "stored")

    def reached(self, rows, what, asked, least):
        self.assertGreaterEqual(len(rows), least, "too few to tell")
        missed = [(row.plant.ids, row.plant.case.op, row.answer) for row in rows if not what(row)]
        self.assertGreaterEqual(1 - len(missed) / len(rows), asked, missed)

    def test_what_computes_something_else_is_caught(self):
        shown = [row for row in self.float32 if row.shows]
        self.assertGreaterEqual(len(shown), 0.85 * len(self.float32), "those left out")
        self.reached(shown, lambda row: row.caught, 0.97, 40)

    def test_the_cause_is_named_of_float32_and_of_float16_targets(self):
        self.reached([row for row in self.float32 if row.shows], lambda row: row.named, 0.95, 40)
        self.reached([row for row in self.float16 if row.shows], lambda row: row.named, 0.9, 15)

    def test_a_pattern_near_the_floor_is_described(self):
        self.reached(self.systematic, lambda row: row.systematic, 0.9, 20)

    def test_nothing_right_is_flagged_or_has_a_cause(self):
        for rows in (self.right, self.stored):
            self.reached(rows, lambda row: not row.caught and not row.answer.get("cause") and not row.answer.get("error"), 1, 15)


if __name__ == "__main__":
    unittest.main()
