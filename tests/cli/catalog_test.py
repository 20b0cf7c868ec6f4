"""The catalogue: its files, and the command that shows and imports them."""
import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

from json_schema import complaints

DATA = Path(__file__).resolve().parent.parent.parent / "data" / "catalog"
STATES = {"native", "constrained", "fallback", "unsupported", "unknown"}


def files():
    return [path for path in sorted(DATA.glob("*.json")) if path.name != "schema.json"]


class Files(unittest.TestCase):
    schema = json.loads((DATA / "schema.json").read_text())

    def test_every_file_is_as_the_schema_says(self):
        self.assertGreater(len(files()), 40)
        for path in files():
            self.assertEqual(complaints(json.loads(path.read_text()), self.schema, self.schema), [], path.name)

    def test_the_schema_finds_what_is_wrong(self):
        good = json.loads((DATA / "ncnn@2026.7.json").read_text())
        for change in ({"sources": []}, {"vocabulary": "x"}, {"platform": "A b"}, {"odd": 1}, {"ops": {"Add": []}}, {"ops": {"Add": [{"since": "1"}]}},
                       {"ops": {"Add": [{"since": 1, "limits": [{"odd": 1}]}]}}, {"schema": True}):
            self.assertTrue(complaints({**good, **change}, self.schema, self.schema), change)

    def test_numbers_name_what_is_there_and_one_operator_stands_on_a_line(self):
        for path in files():
            text = path.read_text()
            content = json.loads(text)
            self.assertTrue(re.search(r"\d{4}|unknown", content["date"]), path.name)
            self.assertEqual(len(text.split('"ops":{\n')[1].splitlines()), max(len(content["ops"]), 1) + 1, path.name)
            for op, entry in content["ops"].items():
                if isinstance(entry, list):
                    for kernel in entry:
                        for number in kernel.get("dtypes", {}).values():
                            self.assertLess(number, len(content["types"]), (path.name, op))
                elif content["vocabulary"] == "aten":
                    for answer in entry.values():
                        self.assertIn(answer[0], STATES)
                        self.assertLess(answer[1], len(content["reasons"]))
            for key in ("like", "same_as"):
                if key in content:
                    self.assertTrue((DATA / f"{content[key]}.json").is_file(), path.name)

    def test_operators_carry_domains_and_not_words_about_them(self):
        for path in files():
            content = json.loads(path.read_text())
            if content["vocabulary"] != "onnx":
                continue
            for op in content["ops"]:
                self.assertRegex(op, r"^([a-z][a-z0-9]*(\.[a-z0-9]+)*:)?\w+$", path.name)
                if op.split(":")[-1].startswith("QLinear") and op not in ("QLinearConv", "QLinearMatMul"):
                    self.assertTrue(op.startswith("com.microsoft:"), (path.name, op))

    def test_constants_of_quantised_operators_are_their_weights_scales_and_zero_points(self):
        ops = json.loads((DATA / "ort-nnapi@1.25.0.json").read_text())["ops"]
        constants = {op: sorted(i for limit in ops[op][0]["limits"] for i in limit.get("constant", []))
                     for op in ("QLinearConv", "QLinearMatMul", "com.microsoft:QLinearAdd", "com.microsoft:QLinearSigmoid")}
        self.assertEqual(constants["QLinearConv"], [1, 2, 3, 4, 5, 6, 7, 8])
        for op in ("QLinearMatMul", "com.microsoft:QLinearAdd"):
            self.assertEqual(constants[op], [1, 2, 4, 5, 6, 7], op)  # Not input 3, the second operand.
        self.assertEqual(constants["com.microsoft:QLinearSigmoid"], [1, 2, 3, 4])


class Command(ProgramTest):
    def test_list_names_every_file(self):
        found = self.run_tool("catalog", "list")
        listed = {f"{each['name']}@{each['version']}" for each in found["platforms"]}
        self.assertEqual(listed, {path.stem for path in files() if "@" in path.stem})
        self.assertEqual(sum(not each["older"] for each in found["platforms"]), len({name.split("@")[0] for name in listed}))
        for line in unmoor("catalog", "list").out.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_show_spells_out_types_and_reasons(self):
        found = self.run_tool("catalog", "show", "ort-cpu", "Acos")
        self.assertEqual(found["operators"]["Acos"][0]["dtypes"]["T"], ["float32"])
        self.assertEqual(self.run_tool("catalog", "show", "torch-hygon", "aten::mm")["operators"]["aten::mm"][""][0], "native")
        self.run_tool("catalog", "show", "ort-cpu", "Nosuch", status=2)
        self.run_tool("catalog", "show", "nosuch", status=2)
        self.run_tool("catalog", "show", status=2)

    def test_diff_tells_what_a_newer_version_has(self):
        found = self.run_tool("catalog", "diff", "tensorrt@10.1", "tensorrt@10.15")
        kinds = {each["op"]: each["kind"] for each in found["differences"]}
        old, new = (json.loads((DATA / f"tensorrt@{version}.json").read_text()) for version in ("10.1", "10.15"))
        self.assertEqual({op for op, kind in kinds.items() if kind == "only second"}, set(new["ops"]) - set(old["ops"]))
        self.run_tool("catalog", "diff", "tensorrt", "torch-npu", status=2)
        self.assertEqual(self.run_tool("catalog", "diff", "mnn", "mnn")["differences"], [])

    def test_an_imported_list_answers_scans(self):
        table = self.folder / "list.md"
        table.write_text("| Operator | Support | Types |\n|---|---|---|\n| Relu | yes | fp16 |\n| Conv | perhaps | |\n")
        own = {"UNMOOR_CATALOG": str(self.folder / "own")}
        found = self.run_tool("catalog", "import", table, "--as", "acme@1.0", "--source", "a letter", environment=own)
        self.assertEqual(len(found["unread"]), 1)
        scanned = self.run_tool("scan", models.relu(self.folder / "m.onnx"), "--on", "acme", environment=own, status=1)
        self.assertEqual([(each["state"], each["reason"], each["source"]) for each in scanned["nodes"]], [("unsupported", "dtype", "a letter")])
        self.run_tool("scan", self.folder / "m.onnx", "--on", "acme", status=2)  # Elsewhere nobody knows it.
        for wrong in (["--as", "acme"], ["--as", "../x@1"], []):
            self.run_tool("catalog", "import", table, *wrong, environment=own, status=2)
        self.run_tool("catalog", "import", self.folder / "none.csv", "--as", "a@1", environment=own, status=2)

    def test_a_broken_file_of_the_users_is_named(self):
        (self.folder / "bad.json").write_text("{")
        self.assertIn("bad.json", self.run_tool("catalog", "list", environment={"UNMOOR_CATALOG": str(self.folder)}, status=2)["reason"])


if __name__ == "__main__":
    unittest.main()
