"""doctor on machines that are not here: made up, each with one fault, and what its collector wrote of this one."""
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import machines
from program import ProgramTest, unmoor


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


class MadeUp(ProgramTest):
    def judged(self, files, status=0):
        folder = write(self.folder / "machine", files)
        return self.run_tool("doctor", "--from-dump", folder, status=status), unmoor("doctor", "--from-dump", folder)

    def test_a_machine_without_a_fault_has_none(self):
        home = self.folder
        for name, files in machines.SOUND.items():
            with self.subTest(name):
                self.folder = home / name
                found, _ = self.judged(files)
                self.assertEqual(found["faults"], [])

    def test_the_one_fault_of_a_machine_is_named_first_with_what_would_help(self):
        self.assertGreaterEqual(len(machines.FAULTS), 20)
        home = self.folder
        for number, (name, (files, text, remedies)) in enumerate(machines.FAULTS.items()):
            with self.subTest(name):
                self.folder = home / str(number)
                medium = name in machines.MEDIUM
                found, shown = self.judged(files, status=0 if medium else 1)
                (fault,) = found["faults"]
                self.assertTrue(fault["text"].startswith(text), fault)
                self.assertEqual(fault["severity"], "medium" if medium else "high")
                for remedy in remedies:
                    self.assertIn(remedy, fault["remedy"])
                self.assertTrue(" ".join(shown.out.split()).startswith(text), shown.out)
                if not medium:
                    self.assertIn(text, found["reason"])

    def test_every_vendor_has_machines_with_faults(self):
        for maker in ("NVIDIA", "AMD", "Hygon", "ascend", "ambricon", "Moore Threads", "libze"):
            self.assertTrue(any(maker in text or maker in name for name, (_, text, _) in machines.FAULTS.items()), maker)

    def test_what_follows_from_a_fault_is_not_told(self):
        files = machines.nvidia(modules="", pci="0000:01:00.0 0x10de 0x2684 0x030000\n", nodes="", libraries="", **{"nvidia-smi.failed": "exit status 9\nno driver\n"})
        found, _ = self.judged({**files, "proc/driver/nvidia/version": ""}, status=1)
        self.assertEqual(len(found["faults"]), 1, found["faults"])

    def test_which_copy_of_a_library_wins(self):
        lib, old = machines.LIB, "/opt/old/lib"
        lines = machines.libraries(("path", f"{old}/libcudart.so.12", f"{old}/libcudart.so.12.4.127"), ("path", f"{old}/libcudart.so.12.4.127", f"{old}/libcudart.so.12.4.127"),
                                   ("cache", f"{lib}/libcudart.so.12", f"{lib}/libcudart.so.12.4.127"), ("cache", f"{lib}/libcudart.so", f"{lib}/libcudart.so.12.4.127"),
                                   ("default", f"/lib/libcudart.so.12", f"{lib}/libcudart.so.12.4.127"), ("home", "/usr/local/cuda/lib64/libnvrtc.so.12", "/x/libnvrtc.so.12.4.1"))
        found, shown = self.judged(machines.machine(libraries=lines))
        self.assertEqual(found["libraries"], [{"name": "libcudart.so.12", "paths": [f"{old}/libcudart.so.12", f"{lib}/libcudart.so.12"], "used": f"{old}/libcudart.so.12"}])
        self.assertEqual(found["faults"], [])
        self.assertIn(f"libcudart.so.12 is {old}/libcudart.so.12; behind it", " ".join(shown.out.split()))

    def test_versions_without_a_fault_fit_or_are_unknown(self):
        found, _ = self.judged(machines.SOUND["nvidia"])
        self.assertEqual({each["verdict"] for each in found["pairs"]}, {"fits"})
        self.folder = self.folder / "other"
        found, _ = self.judged(machines.ascend(machines.python(torch="3.0.0", torch_npu="3.0.0"), cann="11.0.0", driver="30.0.0"))
        self.assertEqual({each["verdict"] for each in found["pairs"]}, {"unknown"})

    def test_broken_files_of_a_machine_are_no_facts(self):
        deep = "[" * 100000 + "]" * 100000
        files = {"proc/driver/nvidia/version": "Kernel Module  535.104.05 \n", "usr/local/cuda/version.json": '{"cuda": {"version": ' + deep + "}}", "opt/rocm/.info/version": "",
                 "sys/class/kfd/kfd/topology/nodes/0/properties": "gfx_target_version 99999999999999999999\n", "outputs/pci": "0x10de\n\n0 0x10de\n",
                 "outputs/nodes": "/dev/nvidia0\n/dev/kfd - - - -\n", "outputs/libraries": "a\n\t\t\nb\tc\td\te\n", "outputs/missing": "\t\nx\t\nundefined symbol: \n",
                 "outputs/variables": "=\nA\n=B\n", "outputs/firmware": "Direct firmware load for \n", "outputs/import-torch-npu.failed": "\n", "outputs/engine-ort": deep,
                 "usr/local/Ascend/driver/version.info": "compatible_version_fw=[[,],[],][1\nVersion=\n", "usr/local/Ascend/firmware/version.info": "Version=1\n"}
        for text in ("", "{", deep, '{"packages": 3}', '{"packages": [3, {"name": 1}, {"name": "torch", "version": 2}]}', '{"packages": [{"name": "torch", "version": "+"}], "extensions": [3]}'):
            folder = write(self.folder / "machine", machines.machine(files, {"outputs/python": text, "outputs/interpreter": "python3\n"}))
            result = unmoor("doctor", "--from-dump", folder, "--json")
            self.assertIn(result.status, (0, 1), result)
            self.assertNotIn("does not", {each["verdict"] for each in result.json["pairs"]})

    def test_lines_fit_80_columns(self):
        for number, (files, *_) in enumerate(machines.FAULTS.values()):
            folder = write(self.folder / str(number), files)
            for line in unmoor("doctor", "--from-dump", folder).out.splitlines():
                if " " in line.strip():
                    self.assertLessEqual(len(line), 80, line)


