"""What would not fit in memory is refused before it is allocated, with the node and the size."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest


class Memory(ProgramTest):
    def test_a_shape_that_does_not_fit_names_its_node_and_its_size(self):
        for device in ("cpu", "reference"):
            for late in (False, True):
                model = models.wide(self.folder / "m.onnx", 1 << 20, 1 << 20, late)
                reason = self.run_tool("run", model, "--on", device, status=3)["reason"]
                for words in ("4096 GiB of memory were asked for", "Expand 'spread'", "UNMOOR_MEMORY_LIMIT"):
                    self.assertIn(words, reason)

    def test_what_a_kernel_prepares_for_a_shape_that_does_not_fit_is_not_made_either(self):
        model = models.resized(self.folder / "m.onnx", 1 << 33)
        reason = self.run_tool("run", model, status=3, environment={"UNMOOR_MEMORY_LIMIT": "64M"})["reason"]
        for words in ("32 GiB of memory were asked for", "Resize 'resized'"):
            self.assertIn(words, reason)

    def test_the_limit_can_be_set(self):
        model = models.wide(self.folder / "m.onnx", 1 << 10, 1 << 10)
        self.run_tool("run", model)
        self.assertIn("4 MiB of memory were asked for", self.run_tool("run", model, status=3, environment={"UNMOOR_MEMORY_LIMIT": "3M"})["reason"])


if __name__ == "__main__":
    unittest.main()
