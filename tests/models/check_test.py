"""The comparison of tests/models/check.py finds planted defects."""
import unittest

import numpy as np

import check


class Compare(unittest.TestCase):
    def setUp(self):
        self.want = np.random.default_rng(0).standard_normal((4, 50)).astype(np.float32)

    def test_equal_values_pass(self):
        self.assertEqual(check.compare("y", self.want.copy(), self.want), [])

    def test_one_wrong_element_is_found(self):
        got = self.want.copy()
        got[2, 3] += 0.01
        self.assertEqual(len(check.compare("y", got, self.want)), 1)

    def test_another_best_class_is_found(self):
        want = np.zeros((1, 1000), np.float32)
        want[0, :2] = 1, 0.999
        got = want.copy()
        got[0, :2] = 0.9999, 1.0
        self.assertIn("another class is best", " ".join(check.compare("y", got, want)))

    def test_a_tie_may_fall_either_way(self):
        want = np.array([[0, 1, 1 - 1e-6]], np.float32)
        self.assertEqual(check.compare("y", np.array([[0, 1 - 1e-6, 1]], np.float32), want), [])

    def test_shape_dtype_and_infinities_are_compared(self):
        self.assertEqual(len(check.compare("y", self.want[:2], self.want)), 1)
        self.assertEqual(len(check.compare("y", self.want.astype(np.float64), self.want)), 1)
        got = self.want.copy()
        got[0, 0] = np.nan
        self.assertEqual(len(check.compare("y", got, self.want)), 1)

    def test_integers_must_be_exact(self):
        self.assertEqual(len(check.compare("y", np.array([1, 2]), np.array([1, 3]))), 1)

    def test_quantised_outputs_are_compared_by_cosine(self):
        self.assertEqual(check.compare("y", self.want * 1.01, self.want, quantised=True), [])
        self.assertEqual(len(check.compare("y", -self.want, self.want, quantised=True)), 1)

    def test_another_best_class_of_a_quantised_output_is_found(self):
        want = np.random.default_rng(0).uniform(0, 1, (8, 1000)).astype(np.float32)
        want[:, 3] = 2
        got = want.copy()
        got[5, 4] = 2.1
        self.assertEqual(check.compare("y", got, want, quantised=True), [])
        self.assertIn("another class is best", " ".join(check.compare("y", got, want, quantised=True, classes=True)))

    def test_float16_may_be_off_by_more_than_float32(self):
        half = self.want.astype(np.float16)
        self.assertEqual(check.compare("y", (half * np.float16(1.001)).astype(np.float16), half), [])
        self.assertEqual(len(check.compare("y", (half * np.float16(1.01)).astype(np.float16), half)), 1)
        self.assertEqual(len(check.compare("y", self.want * np.float32(1.001), self.want)), 1)


class Fallback(unittest.TestCase):
    def complaints(self, **placement):
        each = {"op": "Abs", "node": "a", "device": "cpu", "state": "fallback", "refusals": [{"reason": "no-kernel", "detail": "no kernel for Abs"}]}
        return check.silent_fallbacks({"devices": ["opencl:0", "cpu"], "placements": [{**each, **placement}]})

    def test_a_reason_suffices(self):
        self.assertEqual(self.complaints(), [])
        self.assertEqual(self.complaints(device="opencl:0", state="native", refusals=[]), [])
        self.assertEqual(self.complaints(state="host", refusals=[]), [])

    def test_a_node_elsewhere_without_a_reason_is_found(self):
        self.assertEqual(len(self.complaints(refusals=[])), 1)
        self.assertEqual(len(self.complaints(state="native")), 1)


class Meaning(unittest.TestCase):
    def test_repeats_and_blanks_are_dropped(self):
        steps = np.eye(4, dtype=np.float32)[[1, 1, 0, 1, 3]][None]
        meaning = {"output": "y", "kind": "ctc", "value": [1, 1, 3]}
        self.assertIsNone(check.read_as_user(meaning, {"y": steps}, {}))
        self.assertIn("[1, 1, 3]", check.read_as_user(dict(meaning, value=[1, 3]), {"y": steps}, {}))

    def test_the_class_over_time_is_read(self):
        scores = np.array([[[0, 1, 0], [0, 0, 3]]], np.float32)
        meaning = {"output": "y", "kind": "mean_argmax", "value": [2]}
        self.assertIsNone(check.read_as_user(meaning, {"y": scores}, {}))
        self.assertIn("[2]", check.read_as_user(dict(meaning, value=[1]), {"y": scores}, {}))

    def test_too_few_pixels_are_found(self):
        meaning = {"output": "y", "kind": "pixels_over", "threshold": 0.5, "at_least": 1, "at_most": 2}
        self.assertIsNone(check.read_as_user(meaning, {"y": np.array([0.2, 0.9])}, {}))
        self.assertIsNotNone(check.read_as_user(meaning, {"y": np.array([0.2, 0.3])}, {}))


if __name__ == "__main__":
    unittest.main()
