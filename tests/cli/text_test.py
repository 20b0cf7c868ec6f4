"""What people read: names from a model cannot act on their terminal or fake a line."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

HOSTILE = "\x1b[31mrelu\x07\r\nmatch: all is fine \x9b2J\u202e"


class Text(ProgramTest):
    def hostile(self, op="Relu"):
        model = models.ModelBuilder(domains=["com.example"])
        model.nodes.append(models.helper.make_node("Relu", ["x"], ["a" + HOSTILE], name="first" + HOSTILE))
        domain = "com.example" if op == "Mystery" else ""
        model.nodes.append(models.helper.make_node(op, ["a" + HOSTILE], ["b" + HOSTILE], name="second" + HOSTILE, domain=domain))
        return model.save(self.folder / "m.onnx", {"x": (models.FLOAT, [2, 4])}, {"b" + HOSTILE: (models.FLOAT, [2, 4])})

    def assert_harmless(self, text):
        for letter in text:
            self.assertTrue(letter in "\n\t" or (letter.isprintable() and letter not in "\u202e"), (letter, text))

    def test_results_and_errors_hold_no_control_characters(self):
        model = self.hostile()
        for arguments in (["run", model, "--explain"], ["run", model, "--kernels"], ["scan", model], ["align", model], ["bench", model, "--seconds", "0.02"]):
            result = unmoor(*arguments)
            self.assertEqual(result.status, 0, result)
            self.assert_harmless(result.out + result.err)
            self.assertFalse(any(line.startswith("match: all is fine") for line in result.out.splitlines()), result)
        for arguments in (["run", self.hostile("Mystery")], ["run", model, "-i", f"no{HOSTILE}=x.npy"], ["scan", self.hostile("Mystery")]):
            result = unmoor(*arguments)
            self.assertIn(result.status, (1, 2), result)
            self.assert_harmless(result.out + result.err)

    def test_json_escapes_every_control_character(self):
        result = unmoor("run", self.hostile(), "--json")
        self.assertEqual(result.json["plan"]["placements"][0]["node"], "first" + HOSTILE)
        self.assertFalse([letter for letter in result.out if letter != "\n" and (ord(letter) < 32 or 127 <= ord(letter) < 160)])


if __name__ == "__main__":
    unittest.main()
