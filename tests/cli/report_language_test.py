"""Pages in Chinese of real runs: what tools write is said in Chinese, and names, commands and the JSON stay."""
import html
import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor


def parts_of(page):
    """The page's plain HTML, its data, its words."""
    text = page.read_text()
    blocks = dict(re.findall(r'<script type="application/json" id="(\w+)">(.*?)</script>', text, re.S))
    return text[:text.index('<script type="application/json"')], json.loads(blocks["data"]), json.loads(blocks["words"])


def said_in(plain):
    """The texts of the page without style, names, commands and what stands between quotes."""
    plain = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<code>.*?</code>|<b class=\"name\">.*?</b>|<bdi>.*?</bdi>|<small>.*?</small>", " ", plain, flags=re.S)
    body = plain[plain.index("<body>"):]
    return [html.unescape(each).strip() for each in re.split(r"<[^>]*>", body) if each.strip()]


ENGLISH = re.compile(r"[A-Za-z]{2,}[ ,.;:]+[a-z]{2,}[ ,.;:]+[a-z]{2,}")


class Language(ProgramTest):
    def page(self, *arguments):
        path = self.folder / "page.html"
        done = unmoor(*arguments, "--html", path, "--lang", "zh")
        self.assertIn(done.status, (0, 1), done)
        return parts_of(path)

    def assert_chinese(self, plain):
        self.assertIn('<html lang="zh-CN">', plain)
        for text in said_in(plain):
            self.assertIsNone(ENGLISH.search(re.sub(r"“[^”]*”", "", text)), text)

    def test_a_migration_is_told_in_chinese(self):
        model = models.block(self.folder / "m.onnx")
        for target in ("cpu", "opencl", "cuda"):
            done = unmoor("migrate", model, "--to", target, "--seconds", "0.02", "--html", self.folder / "page.html", "--lang", "zh")
            if done.status == 3:
                continue
            plain, data, words = parts_of(self.folder / "page.html")
            self.assert_chinese(plain)
            self.assertRegex(data["sentence"], ENGLISH)  # The data stay as every tool writes them.
            self.assertIn(data["sentence"], words["said"])
            for answer in data["answers"].values():
                self.assertIn(answer, words["said"])

    def test_every_tools_page_is(self):
        model = models.block(self.folder / "m.onnx")
        for arguments in (["scan", model, "--on", "cpu,opencl,tensorrt,torch-npu"], ["align", model], ["bench", model, "--seconds", "0.02", "--on", "cpu,reference"], ["run", model]):
            plain, data, words = self.page(*arguments)
            self.assert_chinese(plain)
            for row in data.get("scan", {}).get("nodes", []):
                if row.get("advice"):
                    self.assertIn(row["advice"], words["said"])
            for warning in data.get("bench", {}).get("warnings", []):
                self.assertIn(warning, words["said"])

    def test_a_joined_page_is(self):
        model = models.block(self.folder / "m.onnx")
        for name in ("a", "b"):
            (self.folder / f"{name}.json").write_text(unmoor("bench", model, "--seconds", "0.02", "--json").out)
        page = self.folder / "page.html"
        self.assertEqual(unmoor("report", self.folder / "a.json", self.folder / "b.json", "-o", page, "--lang", "zh").status, 0)
        plain, _, _ = parts_of(page)
        self.assert_chinese(plain)
        self.assertIn("来自 2 个文件的结果", plain)

    def test_a_language_that_is_not_there_is_refused_and_so_is_one_without_a_page(self):
        model = models.block(self.folder / "m.onnx")
        for arguments in (["bench", model, "--html", "x.html", "--lang", "fr"], ["bench", model, "--lang", "zh"]):
            self.assertEqual(unmoor(*arguments, folder=self.folder).status, 2)


if __name__ == "__main__":
    unittest.main()
