"""Files of PyTorch, read without PyTorch: programs, TorchScript, checkpoints, safetensors; and files that mean harm."""
import io
import json
import pickle
import random
import struct
import sys
import unittest
import zipfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from program import ProgramTest, unmoor

DATA = Path(__file__).resolve().parent.parent / "data" / "torch"
PARAMETERS = (4 * 3 * 9 + 4) + 4 * 4 + (4 * 4 + 4) + (4 * 5 + 5)  # Of Net in make.py, the statistics of its norm included, its counters not.
# Net as it was written; what TorchScript and torch.export call it.
CALLS = Counter({"conv2d": 1, "batch_norm": 1, "relu": 1, "mean": 1, "linear": 2, "mul": 1, "softmax": 1, "argmax": 1})


class Torch(ProgramTest):
    def scan(self, name, on, status=(0, 1), more=()):
        result = unmoor("scan", DATA / name, "--on", on, "--json", *more)
        self.assertIn(result.status, status, result)
        return result.json

    def bare(self, found, platform):
        """Operators called on a platform, without domain and overload."""
        return Counter(each["op"].split("::")[1].split(".")[0] for each in found["nodes"] if each["platform"] == platform)

    def test_a_program_is_read_call_by_call(self):
        found = self.scan("program.pt2", "torch-cuda,ort-cpu,tensorrt")
        self.assertEqual(self.bare(found, "torch-cuda"), CALLS)
        self.assertEqual(found["facts"]["parameters"], PARAMETERS)
        self.assertIn("torch 2.13.0", found["facts"]["described"])
        self.assertEqual(len(found["facts"]["dynamic_inputs"]), 1)
        self.assertRegex(found["facts"]["dynamic_inputs"][0], r"^x\[0\] s\d+, 2 to 64$")
        self.assertEqual(found["facts"]["dtypes"], {"float32": 8, "int64": 1})
        states = {(each["op"], each["platform"]): each for each in found["nodes"]}
        self.assertEqual(states["aten::conv2d", "torch-cuda"]["state"], "native")
        self.assertEqual(states["aten::linear", "ort-cpu"]["state"], "native", states["aten::linear", "ort-cpu"])
        self.assertIn("MatMul, Add", states["aten::linear", "ort-cpu"]["detail"])
        self.assertEqual(states["aten::conv2d", "ort-cpu"]["category"], "conv")
        for platform in found["platforms"]:
            self.assertEqual(platform["nodes"], 9)
            self.assertEqual(platform["unknown"], 0, platform)

    def test_branches_float64_and_sizes_of_data_are_told(self):
        found = self.scan("branches.pt2", "torch-npu,ort-cuda,torch-cuda")
        ops = self.bare(found, "torch-cuda")
        for op in ("sum", "gt", "cond", "relu", "add", "sin", "nonzero"):
            self.assertEqual(ops[op], 1, (op, ops))
        self.assertTrue(any(each["node"].startswith("cond/") for each in found["nodes"]))
        self.assertIn("float64", found["facts"]["dtypes"])
        self.assertGreaterEqual(found["facts"]["data_dependent_nodes"], 1)
        self.assertGreater(found["facts"]["host_calls"], 0)
        self.assertNotIn("sym_size", ops)

    def test_every_platform_answers_and_unknown_is_never_unsupported(self):
        for name in ("program.pt2", "branches.pt2", "script.pt", "traced.pt"):
            found = self.scan(name, "all")
            self.assertGreaterEqual(len(found["platforms"]), 27)
            for platform in found["platforms"]:
                known = platform["nodes"] - platform["unknown"]
                if platform["name"] in ("torch-cuda", "torch-rocm", "torch-npu", "torch-xpu", "ort-cpu"):
                    self.assertGreaterEqual(known / platform["nodes"], 0.9, (name, platform))
            for node in found["nodes"]:
                if node["state"] == "unknown":
                    self.assertEqual(node["priority"], "", node)

    def test_torchscript_is_followed_into_its_modules(self):
        found = self.scan("script.pt", "torch-cuda")
        ops = self.bare(found, "torch-cuda")
        for op, times in CALLS.items():
            self.assertGreaterEqual(ops[op], times, (op, ops))  # Both sides of conditions count: softmax may stand in two.
        modules = found["facts"]["modules"]
        self.assertEqual(modules["__torch__.torch.nn.modules.linear.Linear"], 2)
        self.assertEqual(found["facts"]["parameters"], PARAMETERS)
        self.assertTrue(any("overloads" in each for each in found["facts"]["not_known"]))
        self.assertEqual(len({each["node"] for each in found["nodes"]}), len(found["nodes"]))
        traced = self.bare(self.scan("traced.pt", "torch-cuda"), "torch-cuda")
        self.assertEqual(traced, CALLS - Counter(["conv2d"]) + Counter(["_convolution"]))

    def test_checkpoints_tell_their_tensors_and_that_they_have_no_graph(self):
        for name in ("checkpoint.pth", "legacy.pth"):
            found = self.run_tool("scan", DATA / name)
            self.assertEqual(found["platforms"], [])
            facts = found["facts"]
            self.assertFalse(facts["has_graph"])
            self.assertIn("without a graph", facts["not_known"][0])
            again = 4 * 3 * 9 if name == "checkpoint.pth" else 0  # conv.weight is named twice there, and stored once.
            self.assertEqual(facts["parameters"], PARAMETERS + again, name)
            self.assertEqual(facts["stored_bytes"], PARAMETERS * 4 + 3 * 8 + 8, name)
            self.assertEqual(facts["tensor_dtypes"]["int64"], 2)
        facts = self.run_tool("scan", DATA / "tensors.safetensors")["facts"]
        self.assertEqual(facts["tensor_dtypes"], {"float32": 1, "bfloat16": 1, "int64": 1})
        self.assertEqual((facts["parameters"], facts["stored_bytes"]), (9, 38))

    def test_what_would_run_code_is_refused_by_name(self):
        self.assertIn("__main__.Net", self.run_tool("scan", DATA / "whole.pth", status=2)["reason"])

        class Harm:
            def __reduce__(self):
                return (__import__("os").system, (f"touch {mark}",))
        mark = self.folder / "mark"
        path = self.folder / "evil.pth"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("evil/data.pkl", pickle.dumps({"weight": Harm()}, protocol=2))
        self.assertRegex(self.run_tool("scan", path, status=2)["reason"], r"(posix|os)\.system")
        self.assertFalse(mark.exists())

    def test_flags_that_tell_nothing_of_such_a_file_are_refused(self):
        for more in (["--on", "cpu"], ["--on", "all", "--memory", "1G"], ["--on", "all", "--link", "1G"], ["--on", "all", "--shapes", "x:1"],
                     ["--on", "ort-cpu", "--op", "aten::nosuch"]):
            self.run_tool("scan", DATA / "program.pt2", *more, status=2)
        self.run_tool("scan", DATA / "checkpoint.pth", "--op", "x", status=2)
        self.run_tool("run", DATA / "program.pt2", status=2)

    def test_narrowed_scans_and_lines_of_80_columns(self):
        found = self.scan("program.pt2", "ort-cpu", more=("--op", "aten::linear"))
        self.assertEqual(len(found["nodes"]), 2)
        for name in ("program.pt2", "script.pt", "checkpoint.pth"):
            shown = unmoor("scan", DATA / name, *(["--on", "torch-npu,mnn"] if name != "checkpoint.pth" else []), "--exit-zero")
            self.assertEqual(shown.status, 0, shown)
            for line in shown.out.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_the_page_has_the_scan(self):
        page = self.folder / "page.html"
        unmoor("scan", DATA / "program.pt2", "--on", "all", "--html", page)
        self.assertIn("aten::conv2d", page.read_text())

    def test_damaged_files_are_errors_and_nothing_else(self):
        draw = random.Random(5)
        path = self.folder / "damaged.bin"
        for name in ("program.pt2", "script.pt", "checkpoint.pth", "legacy.pth", "tensors.safetensors"):
            whole = (DATA / name).read_bytes()
            for i in range(24):
                data = bytearray(whole)
                if i % 2:
                    del data[draw.randrange(len(data)):]
                else:
                    for _ in range(draw.choice((1, 3, 20))):
                        data[draw.randrange(len(data))] = draw.randrange(256)
                path.write_bytes(data)
                result = unmoor("scan", path, "--on", "ort-cpu", "--json", timeout=60)
                self.assertIn(result.status, (0, 1, 2, 3), (name, i, result))
                json.loads(result.out)
        for name in ("checkpoint.pth", "legacy.pth"):  # Half a file is never a whole one.
            path.write_bytes((DATA / name).read_bytes()[: (DATA / name).stat().st_size // 2])
            self.run_tool("scan", path, status=2)

    def test_bombs_are_refused_fast(self):
        path = self.folder / "bomb.pth"

        def pickled(content):
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
                file.writestr("b/data.pkl", content)
            result = unmoor("scan", path, "--json", timeout=60)
            self.assertEqual(result.status, 2, result)
            return result.json["reason"]
        self.assertIn("values", pickled(b"\x80\x02" + b"]" * (6 << 20) + b"."))
        self.assertIn("longer than the file", pickled(b"\x80\x02X\xff\xff\xff\x7fx"))
        self.assertIn("stack is empty", pickled(b"\x80\x020."))
        self.assertIn("no mark", pickled(b"\x80\x02t."))
        laughs = b"\x80\x02]q\x00" + b"".join(b"(" + b"h" + bytes([i]) + (b"h" + bytes([i])) * 9 + b"lq" + bytes([i + 1]) for i in range(30)) + b"."
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("b/data.pkl", laughs)
        self.assertEqual(self.run_tool("scan", path)["facts"]["tensors"], 0)
        path.write_bytes(struct.pack("<Q", 200_000) + b"{" + b'"a":{' * 20_000 + b" " * 100_000)
        self.run_tool("scan", path, status=2)

    def test_code_that_calls_itself_or_grows_without_end_is_refused(self):
        def script(code):
            buffer = io.BytesIO()
            with zipfile.ZipFile(DATA / "traced.pt") as old, zipfile.ZipFile(buffer, "w") as new:
                for entry in old.infolist():
                    main = entry.filename.startswith("archive/code/") and "class Net(" in old.read(entry).decode("utf-8", "replace")
                    new.writestr(entry.filename, code if main else old.read(entry))
            path = self.folder / "script.pt"
            path.write_bytes(buffer.getvalue())
            return self.run_tool("scan", path, "--on", "ort-cpu", status=2)["reason"]
        head = "class Net(Module):\n  def forward(self: __torch__.NAME, x: Tensor) -> Tensor:\n"
        name = self.main_class()
        self.assertIn("inside each other", script(head.replace("__torch__.NAME", name) + "    return (self).forward(x, )\n"))
        many = "".join(f"  def f{i}(self: {name}, x: Tensor) -> Tensor:\n    return (self).f{i + 1}((self).f{i + 1}(x, ), )\n" for i in range(60))
        last = f"  def f60(self: {name}, x: Tensor) -> Tensor:\n    return torch.relu(x)\n"
        self.assertTrue(script(head.replace("__torch__.NAME", name) + "    return (self).f0(x, )\n" + many + last))
        self.assertIn("brackets", script(head.replace("__torch__.NAME", name) + "    return " + "(" * 5000 + "x" + ")" * 5000 + "\n"))

    def main_class(self):
        with zipfile.ZipFile(DATA / "traced.pt") as file:
            for entry in file.namelist():
                if entry.startswith("archive/code/") and b"class Net(" in file.read(entry):
                    return entry[len("archive/code/"):-3].replace("/", ".") + ".Net"
        self.fail("there is no class Net")


if __name__ == "__main__":
    unittest.main()
