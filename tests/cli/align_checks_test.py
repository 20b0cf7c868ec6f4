"""What `align` writes for continuous integration, and its test of itself."""
import sys
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

RANGE = ["--range", "-2,3"]


class JUnit(ProgramTest):
    def cases(self, path):
        suite = xml.parse(path).getroot().find("testsuite")
        cases = suite.findall("testcase")
        self.assertEqual(int(suite.get("tests")), len(cases))
        self.assertEqual(int(suite.get("failures")), sum(each.find("failure") is not None for each in cases))
        return {(each.get("classname"), each.get("name").split(" ")[0]): each for each in cases}

    def test_a_case_for_every_value_and_output(self):
        model, path = models.block(self.folder / "m.onnx", gelu="tanh"), self.folder / "out.xml"
        found = self.run_tool("align", model, *RANGE, "--junit", path)
        cases = self.cases(path)
        self.assertEqual(set(cases), {("outputs", each["name"]) for each in found["outputs"]} | {("values", each["name"]) for each in found["values"]})
        self.assertTrue(all(each.find("failure") is None for each in cases.values()))

    def test_what_differs_has_failed(self):
        dump, path = self.folder / "dump", self.folder / "out.xml"
        self.run_tool("run", models.block(self.folder / "other.onnx"), *RANGE, "--no-fuse", "--dump", dump)
        model = models.block(self.folder / "m<&\">.onnx", gelu="tanh")
        self.run_tool("align", model, *RANGE, "--target", dump, "--junit", path, status=1)
        cases = self.cases(path)
        self.assertIn("differ", cases["values", "block1.act_out"].find("failure").get("message"))
        self.assertIsNone(cases["values", "block0.act_out"].find("failure"))


class SelfTest(ProgramTest):
    def test_every_planted_case_is_told_rightly(self):
        path = self.folder / "self.xml"
        found = self.run_tool("align", "--self-test", "--junit", path)["self_test"]
        self.assertEqual(found["wrong"], 0)
        self.assertGreaterEqual(sum(each["defect"] for each in found["cases"]), 30)
        self.assertGreaterEqual(sum(not each["defect"] for each in found["cases"]), 6)
        for each in found["cases"]:
            results = {each[way] for way in ("kernel", "dump", "output")} - {None}
            self.assertEqual(results, {"found" if each["defect"] else "passed"}, each)
        suite = xml.parse(path).getroot().find("testsuite")
        self.assertEqual(len(suite.findall("testcase")), 3 * len(found["cases"]))

    def test_it_takes_no_model_and_everything_else_needs_one(self):
        self.assertEqual(unmoor("align", "--self-test", models.relu(self.folder / "m.onnx")).status, 2)
        self.assertEqual(unmoor("align", "--self-test", "--target", "cpu").status, 2)
        result = unmoor("align", "--target", "cpu")
        self.assertEqual(result.status, 2)
        self.assertIn("MODEL", result.err)

    def test_it_fits_a_terminal(self):
        result = unmoor("align", "--self-test")
        self.assertTrue(all(len(line) <= 80 for line in result.out.splitlines()), result)


if __name__ == "__main__":
    unittest.main()
