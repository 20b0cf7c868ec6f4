"""The rules of facts.py against planted defects."""
import unittest

import ml_dtypes
import numpy as np

import facts

HALF = np.dtype(np.float16)


def fact(values, dtype, by="someone float64"):
    return {"case": "Op", "by": by, "outputs": [{"dtype": dtype, "shape": [len(values)], "values": values}]}


class Rules(unittest.TestCase):
    def test_a_16_bit_result_is_the_float64_one_rounded_once_or_a_step_beside_it(self):
        exact = [1.0003, 1000.0]
        for steps, met in ((0, True), (1, True), (2, False)):
            stored = np.array([1 + steps * 2.0**-10, 1000], np.float16)
            self.assertEqual(facts.problem(fact(exact, "float16"), [stored]) == "", met, steps)
        far = np.array([1 + 3 * 2.0**-7, 1000], ml_dtypes.bfloat16)
        self.assertTrue(facts.problem(fact(exact, "bfloat16"), [far]))

    def test_float32_beside_large_values_is_held_to_its_own_steps(self):
        self.assertTrue(facts.problem(fact([1e-3, 1e6], "float32"), [np.array([1.002e-3, 1e6], np.float32)]))
        self.assertFalse(facts.problem(fact([1e-3, 1e6], "float32", "someone"), [np.array([1.002e-3, 1e6], np.float32)]))

    def test_what_rounds_to_infinity_may_be_the_largest(self):
        for stored, met in ((np.inf, True), (65504, True), (60000, False), (-np.inf, False)):
            self.assertEqual(facts.agrees(70000.0, stored, HALF, "exact", 1), met, stored)

    def test_nan_meets_only_nan(self):
        for dtype in (HALF, np.dtype(ml_dtypes.float8_e4m3fn)):
            self.assertTrue(facts.agrees(float("nan"), float("nan"), dtype, "exact", 1))
            self.assertFalse(facts.agrees(float("nan"), 1.0, dtype, "usual", 1))

    def test_other_shapes_dtypes_and_counts_are_a_problem(self):
        told = fact([1.0, 2.0], "float32")
        for stored in ([np.zeros(3, np.float32)], [np.zeros(2)], [], [[np.zeros(2, np.float32)]]):
            self.assertTrue(facts.problem(told, stored))

    def test_a_sequence_is_compared_item_by_item(self):
        ours = [np.array([1, 2], np.int64), np.array([3], np.int64)]
        described = facts.describe([[each.copy() for each in ours]], [ours])
        told = {"case": "Op", "by": "someone", "outputs": described}
        self.assertEqual(facts.problem(told, [ours]), "")
        self.assertTrue(facts.problem(told, [[ours[0], ours[1] + 1]]))
        self.assertIsInstance(facts.describe([ours[:1]], [ours]), str)

    def test_settled_patterns_say_who_and_why(self):
        for entry in facts.Settled().entries:
            self.assertTrue(entry["who"] and entry["cases"] and len(entry["why"]) > 20, entry)
        settled = facts.Settled()
        self.assertFalse(settled.explains("Add f32[2] f32[2]", "onnxruntime", False))


if __name__ == "__main__":
    unittest.main()