class Archives(ProgramTest):
    def tar(self, entries, name="machine.tar.gz"):
        """An archive of (name, text) pairs, or TarInfo for something else."""
        path = self.folder / name
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w", format=tarfile.GNU_FORMAT) as archive:
            for entry, text in entries:
                info = entry if isinstance(entry, tarfile.TarInfo) else tarfile.TarInfo(entry)
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))
        return path

    def test_an_archive_is_read_as_its_folder(self):
        files = machines.FAULTS["a stub that wins"][0]
        folder = write(self.folder / "machine", files)
        wanted = self.run_tool("doctor", "--from-dump", folder, status=1)
        for path in (self.tar(files.items()), self.tar([(f"./{name}", text) for name, text in files.items()], "plain.tar")):
            found = self.run_tool("doctor", "--from-dump", path, status=1)
            for key in ("faults", "pairs", "libraries", "python", "variables", "engines"):
                self.assertEqual(found[key], wanted[key])

    def test_what_is_no_archive_of_a_machine_is_refused_with_the_reason(self):
        good = list(machines.machine().items())
        whole = self.tar(good).read_bytes()
        link = tarfile.TarInfo("outputs/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        self.assertEqual(unmoor("doctor", "--from-dump", self.tar([*good, (link, "")])).status, 0)  # Left out.
        damaged = bytearray(gzip.decompress(whole))
        damaged[100] ^= 1
        cases = {"no such file": None, "there.tar": b"", "text": b"hello " * 200, "cut.tar.gz": whole[:-40], "cut.tar": gzip.decompress(whole)[:1500],
                 "damaged.tar": bytes(damaged), "out.tar.gz": self.tar([*good, ("../outside", "x")]).read_bytes(),
                 "absolute.tar.gz": self.tar([*good, ("/etc/passwd", "x")]).read_bytes(), "deep.tar.gz": self.tar([*good, ("a/../../b", "x")]).read_bytes(),
                 "bomb.tar.gz": self.tar([*good, ("big", "0" * (65 << 20))]).read_bytes(), "many.tar.gz": self.tar([*good, *((f"{i}", "") for i in range(20_001))]).read_bytes(),
                 "other.tar.gz": self.tar([("outputs/uname", "Linux\n")]).read_bytes(), "newer.tar.gz": self.tar([("outputs/collected", "unmoor-machine 2 x\n")]).read_bytes()}
        for name, content in cases.items():
            path = self.folder / name
            if content is not None:
                path.write_bytes(content)
            reason = self.run_tool("doctor", "--from-dump", path, status=2)["reason"]
            self.assertIn(str(path), reason)
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("doctor --collector", self.run_tool("doctor", "--from-dump", empty, status=2)["reason"])
        os.mkfifo(self.folder / "pipe")
        self.run_tool("doctor", "--from-dump", self.folder / "pipe", status=2)
        self.run_tool("doctor", "--from-dump", empty, "--lock", self.folder / "lock", status=2)
        self.run_tool("doctor", "--from-dump", empty, "--collector", status=2)


class Collector(ProgramTest):
    """The script, on this machine, under the smallest shell that is here."""

    def setUp(self):
        super().setUp()
        self.script = self.folder / "collect.sh"
        self.script.write_text(unmoor("doctor", "--collector").out)

    def collect(self, *arguments, status=0, **environment):
        done = subprocess.run(["/bin/sh", self.script, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "UNMOOR_PYTHON": sys.executable, **environment})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_what_it_collects_here_is_answered_as_doctor_answers_here(self):
        environment = {"LD_LIBRARY_PATH": str(self.folder), "CUDA_VISIBLE_DEVICES": "", "UNMOOR_PYTHON": sys.executable}
        (self.folder / "libcudnn.so.9").symlink_to("libcudnn.so.9.9.9")
        (self.folder / "libcudnn.so.9.9.9").write_bytes(b"no library")
        self.collect("machine.tar.gz", **environment)
        here = unmoor("doctor", "--json", environment=environment).json
        there = unmoor("doctor", "--json", "--from-dump", self.folder / "machine.tar.gz").json
        for key in ("faults", "pairs", "libraries", "python", "variables", "engines"):
            self.assertEqual(there[key], here[key], key)
        self.assertIn({"name": "libcudnn.so.9", "paths": [f"{self.folder}/libcudnn.so.9"], "used": f"{self.folder}/libcudnn.so.9"}, there["libraries"])
        self.assertEqual(there["variables"]["LD_LIBRARY_PATH"], str(self.folder))
        self.assertTrue(any("CUDA_VISIBLE_DEVICES" in fault["text"] for fault in there["faults"]))
        self.assertRegex(there["collected"]["created"], r"^\d{4}-\d\d-\d\dT")

    def test_it_needs_no_python_and_few_tools(self):
        tools = self.folder / "bin"
        tools.mkdir()
        for name in ("sh", "cat", "head", "tail", "ls", "mkdir", "mktemp", "rm", "cut", "tr", "uname", "readlink", "grep", "sed", "date", "sleep"):
            found = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
            (tools / name).symlink_to(found)
        script = self.script.read_text().replace("PATH=$PATH:", f"PATH={tools}; : ")
        self.script.write_text(script)
        self.collect("machine", UNMOOR_PYTHON="python3-of-nowhere")
        found = unmoor("doctor", "--json", "--from-dump", self.folder / "machine").json
        self.assertIn("there is no program 'python3-of-nowhere'", found["python"]["problem"])
        self.assertEqual({each["state"] for each in found["engines"]}, {"absent"})

    def test_tools_that_hang_or_fail_do_not_stop_it(self):
        tools = self.folder / "bin"
        write(tools, {"nvidia-smi": "#!/bin/sh\nsleep 1000\n", "npu-smi": "#!/bin/sh\necho 'dcmi model init failed'; exit 3\n", "cnmon": "#!/bin/sh\nexec yes\n"})
        for each in tools.iterdir():
            each.chmod(0o755)
        self.script.write_text(self.script.read_text().replace("nvidia-smi 20", "nvidia-smi 1").replace("cnmon 20", "cnmon 1"))
        self.collect("machine", PATH=f"{tools}:{os.environ['PATH']}", PYTHON="")
        outputs = self.folder / "machine" / "outputs"
        self.assertIn("no answer in 1 s", (outputs / "nvidia-smi.failed").read_text())
        self.assertEqual((outputs / "npu-smi.failed").read_text(), "exit status 3\ndcmi model init failed\n")
        self.assertLess(max(each.stat().st_size for each in outputs.iterdir()), 2 << 20)
        self.assertFalse((outputs / "python").exists())

    def test_it_writes_over_nothing_and_leaves_nothing(self):
        (self.folder / "full").mkdir()
        (self.folder / "full" / "mine").write_text("mine")
        temporary = self.folder / "temporary"
        temporary.mkdir()
        self.assertIn("not empty", self.collect("full", status=1, TMPDIR=str(temporary)).stderr)
        self.assertEqual([each.name for each in (self.folder / "full").iterdir()], ["mine"])
        self.collect(TMPDIR=str(temporary), PYTHON="")
        self.assertTrue((self.folder / "unmoor-machine.tar.gz").exists())
        self.assertEqual(list(temporary.iterdir()), [])
        self.collect("/no/such/folder/m.tar.gz", status=1, TMPDIR=str(temporary), PYTHON="")


if __name__ == "__main__":
    unittest.main()
