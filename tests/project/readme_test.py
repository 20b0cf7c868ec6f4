"""Both READMEs say the same: the same headings, commands, links and pictures, in the same order."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def outline(text):
    """What does not depend on the language: levels of headings, rows of tables, code, where links lead, numbers with a point."""
    found = {"headings": [len(each) for each in re.findall(r"^(#+) ", text, re.M)], "rows": len(re.findall(r"^\|", text, re.M))}
    found["tools"] = re.findall(r"^\| (\w+) \|", text, re.M)[1:]
    found["commands"] = re.findall(r"^    (.*)$", text, re.M)
    found["code"] = sorted(re.findall(r"`([^`]+)`", text))
    found["links"] = [each for each in re.findall(r"\]\(([^)]*)\)", text) if not each.startswith("README")]
    found["figures"] = sorted(re.findall(r"\d+\.\d+", text))
    return found


class Readmes(unittest.TestCase):
    def test_they_say_the_same(self):
        english = (ROOT / "README.md").read_text()
        chinese = (ROOT / "README.zh-CN.md").read_text()
        for part, wanted in outline(english).items():
            self.assertEqual(outline(chinese)[part], wanted, f"{part} of README.zh-CN.md are not those of README.md")
            self.assertTrue(wanted, part)

    def test_each_leads_to_the_other(self):
        self.assertIn("(README.zh-CN.md)", (ROOT / "README.md").read_text())
        self.assertIn("(README.md)", (ROOT / "README.zh-CN.md").read_text())

    def test_a_change_in_one_is_seen(self):
        text = (ROOT / "README.md").read_text()
        for change in (lambda: text.replace("## Speed", "### Speed"), lambda: text.replace("./setup &&", "./setup;"), lambda: text.replace("docs/engines.md", "docs/cli.md"),
                       lambda: text.replace("`unmoor doctor`", "`unmoor doctor --json`"), lambda: text.replace("1.25", "1.26")):
            self.assertNotEqual(outline(change()), outline(text))


if __name__ == "__main__":
    unittest.main()
