"""One page from stored results."""
import json
import os
import stat
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from program import ProgramTest, unmoor

HOST = {"processor": "Example 9000", "cores": 8, "memory_bytes": 1 << 34, "system": "Linux"}
ELSEWHERE = {**HOST, "processor": "Sample 7", "cores": 1}
MODEL = {"path": "m.onnx", "fingerprint": "ab", "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 4]}]}


def data_of(page):
    """The result that a page carries."""
    text = page.read_text()
    start = text.index(">", text.index('type="application/json"')) + 1
    return json.loads(text[start:text.index("</script>", start)])


def result(tool, created="2026-01-02T03:04:05Z", host=None, model=None, **keys):
    return {"tool": tool, "version": "0.1.0", "status": 0, "reason": "", "created": created, "model": model or MODEL,
            "environment": {"host": host or HOST, "devices": [], "versions": {"unmoor": "0.1.0"}}, **keys}


def bench(p50, runner="cpu", **keys):
    run = {"runner": runner, "threads": 1, "batch": 1, "load_ms": 1, "prepare_ms": 2, "first_ms": 3, "peak_bytes": 1,
           "warm": {"count": 1, "p50": p50, "p90": p50, "p99": p50, "min": p50, "mean": p50, "cv": 0, "samples": [p50]}}
    other = {**run, "runner": "reference"}
    return result("bench", runs=[run, other], ratios=[{"a": runner, "b": "reference", "median": 1, "low": 1, "high": 1}], warnings=["busy"], **keys)


def align(verdict, **keys):
    values = [{"name": f"{each}_out", "node": each, "op": "Relu", "dtype": "float32", "single": {"rel_l2": 0.5, "over": 2, "class_mismatch": 0},
               "entire": None, "verdict": "match", "cause": None} for each in ("a", "b")]
    output = {"name": "y", "node": "b", "entire": {"rel_l2": 0.25, "class_mismatch": 0}}
    return result("align", reference="reference", target="opencl:0", verdict=verdict, outputs=[output], values=values, hidden=["b"],
                  first_divergent="a" if verdict == "differ" else None, first_nonfinite=None, atol=1, rtol=1, **keys)


class Report(ProgramTest):
    def store(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def joined(self, *files):
        page = self.folder / "page.html"
        self.told = self.run_tool("report", *files, "-o", page)
        return data_of(page)

    def refused(self, *files):
        page = self.folder / "refused.html"
        found = self.run_tool("report", *files, "-o", page, status=2)
        self.assertFalse(page.exists())
        return found["reason"]

    def test_results_of_real_runs_join(self):
        model = models.block(self.folder / "m.onnx")
        files = []
        for tool, arguments in (("scan", [model, "--on", "cpu,ort-cuda"]), ("align", [model]), ("bench", [model, "--seconds", "0.02"]), ("doctor", []),
                                ("run", [model, "--explain"])):
            files.append(self.store(f"{tool}.json", unmoor(tool, *arguments, "--json").out))
        page = self.joined(*files)
        for part in ("scan", "align", "bench", "doctor", "plan", "graph"):
            self.assertTrue(page[part], part)
        self.assertEqual({each["name"] for each in page["tools"] if each["state"] == "not run"}, {"profile"})
        self.assertEqual(len(page["align"]["single"]), len(page["graph"]["name"]))
        self.assertTrue(any(isinstance(each, float) for each in page["align"]["single"]), page["align"]["single"])
        self.assertEqual({each["id"] for each in page["figures"]}, {"scan", "align", "bench"})
        self.assertRegex(self.told["sources"][0]["date"], r"^20\d\d-\d\d-\d\d \d\d:\d\d UTC$")

    def test_a_migration_joins_to_what_it_is(self):
        found = self.run_tool("migrate", models.block(self.folder / "m.onnx"), "--to", "cpu", "--seconds", "0.02")
        page = self.joined(self.store("migrate.json", found))
        for key in ("verdict", "sentence", "next", "graph", "plan", "align", "bench", "profile", "doctor", "answers", "figures", "target", "dtype"):
            self.assertEqual(page[key], found[key], key)
        self.assertEqual(page["scan"]["platforms"], found["scan"]["platforms"])
        self.assertEqual(page["notes"], [])

    def test_benches_stand_side_by_side_and_say_where_they_ran(self):
        page = self.joined(self.store("old.json", bench(5)), self.store("new.json", bench(3, created="2026-02-01T00:00:00Z", host=ELSEWHERE)))
        self.assertEqual([each["runner"] for each in page["bench"]["runs"]], ["cpu · new", "reference · new", "cpu · old", "reference · old"])
        self.assertEqual([each["a"] for each in page["bench"]["ratios"]], ["cpu · new", "cpu · old"])
        self.assertIn("old: busy", page["bench"]["warnings"])
        self.assertEqual([(Path(each["file"]).name, each["machine"], each["date"], each["shown"]) for each in page["sources"]],
                         [("new.json", "Sample 7, 1 core", "2026-02-01 00:00 UTC", "bench"), ("old.json", "Example 9000, 8 cores", "2026-01-02 03:04 UTC", "bench")])
        text = (self.folder / "page.html").read_text().split('<script type="application/json"')[0]
        for said in ("new.json", "Sample 7, 1 core", "2026-01-02 03:04 UTC"):
            self.assertIn(said, text)

    def test_other_inputs_are_told(self):
        other = {**MODEL, "inputs": [{"name": "x", "dtype": "float32", "shape": [8, 4]}]}
        page = self.joined(self.store("a.json", bench(5)), self.store("b.json", bench(3, model=other)))
        self.assertTrue(any("other inputs" in each for each in page["bench"]["warnings"]), page["bench"]["warnings"])

    def test_platforms_of_scans_stand_side_by_side(self):
        def scan(*names, **keys):
            platforms = [{"name": each, "nodes": 1, "native": 1, "p0": 0, "p1": 0, "p2": 0} for each in names]
            return result("scan", platforms=platforms, nodes=[{"node": "n", "op": "Relu", "category": "activation", "platform": each, "state": "native"} for each in names], **keys)

        page = self.joined(self.store("a.json", scan("cpu", "cuda")), self.store("b.json", scan("cpu", "torch-npu", created="2026-02-01T00:00:00Z")))
        names = ["cpu · b", "torch-npu", "cpu · a", "cuda"]
        self.assertEqual([each["name"] for each in page["scan"]["platforms"]], names)
        self.assertEqual([each["platform"] for each in page["scan"]["nodes"]], names)

    def test_the_newest_align_is_shown_and_the_other_is_said_to_be_left_out(self):
        old = self.store("old.json", align("differ"))
        new = self.store("new.json", align("match", created="2026-02-01T00:00:00Z"))
        for files in ((old, new), (new, old)):
            page = self.joined(*files)
            self.assertEqual((page["align"]["verdict"], page["target"]), ("match", "opencl:0"))
            self.assertEqual([each["left_out"] for each in page["sources"]], ["", f"align ({new} is newer)"])
            self.assertIn("left out: align", (self.folder / "page.html").read_text())
        self.assertEqual((page["graph"]["name"], page["align"]["over"], page["align"]["hidden"]), (["a", "b"], [2, 2], [1]))

    def test_a_verdict_that_is_older_than_a_part_says_so(self):
        migrated = result("migrate", verdict="ready", sentence="It runs.", target="opencl:0", bench={"runs": [], "ratios": [], "warnings": []}, schema=1)
        page = self.joined(self.store("m.json", migrated), self.store("a.json", align("differ", created="2026-02-01T00:00:00Z")))
        self.assertEqual((page["verdict"], page["sentence"]), ("ready", "It runs."))
        self.assertEqual(len(page["notes"]), 1)
        self.assertRegex(page["notes"][0], "m.json; align is from elsewhere")
        page = self.joined(self.store("m.json", migrated), self.store("b.json", bench(3, created="2026-02-01T00:00:00Z")))
        self.assertEqual(page["figures"][0]["value"], "3 ms")
        page = self.joined(self.store("m.json", migrated), self.store("b.json", bench(8, runner="opencl:0")), self.store("c.json", bench(2, created="2026-02-01T00:00:00Z")))
        figure = page["figures"][0]
        self.assertEqual((figure["value"], figure["state"]), ("8 ms", "warn"))  # The target's, not the fastest.
        self.assertRegex(figure["note"], "opencl:0 · b; the fastest is cpu · c with 2 ms")
        self.assertEqual(page["notes"], [])  # The migration's own runs are shown beside the newer ones.

    def test_a_result_without_a_date_has_its_files(self):
        path = self.store("a.json", bench(5, created=""))
        os.utime(path, (0, 0))
        self.joined(path)
        self.assertEqual(self.told["sources"][0]["date"], "1970-01-01 00:00 UTC, when the file was written")

    def test_the_data_of_a_page_can_be_joined_again(self):
        model = models.block(self.folder / "m.onnx")
        for tool in ("align", "scan", "bench", "doctor", "run"):
            shown = self.folder / f"{tool}.html"
            arguments = [] if tool == "doctor" else [model]
            self.run_tool(tool, *arguments, "--html", shown)
            data = data_of(shown)
            part = "plan" if tool == "run" else tool
            self.assertTrue(data[part] and data["answers"][part] and data["sentence"], tool)
            self.assertTrue(self.joined(self.store("saved.json", data))[part], tool)

    def test_what_is_no_result_is_refused_by_name(self):
        good = self.store("good.json", bench(5))
        for name, content, why in (("broken.json", '{"tool": "bench", ', "no JSON: it breaks at byte 1"), ("empty.json", "", "no JSON"), ("list.json", "[1]", "no 'tool'"),
                                   ("deep.json", "[" * 100_000 + "]" * 100_000, "nests deeper"), ("other.json", {"tool": "catalog"}, "has no section"),
                                   ("failed.json", {"tool": "align", "status": 2, "reason": "no such file"}, "ended with 'no such file'"),
                                   ("model.json", bench(3, model={**MODEL, "fingerprint": "cd"}), "another model")):
            reason = self.refused(good, self.store(name, content))
            self.assertIn(why, reason)
            self.assertIn(name, reason)
        self.assertIn("missing.json", self.refused(good, self.folder / "missing.json"))
        self.assertIn("given twice", self.refused(good, good))
        self.assertEqual(unmoor("report", good).status, 2)  # Without -o.

    def test_a_page_does_not_take_a_results_place(self):
        path = self.store("a.json", bench(5))
        before = path.read_text()
        found = self.run_tool("report", path, "-o", path, status=2)
        self.assertIn("a name of its own", found["reason"])
        self.assertEqual(path.read_text(), before)

    def test_values_of_any_kind_break_nothing(self):
        junk = [None, 3, -1, "x", [], {}, [None, 1, "x", {}, []], True, 1e308]
        whole = {"bench": bench(5), "align": align("differ"), "doctor": result("doctor", devices=[{"name": "cpu"}], engines=[], pairs=[], libraries=[]),
                 "scan": result("scan", platforms=[{"name": "cpu", "nodes": 1}], nodes=[{"node": "n", "platform": "cpu"}]),
                 "run": result("run", plan={"devices": ["cpu"], "placements": [{"node": "n", "op": "Relu", "device": "cpu", "refusals": []}]})}
        page = self.folder / "page.html"
        for tool, content in whole.items():
            for i, key in enumerate(sorted(set(content) - {"tool"})):
                for broken in ({**content, key: junk[i % len(junk)]}, {**content, key: [junk[(i + 1) % len(junk)]]}):
                    done = unmoor("report", self.store("a.json", broken), self.store("b.json", content), "-o", page)
                    self.assertIn(done.status, (0, 2), (tool, key, done))

    def test_open_hands_the_page_to_the_desktop(self):
        path = self.store("a.json", bench(5))
        page = self.folder / "page.html"
        opener = self.store("xdg-open", f"#!/bin/sh\necho \"$1\" > '{self.folder}/opened'\nexit $OPENER_STATUS\n")
        opener.chmod(opener.stat().st_mode | stat.S_IXUSR)
        path_with = f"{self.folder}:{os.environ['PATH']}"
        shown = self.run_tool("report", path, "-o", page, "--open", environment={"PATH": path_with, "DISPLAY": ":0", "OPENER_STATUS": "0"})
        self.assertTrue(shown["opened"])
        self.assertEqual((self.folder / "opened").read_text(), f"{page}\n")
        for environment, why in (({"PATH": path_with, "DISPLAY": ":0", "OPENER_STATUS": "3"}, "xdg-open failed"),
                                 ({"DISPLAY": "", "WAYLAND_DISPLAY": ""}, "there is no display"), ({"PATH": "/nowhere", "DISPLAY": ":0"}, "xdg-open is not here")):
            done = unmoor("report", path, "-o", page, "--open", environment=environment)
            self.assertEqual(done.status, 0, done)
            self.assertIn(f"not opened: {why}; the page lies in {page}", done.out)


if __name__ == "__main__":
    unittest.main()
