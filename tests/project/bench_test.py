"""The comparison with other runtimes reads engines, computes ratios and writes its page as it says; it is never run against real ones here."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import compare
import figures
import loading
import picture
import ratios
import served
import targets

# Answers as an engine does. Each run says it took MS; 'outputs' copies a file.
ENGINE = """
import json, shutil, sys
print('ready', json.dumps({'version': '1.2', 'precision': 'f32'}), flush=True)
for line in sys.stdin:
  words = line.split()
  if words[0] == 'run': print(json.dumps([float(sys.argv[1])] * int(words[1])), flush=True)
  elif words[0] == 'outputs': shutil.copy(sys.argv[2], words[1]); print('done', flush=True)
  else: break
"""


def row(model, threads, unmoor, **peers):
    """A row with these times, as compare.time_model makes it."""
    engines = {name: {"times": times, "cpu": times, "version": "1.2", "precision": "f32", "error": 0.0}
               for name, times in {"unmoor": unmoor, **peers}.items()}
    made = {"model": model, "threads": threads, "engines": engines, "rounds": len(unmoor)}
    ratios.add_speedups(made, list(peers))
    return made


def result_of(rows):
    """A result as compare.main makes it."""
    means = {str(threads): ratios.mean_speedup([each for each in rows if each.get("threads") == threads])
             for threads in sorted({each["threads"] for each in rows if "threads" in each})}
    return {"kind": "speed", "processor": {"name": "x", "cores": 2, "features": ["avx2"], "load": 0.1}, "peers": ["onnxruntime", "openvino"],
            "versions": {}, "rows": rows, "means": means,
            "cpu_mean": ratios.mean_speedup([each for each in rows if each.get("threads") == 1], "cpu")}


class Served(unittest.TestCase):
    def serve(self, lines):
        return served.Served("x", [sys.executable, "-c", f"import sys\nfor l in {lines!r}:\n  print(l, flush=True); sys.stdin.readline()"])

    def test_times_come_back(self):
        engine = self.serve(['ready {"version": "1"}', "[1.5, 2.5]"])
        self.assertEqual(engine.run(2), [1.5, 2.5])
        engine.quit()

    def test_too_few_times_and_an_early_end_are_errors(self):
        engine = self.serve(["ready {}", "[1.5]"])
        with self.assertRaisesRegex(served.EngineError, "1 times, not 2"):
            engine.run(2)
        engine.quit()
        with self.assertRaisesRegex(served.EngineError, "ended with exit status"):
            self.serve([])

    def test_the_last_line_of_a_failed_start_is_the_reason(self):
        with self.assertRaisesRegex(served.EngineError, "exit status 3: no such operator"):
            served.Served("x", [sys.executable, "-c", "import sys; print('a\\nno such operator', file=sys.stderr); sys.exit(3)"], quiet=True)

    def test_processor_time_and_memory_are_those_of_the_process(self):
        code = "print('ready {}', flush=True); input(); b = b'1' * 80000000\nfor i in range(3000000): pass\nprint('[1]', flush=True); input()"
        engine = served.Served("x", [sys.executable, "-c", code])
        seconds, peak = engine.cpu_seconds(), engine.peak_bytes()
        engine.run(1)
        self.assertGreater(engine.cpu_seconds() - seconds, 0.02)
        self.assertGreater(engine.peak_bytes() - peak, 75e6)
        engine.quit()

    def test_engines_are_asked_in_turn_and_all_get_their_rounds(self):
        with compare.all_served({name: [sys.executable, "-c", ENGINE, ms] for name, ms in (("a", "50"), ("b", "100"))}) as engines:
            measured = served.measure(engines, 0.001)
        self.assertEqual(measured["a"]["times"], [50] * 7)
        self.assertEqual(measured["b"]["times"], [100] * 7)
        self.assertEqual(len(measured["a"]["cpu"]), 7)

    def test_rounds_fit_into_the_budget_but_for_the_fewest(self):
        self.assertEqual([served.rounds_for(14, seconds) for seconds in (0.01, 1, 10)], [31, 14, 7])


class Ratios(unittest.TestCase):
    def test_outputs_that_are_not_finite_are_an_error(self):
        nan = float("nan")
        for got, want in (([nan, 1], [0, 1]), ([0, 1], [nan, 1]), ([float("inf"), 1], [float("-inf"), 1]), ([1], [1, 1])):
            self.assertEqual(ratios.relative_error(got, want), float("inf"))
        self.assertEqual(ratios.relative_error([nan, 1], [nan, 1]), 0)
        self.assertAlmostEqual(ratios.relative_error([1.1, 1], [1, 1]), 0.1 / 2 ** 0.5)

    def test_the_range_holds_the_median_and_leaves_outliers_out(self):
        median, low, high = ratios.median_range([1.0] * 20 + [1.1] * 20 + [50.0])
        self.assertTrue(1.0 <= low <= median <= high <= 1.1)
        self.assertEqual(ratios.median_range([3, 1, 2, 4, 5, 7, 6]), (4, 1, 7))

    def test_a_speed_up_is_over_1_where_unmoor_is_faster(self):
        made = row("m", 1, [10] * 7, onnxruntime=[20] * 7, openvino=[15] * 7)
        self.assertEqual(made["speedups"]["onnxruntime"]["median"], 2)
        self.assertEqual(made["better_peer"], "openvino")
        self.assertEqual(made["cpu_speedup"]["median"], 1.5)

    def test_what_disturbs_a_whole_round_cancels(self):
        made = row("m", 1, [10, 20, 30, 40, 50, 60, 70], onnxruntime=[20, 40, 60, 80, 100, 120, 140])
        self.assertEqual(made["speedups"]["onnxruntime"], {"median": 2, "low": 2, "high": 2})

    def test_the_mean_over_models_is_geometric_and_has_a_range(self):
        rows = [row("a", 1, [1] * 9, onnxruntime=[4] * 9), row("b", 1, [1] * 9, onnxruntime=[1] * 9)]
        self.assertEqual(ratios.mean_speedup(rows), {"mean": 2.0, "low": 2.0, "high": 2.0, "models": 2})
        wide = ratios.mean_speedup([row("a", 1, [1] * 9, onnxruntime=[1, 1, 1, 2, 2, 2, 3, 3, 3])])
        self.assertTrue(0.999 < wide["low"] < wide["mean"] < wide["high"] < 3.001, wide)


class Outputs(unittest.TestCase):
    def target(self, quantised=False):
        return targets.Target("m", pathlib.Path("m.onnx"), pathlib.Path("inputs.npz"), quantised)

    def test_what_differs_or_lacks_is_not_timed(self):
        want = {"y": np.array([1.0, 2.0])}
        self.assertEqual(compare.checked("unmoor", self.target(), {"y": np.array([1.0, 2.0])}, want), 0)
        with self.assertRaisesRegex(served.EngineError, "differ from ONNX Runtime's by 0.04"):
            compare.checked("unmoor", self.target(), {"y": np.array([1.1, 2.0])}, want)
        with self.assertRaisesRegex(served.EngineError, "has no output 'y'"):
            compare.checked("unmoor", self.target(), {}, want)
        with self.assertRaisesRegex(served.EngineError, "inf"):
            compare.checked("unmoor", self.target(), {"y": np.array([np.nan, 2.0])}, want)

    def test_of_a_quantised_model_the_direction_is_compared(self):
        want = {"y": np.array([1.0, 2.0])}
        self.assertLess(compare.checked("unmoor", self.target(True), {"y": np.array([1.1, 2.0])}, want), 0.01)
        with self.assertRaisesRegex(served.EngineError, "differ"):
            compare.checked("unmoor", self.target(True), {"y": np.array([2.0, -1.0])}, want)
        with self.assertRaisesRegex(served.EngineError, "differ"):
            compare.checked("unmoor", self.target(True), {"y": np.array([np.nan, 2.0])}, want)


    def test_outputs_that_are_no_numbers_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "outputs.npz"
            np.savez(path, y=np.array([{"a": 1}], dtype=object))
            with self.assertRaisesRegex(served.EngineError, "no tensor of numbers"):
                compare.load_outputs(path)


class Targets(unittest.TestCase):
    def test_one_export_of_each_model_is_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a-dynamo", "a-torchscript", "b-torchscript"):
                pathlib.Path(folder, name).mkdir()
                pathlib.Path(folder, name, "model.onnx").touch()
            for exporter, wanted in (("dynamo", ["a-dynamo", "b-torchscript"]), ("torchscript", ["a-torchscript", "b-torchscript"])):
                self.assertEqual([path.name for path in targets.one_export_each(pathlib.Path(folder), exporter)], wanted)

    def test_an_empty_folder_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(SystemExit, "export_models.py"):
            list(targets.chosen(compare.parse(["--from", folder])))

    def test_a_trained_model_that_is_not_there_says_how_to_fetch_it(self):
        with self.assertRaisesRegex(SystemExit, "run tools/fetch_models.py (nothing|all) first"):
            list(targets.chosen(compare.parse(["--real", "nothing"])))

    def test_a_model_is_small_by_its_fastest_engine(self):
        self.assertTrue(targets.is_small([row("m", 1, [2] * 7, onnxruntime=[0.9] * 7)]))
        self.assertFalse(targets.is_small([row("m", 1, [2] * 7, onnxruntime=[1.1] * 7)]))
        self.assertFalse(targets.is_small([{"model": "m", "failed": "x"}]))

    def test_wrong_options_are_refused(self):
        for arguments in (["--peers", "tvm"], ["--threads", "0"], ["--seconds", "0"], ["--load", "m.onnx"], ["--real", "--load"]):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit, msg=arguments):
                compare.parse(arguments)


class Page(unittest.TestCase):
    def rows(self):
        rows = [row("a-dynamo", 1, [10] * 7, onnxruntime=[20] * 7, openvino=[15] * 7), row("a-dynamo", 2, [6] * 7, onnxruntime=[9] * 7)]
        rows[1]["engines"]["openvino"] = {"failed": "no such operator"}
        return rows

    def test_the_tables_say_ratios_failures_and_what_was_left_out(self):
        rows = self.rows()
        result = {**result_of([*rows, {"model": "b", "failed": "outputs differ"}]), "skipped": ["c"]}
        text = figures.markdown(result)
        self.assertIn("| a-dynamo | 10.00 | 20.00 | 15.00 | 2.00 | 1.50 | **1.50 (1.50 – 1.50)** | 1.50 (1.50 – 1.50) | 7 |", text)
        self.assertIn("| a-dynamo | 6.00 | 9.00 | cannot run | 1.50 | – | **1.50 (1.50 – 1.50)** | 7 |", text)
        for line in ("b is not in the tables: outputs differ", "OpenVINO cannot run a-dynamo: no such operator", "less than 1 ms: c"):
            self.assertIn(line, text)
        for heading, line in zip(text.splitlines(), text.splitlines()[1:]):
            if line.startswith("|---"):
                self.assertEqual(heading.count("|"), line.count("|"))

    def test_a_part_of_the_page_is_replaced_and_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "performance.md"
            marks = "<!-- {0}: written by bench/compare.py -->\nold {0}\n<!-- end of {0} -->\n"
            page.write_text("# Title\n" + marks.format("speed") + marks.format("load"))
            figures.write(result_of(self.rows()), folder)
            text = page.read_text()
            self.assertIn("# Title", text)
            self.assertIn("a-dynamo", text)
            self.assertNotIn("old speed", text)
            self.assertIn("old load", text)
            self.assertTrue((pathlib.Path(folder) / "performance.svg").exists())
            with self.assertRaisesRegex(SystemExit, "marks of 'real'"):
                figures.write({**result_of(self.rows()), "kind": "real"}, folder)

    def test_the_page_of_the_project_has_all_marks(self):
        text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
        for kind in ("speed", "real", "contended", "load"):
            self.assertIn(f"<!-- {kind}", figures.between_marks(text, kind, "new"))

    def test_the_picture_is_an_svg_with_every_model_inside_its_frame(self):
        rows = [*self.rows(), row("b<c-dynamo", 1, [10] * 7, onnxruntime=[1] * 7), row("d", 1, [1] * 7, onnxruntime=[9] * 7)]
        root = xml.etree.ElementTree.fromstring(picture.draw(result_of(rows)))
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        for name in ("a", "b<c", "d", "geometric mean"):
            self.assertIn(name, texts)
        xs = [float(element.get("cx")) for element in root.iter("{http://www.w3.org/2000/svg}circle")]
        self.assertEqual(len(xs), 4)
        self.assertTrue(all(picture.LEFT <= x <= picture.WIDTH for x in xs))

    def test_load_tells_what_python_takes_apart(self):
        found = {"seconds": 2.0, "import_seconds": 0.5, "bytes": 3e8, "import_bytes": 5e7, "version": "1"}
        engines = {"unmoor": loading.summary([found] * 5), "openvino": loading.summary([found, {**found, "seconds": 9.0}, found])}
        text = "\n".join(figures.load({"rows": [{"model": "m", "threads": 2, "engines": engines}]}))
        self.assertIn("| m | Unmoor | 2.00 (2.00 – 2.00) | – | 300 | – |", text)
        self.assertIn("| m | OpenVINO | 2.00 (2.00 – 9.00) | 0.50 | 300 | 50 |", text)


if __name__ == "__main__":
    unittest.main()
