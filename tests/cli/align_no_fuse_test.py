"""`align --no-fuse` says what it changes."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor


class NoFuse(ProgramTest):
    def test_what_no_fuse_changes_is_said(self):
        model = models.block(self.folder / "m.onnx", gelu="tanh")
        found = self.run_tool("align", model, "--no-fuse")
        self.assertGreater(found["no_fuse"]["steps"], found["no_fuse"]["fused_steps"])
        self.assertGreater(found["no_fuse"]["fused_nodes"], 0)
        self.assertIn("--no-fuse ran", unmoor("align", model, "--no-fuse").out)
        self.assertNotIn("no_fuse", self.run_tool("align", model))


if __name__ == "__main__":
    unittest.main()
