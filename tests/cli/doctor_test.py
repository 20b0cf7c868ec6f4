"""doctor's lock: what decided on a machine, and what differs on another; and whether versions fit together."""
import hashlib
import json
import os
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from program import ProgramTest, unmoor

os.environ.setdefault("UNMOOR_PYTHON", sys.executable)  # One that has an engine.


class Lock(ProgramTest):
    def setUp(self):
        super().setUp()
        self.lock = self.folder / "machine.lock"
        self.requirements = self.folder / "requirements.txt"

    def written(self):
        self.run_tool("doctor", "--lock", self.lock)
        return json.loads(self.lock.read_text())

    def changed(self, change):
        """Verifies a lock of this machine after `change` was done to its components; the differences found."""
        lock = self.written()
        components = {each["name"]: each for each in lock["components"]}
        change(components)
        lock["components"] = list(components.values())
        self.lock.write_text(json.dumps(lock))
        return self.run_tool("doctor", "--verify", self.lock, status=1)

    def test_it_holds_everything_that_decided_with_hashes(self):
        components = {each["name"]: each for each in self.written()["components"]}
        self.assertLessEqual({"unmoor", "os", "kernel", "cpu", "instruction sets", "device cpu", "library libc.so"}, set(components))
        for each in components.values():
            self.assertLessEqual({"name", "version", "path", "sha256"}, set(each))
            if each["path"] and each["name"].split()[0] in ("unmoor", "library"):
                self.assertEqual(each["sha256"], hashlib.sha256(Path(each["path"]).read_bytes()).hexdigest(), each)
        found = self.run_tool("doctor")
        for device in found["devices"]:
            self.assertEqual(f"device {device['name']}" in components, device["state"] == "ready", device)
        for library in found["libraries"]:
            self.assertIn(str(Path(library["used"]).resolve()), {each["path"] for each in components.values()})
        for engine in found["engines"]:
            if engine["state"] == "ready":
                self.assertEqual(components[f"engine {engine['name']}"]["version"], engine["version"])
                self.assertIn("package numpy", components)

    def test_requirements_pin_every_package(self):
        packages = {each["name"].split()[1]: each["version"] for each in self.written()["components"] if each["name"].startswith("package ")}
        lines = [line for line in self.requirements.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(lines, [f"{name}=={version}" for name, version in packages.items()])

    def test_the_same_machine_does_not_differ(self):
        self.written()
        found = self.run_tool("doctor", "--verify", self.lock)
        self.assertEqual(found["differences"], [])
        self.assertIn("nothing differs", unmoor("doctor", "--verify", self.lock).out)

    def test_a_wrong_version_is_named_with_both_and_a_command(self):
        def change(components):
            components["package six"] = {"name": "package six", "version": "1.0.1", "path": "", "sha256": ""}
            components["unmoor"]["version"] = "0.0.7"
            components["kernel"]["version"] = "Linux 1.2.3 x86_64"
        found = self.changed(change)
        differences = {each["name"]: each for each in found["differences"]}
        self.assertEqual(set(differences), {"package six", "unmoor", "kernel"})
        self.assertEqual((differences["unmoor"]["severity"], differences["unmoor"]["locked"]), ("high", "0.0.7"))
        self.assertRegex(differences["unmoor"]["here"], r"\d+\.\d+\.\d+")
        self.assertTrue(differences["package six"]["command"].endswith("-m pip install six==1.0.1"))
        self.assertEqual(found["differences"][-1]["name"], "kernel")
        self.assertEqual(differences["kernel"]["severity"], "low")
        self.assertIn("3 differences", found["reason"])
        shown = unmoor("doctor", "--verify", self.lock)
        self.assertEqual(shown.status, 1)
        self.assertIn("unmoor: locked 0.0.7", shown.out)
        self.assertIn("What would mend it:\n  ", shown.out)
        self.assertEqual(unmoor("doctor", "--verify", self.lock, "--exit-zero").status, 0)

    def test_a_missing_component_says_why_it_is_not_here(self):
        found = self.changed(lambda components: components.update({"device cuda:0": {"name": "device cuda:0", "version": "A100", "path": "", "sha256": ""}}))
        (difference,) = found["differences"]
        self.assertEqual((difference["severity"], difference["locked"], difference["here"]), ("high", "A100", ""))
        self.assertIn("absent: ", difference["detail"])

    def test_what_is_only_here_is_for_the_record(self):
        (difference,) = self.changed(lambda components: components.pop("device cpu"))["differences"]
        self.assertEqual((difference["name"], difference["severity"], difference["locked"]), ("device cpu", "low", ""))

    def test_other_content_of_the_same_version_is_found(self):
        found = self.changed(lambda components: components["library libc.so"].update(sha256="0" * 64))
        (difference,) = found["differences"]
        self.assertEqual((difference["name"], difference["severity"]), ("library libc.so", "medium"))
        self.assertIn("sha256 000000000000", difference["locked"])

    def test_other_instruction_sets_are_listed(self):
        found = self.changed(lambda components: components["instruction sets"].update(version=components["instruction sets"]["version"] + " avx9_fp4"))
        (difference,) = found["differences"]
        self.assertIn("here lacks avx9_fp4", difference["detail"])

    def test_what_is_no_lock_is_refused_with_the_reason(self):
        good = self.written()
        twice = {**good, "components": good["components"] * 2}
        for text, words in (("", "no JSON"), (json.dumps(good)[:-40], "no JSON"), ("[]", "no lock"), ("{}", "no lock"), ('{"lock": 2}', "no lock"),
                            ('{"lock": 1}', "no components"), ('{"lock": 1, "components": []}', "no components"),
                            ('{"lock": 1, "components": [1]}', "component 1 is no object"), ('{"lock": 1, "components": [{"name": "a"}]}', "no text 'version'"),
                            ('{"lock": 1, "components": [{"name": "a", "version": 1, "path": "", "sha256": ""}]}', "no text 'version'"),
                            ('{"lock": 1, "components": [{"name": "", "version": "", "path": "", "sha256": ""}]}', "empty name"),
                            ('{"lock": 1, "components": [{"name": "a", "version": "", "path": "", "sha256": "x"}]}', "no SHA-256"),
                            (json.dumps(twice), "stands there twice"), ("[" * 100_000, "no JSON"),
                            ('{"lock": ' + "[" * 100_000 + "]" * 100_000 + "}", "no JSON"), (" " * (17 << 20), "more than any lock")):
            self.lock.write_text(text)
            reason = self.run_tool("doctor", "--verify", self.lock, status=2)["reason"]
            self.assertIn(words, reason)
            self.assertIn("doctor --lock", reason)
        self.run_tool("doctor", "--verify", self.folder / "none", status=2)
        self.run_tool("doctor", "--verify", self.lock, "--lock", self.lock, status=2)

    def test_it_overwrites_its_own_files_and_nobody_elses(self):
        self.written()
        self.written()
        self.lock.unlink()
        self.requirements.write_text("mine==1\n")
        self.assertIn("requirements.txt", self.run_tool("doctor", "--lock", self.lock, status=2)["reason"])
        self.assertEqual(self.requirements.read_text(), "mine==1\n")
        self.assertFalse(self.lock.exists())
        self.requirements.unlink()
        self.run_tool("doctor", "--lock", self.requirements, status=2)
        self.run_tool("doctor", "--lock", self.folder / "none" / "machine.lock", status=2)

    def test_a_python_that_hides_its_packages_is_told(self):
        python = os.environ["UNMOOR_PYTHON"]
        wrapper = self.folder / "python"
        wrapper.write_text(f'#!/bin/sh\ncase "$2" in *unmoor-packages*) echo broken >&2; exit 9;; esac\nexec {python} "$@"\n')
        wrapper.chmod(0o755)
        if not any(each["state"] == "ready" for each in self.run_tool("doctor", "--python", wrapper)["engines"]):
            self.skipTest("no engine is here")
        reason = self.run_tool("doctor", "--lock", self.lock, "--python", wrapper, status=3)["reason"]
        self.assertIn("exit status 9", reason)
        self.assertIn("broken", reason)
        self.assertFalse(self.lock.exists())

    def test_text_fits_80_columns(self):
        lock = self.written()
        lock["components"][1]["version"] = "an operating system"
        self.lock.write_text(json.dumps(lock))
        shown = unmoor("doctor", "--verify", self.lock).out
        for line in shown[shown.index("\n\n"):].splitlines():
            if not re.match(r"  \S|.* from /", line):
                self.assertLessEqual(len(line), 80, line)


class MadeUpMachines(ProgramTest):
    """Machines as folder trees: UNMOOR_MACHINE names the root, outputs/TOOL is what a tool prints there. Each has one fault, which comes first."""

    def machine(self, files=(), python="3.11.2", gpu=None, **packages):
        root = self.folder / "machine"
        texts = {**dict(files), "outputs/python": json.dumps({"python": python, "packages": [
            {"name": name.replace("_", "-"), "version": version} for name, version in packages.items()]})}
        if gpu:
            texts["outputs/nvidia-smi"] = gpu + "\n"
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return {"UNMOOR_MACHINE": str(root)}

    def nvidia(self, driver, **others):
        text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Wed Oct 25\nGCC version: gcc version 12.2.0\n"
        return self.machine({"proc/driver/nvidia/version": text}, **others)

    def ascend(self, cann, driver, **packages):
        return self.machine({"usr/local/Ascend/driver/version.info": f"Version={driver}\nascendhal_version=7\n",
                             "usr/local/Ascend/ascend-toolkit/latest/x86_64-linux/ascend_toolkit_install.info":
                                 f"package_name=Ascend-cann-toolkit\nversion={cann}\narch=x86_64\n"}, **packages)

    def assert_fault(self, environment, a, b, *remedies):
        found = self.run_tool("doctor", status=1, environment=environment)
        self.assertEqual([each["verdict"] for each in found["pairs"]].count("does not"), 1, found["pairs"])
        first = found["pairs"][0]
        self.assertEqual((first["a"], first["b"], first["verdict"]), (a, b, "does not"))
        self.assertRegex(first["source"], r"\(.*\)$")
        for remedy in remedies:
            self.assertIn(remedy, first["would"])
        self.assertIn(f"{a} does not fit {b}", found["reason"])
        self.assertTrue(unmoor("doctor", environment=environment).out.startswith(f"{a} does not"), "the fault is not named first")

    def verdicts(self, environment, status=0):
        return {(each["a"], each["b"]): each["verdict"] for each in self.run_tool("doctor", status=status, environment=environment)["pairs"]}

    def test_a_driver_too_old_for_the_runtime(self):
        self.assert_fault(self.nvidia("470.82.01", gpu="8.6", torch="2.6.0+cu126"), "cuda runtime 12.6", "nvidia driver 470.82.01",
                          "525.60.13 or newer", "nvidia-smi shows")

    def test_a_python_that_torch_has_no_wheel_for(self):
        self.assert_fault(self.machine(torch="2.4.0", python="3.14.1"), "torch 2.4.0", "python 3.14.1", "3.8 to 3.12")

    def test_a_gpu_newer_than_the_wheel(self):
        self.assert_fault(self.nvidia("570.124.06", gpu="12.0", torch="2.7.0+cu126"), "torch 2.7.0+cu126", "nvidia gpu 12.0", "9.0")

    def test_cudnn_of_another_major(self):
        self.assert_fault(self.nvidia("560.35.05", gpu="8.9", onnxruntime_gpu="1.20.1", nvidia_cudnn_cu12="8.9.7.29", nvidia_cuda_runtime_cu12="12.6.77"),
                          "onnxruntime-gpu 1.20.1", "cudnn 8.9.7.29", "cudnn 9")

    def test_a_plug_in_of_another_torch(self):
        self.assert_fault(self.ascend("8.1.RC1", "25.0.rc1", torch="2.6.0", torch_npu="2.5.1"), "torch-npu 2.5.1", "torch 2.6.0", "torch 2.5.1",
                          "torch-npu 2.6.0")

    def test_a_plug_in_of_another_cann(self):
        self.assert_fault(self.ascend("8.0.RC3", "25.5.0", torch="2.9.0", torch_npu="2.9.0"), "torch-npu 2.9.0", "cann 8.0.RC3", "8.5.0")

    def test_a_driver_that_cann_refuses(self):
        self.assert_fault(self.ascend("9.1.0", "25.0.2", torch="2.12.0", torch_npu="2.12.0"), "cann 9.1.0", "ascend driver 25.0.2", "26.0.RC1")

    def test_a_gpu_that_rocm_leaves_out(self):
        node = "sys/class/kfd/kfd/topology/nodes/1/properties"
        self.assert_fault(self.machine({"opt/rocm/.info/version": "6.4.0-47\n", node: "simd_count 240\ngfx_target_version 90006\n"}, torch="2.6.0+rocm6.2.4"),
                          "rocm 6.4.0", "amd gpu gfx906", "gfx90a")

    def test_moore_threads_and_cambricon_plug_ins(self):
        self.assert_fault(self.machine(torch="2.5.0", torch_musa="2.7.1", python="3.10.2"), "torch-musa 2.7.1", "torch 2.5.0", "2.7.1")
        self.assert_fault(self.machine(torch="2.6.0", torch_mlu="1.22.0"), "torch-mlu 1.22.0", "torch 2.6.0", "2.4.0")

    def test_a_machine_without_a_fault(self):
        found = self.verdicts(self.nvidia("535.104.05", gpu="8.6", torch="2.6.0+cu126"))
        self.assertEqual(set(found.values()), {"fits"}, found)
        self.assertIn(("torch 2.6.0+cu126", "nvidia gpu 8.6"), found)
        found = self.verdicts(self.ascend("8.2.RC1", "25.2.0", torch="2.6.0", torch_npu="2.6.0"))
        self.assertEqual(found[("cann 8.2.RC1", "ascend driver 25.2.0")], "fits")

    def test_what_no_source_tells_is_unknown(self):
        self.assertEqual(self.verdicts(self.machine()), {})
        found = self.verdicts(self.ascend("11.0.0", "30.0.0", torch="3.0.0", torch_npu="3.0.0"))
        self.assertEqual(set(found.values()), {"unknown"}, found)

    def test_broken_files_of_a_machine_are_no_facts(self):
        files = {"proc/driver/nvidia/version": "\0\xff" * 1000, "usr/local/cuda/version.json": '{"cuda": {"version": ' + "[" * 100000 + "]" * 100000 + "}}", "opt/rocm/.info/version": "",
                 "sys/class/kfd/kfd/topology/nodes/0/properties": "gfx_target_version 99999999999999999999\n"}
        environment = self.machine(files)
        for text in ("", "{", '{"packages": 3}', '{"packages": [3, {"name": 1}, {"name": "torch", "version": 2}]}', '{"packages": [{"name": "torch", "version": "+"}]}'):
            (self.folder / "machine/outputs/python").write_text(text)
            self.assertNotIn("does not", self.verdicts(environment).values())
        (self.folder / "machine/proc/driver/nvidia/version").write_text("Kernel Module  535.104.05 \n")
        self.assertNotIn("does not", self.verdicts(environment).values())


class Rules(unittest.TestCase):
    """The files of data/catalog/versions, as tools/make_versions.py writes them."""

    FOLDER = Path(__file__).resolve().parent.parent.parent / "data" / "catalog" / "versions"

    def is_range(self, value):
        return isinstance(value, str) or (isinstance(value, list) and len(value) == 2 and all(end is None or isinstance(end, str) for end in value))

    def test_every_rule_is_whole_and_has_a_source_and_a_date(self):
        files = sorted(self.FOLDER.glob("*.json"))
        self.assertEqual({each.stem for each in files}, {"ascend", "cambricon", "cuda", "intel", "musa", "rocm"})
        for file in files:
            content = json.loads(file.read_text())
            self.assertEqual(content["schema"], 1)
            self.assertTrue(content["sources"] and content["rules"], file)
            for rule in content["rules"]:
                self.assertLessEqual(set(rule), {"a", "b", "when", "fits", "refused", "given", "otherwise", "source", "date", "note"}, rule)
                self.assertTrue(rule["a"] and rule["b"] and rule["when"] and rule["source"] and rule["date"], rule)
                self.assertIn(rule["otherwise"], ("does not", "unknown"))
                for each in [*rule["when"], *rule["fits"], *rule.get("refused", []), *(one for many in rule.get("given", {}).values() for one in many)]:
                    self.assertTrue(self.is_range(each), rule)


if __name__ == "__main__":
    unittest.main()
