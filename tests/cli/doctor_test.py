"""doctor's lock: what decided on a machine, and what differs on another; and the rules by which versions are judged."""
import hashlib
import json
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from program import ProgramTest, unmoor

os.environ.setdefault("UNMOOR_PYTHON", sys.executable)  # One that has an engine.


class Lock(ProgramTest):
    """A start of doctor takes seconds where PyTorch is: the machine is locked once, and compared once with a lock in which much is other."""

    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(shared.cleanup)
        cls.shared = Path(shared.name)
        cls.lock, cls.changed_lock = cls.shared / "machine.lock", cls.shared / "changed.lock"
        cls.written = unmoor("doctor", "--lock", cls.lock, "--json")
        cls.components = {each["name"]: each for each in json.loads(cls.lock.read_text())["components"]}
        cls.changed_lock.write_text(json.dumps({"lock": 1, "created": "2026-01-01T00:00:00Z", "components": list(cls.change().values())}))
        cls.verified = unmoor("doctor", "--verify", cls.changed_lock, "--json")
        cls.differences = {each["name"]: each for each in cls.verified.json["differences"]}
        cls.shown = unmoor("doctor", "--verify", cls.changed_lock)

    @classmethod
    def change(cls):
        components = json.loads(json.dumps(cls.components))
        for name, version in (("package six", "1.0.1"), ("package --index-url=x", "1"), ("device cuda:0", "A100")):
            components[name] = {"name": name, "version": version, "path": "", "sha256": ""}
        components["unmoor"]["version"] = "0.0.7"
        components["os"]["version"] = "an operating system"
        components["kernel"]["version"] = "Linux 1.2.3 x86_64"
        components["instruction sets"]["version"] += " avx9_fp4"
        components["library libc.so"]["sha256"] = "0" * 64
        del components["device cpu"]
        return components

    def test_it_holds_everything_that_decided_with_hashes(self):
        self.assertEqual(self.written.status, 0, self.written)
        self.assertLessEqual({"unmoor", "os", "kernel", "cpu", "instruction sets", "device cpu", "library libc.so"}, set(self.components))
        for each in self.components.values():
            self.assertLessEqual({"name", "version", "path", "sha256"}, set(each))
            if each["path"] and each["name"].split()[0] in ("unmoor", "library"):
                self.assertEqual(each["sha256"], hashlib.sha256(Path(each["path"]).read_bytes()).hexdigest(), each)
        found = self.written.json
        for device in found["devices"]:
            self.assertEqual(f"device {device['name']}" in self.components, device["state"] == "ready", device)
        for library in found["libraries"]:
            self.assertIn(str(Path(library["used"]).resolve()), {each["path"] for each in self.components.values()})
        for engine in found["engines"]:
            if engine["state"] == "ready":
                self.assertEqual(self.components[f"engine {engine['name']}"]["version"], engine["version"])
                self.assertIn("package numpy", self.components)

    def test_requirements_pin_every_package(self):
        packages = {name.split()[1]: each["version"] for name, each in self.components.items() if name.startswith("package ")}
        lines = [line for line in (self.shared / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(lines, [f"{name}=={version}" for name, version in packages.items()])

    def test_the_same_machine_does_not_differ(self):
        self.assertEqual(self.run_tool("doctor", "--verify", self.lock)["differences"], [])
        self.assertIn("nothing differs", unmoor("doctor", "--verify", self.lock).out)

    def test_what_differs_and_nothing_else_is_named_the_worst_first(self):
        self.assertEqual(set(self.differences), {"package six", "package --index-url=x", "device cuda:0", "unmoor", "os", "kernel", "instruction sets", "library libc.so", "device cpu"})
        order = [each["severity"] for each in self.verified.json["differences"]]
        self.assertEqual(order, sorted(order, key=["high", "medium", "low"].index))
        self.assertEqual((self.verified.status, self.verified.json["status"], self.shown.status), (1, 1, 1))
        self.assertIn("9 differences", self.verified.json["reason"])
        self.assertEqual(unmoor("doctor", "--verify", self.changed_lock, "--exit-zero").status, 0)

    def test_a_wrong_version_is_named_with_both_and_a_command(self):
        ours, package = self.differences["unmoor"], self.differences["package six"]
        self.assertEqual((ours["severity"], ours["locked"]), ("high", "0.0.7"))
        self.assertRegex(ours["here"], r"\d+\.\d+\.\d+")
        self.assertTrue(package["command"].endswith("-m pip install six==1.0.1"))
        self.assertEqual(self.differences["kernel"]["severity"], "low")
        self.assertIn("unmoor: locked 0.0.7", self.shown.out)
        self.assertIn("What would mend it:\n  ", self.shown.out)

    def test_what_is_no_package_has_no_command_and_a_reason(self):
        self.assertEqual(self.differences["package --index-url=x"]["command"], "")
        self.assertIn("no command: ", self.differences["package --index-url=x"]["detail"])
        self.assertNotIn("install --index-url", self.shown.out)

    def test_a_missing_component_says_why_it_is_not_here(self):
        difference = self.differences["device cuda:0"]
        self.assertEqual((difference["severity"], difference["locked"], difference["here"]), ("high", "A100", ""))
        self.assertIn("absent: ", difference["detail"])

    def test_what_is_only_here_is_for_the_record(self):
        difference = self.differences["device cpu"]
        self.assertEqual((difference["severity"], difference["locked"]), ("low", ""))

    def test_other_content_of_the_same_version_is_found(self):
        difference = self.differences["library libc.so"]
        self.assertEqual(difference["severity"], "medium")
        self.assertIn("sha256 000000000000", difference["locked"])
        if package := self.components["library libc.so"].get("package"):  # Where it is one of Debian's.
            self.assertEqual(difference["command"], f"sudo apt-get install --reinstall {package}")

    def test_other_instruction_sets_are_listed(self):
        self.assertIn("here lacks avx9_fp4", self.differences["instruction sets"]["detail"])

    def test_what_is_no_lock_is_refused_with_the_reason(self):
        good, path = json.loads(self.lock.read_text()), self.folder / "bad.lock"
        twice, deep = {**good, "components": good["components"] * 2}, "[" * 100_000 + "]" * 100_000
        for text, words in (("", "no JSON"), (json.dumps(good)[:-40], "no JSON"), ("[]", "no lock"), ("{}", "no lock"), ('{"lock": 2}', "no lock"),
                            ('{"lock": 1}', "no components"), ('{"lock": 1, "components": []}', "no components"),
                            ('{"lock": 1, "components": [1]}', "component 1 is no object"), ('{"lock": 1, "components": [{"name": "a"}]}', "no text 'version'"),
                            ('{"lock": 1, "components": [{"name": "a", "version": 1, "path": "", "sha256": ""}]}', "no text 'version'"),
                            ('{"lock": 1, "components": [{"name": "", "version": "", "path": "", "sha256": ""}]}', "empty name"),
                            ('{"lock": 1, "components": [{"name": "a", "version": "", "path": "", "sha256": "x"}]}', "no SHA-256"),
                            (json.dumps(twice), "stands there twice"), ("[" * 100_000, "no JSON"), ('{"lock": ' + deep + "}", "no JSON"),
                            (" " * (17 << 20), "more than any lock")):
            path.write_text(text)
            reason = self.run_tool("doctor", "--verify", path, status=2)["reason"]
            self.assertIn(words, reason)
            self.assertIn("doctor --lock", reason)
        self.run_tool("doctor", "--verify", self.folder / "none", status=2)
        self.run_tool("doctor", "--verify", self.lock, "--lock", self.lock, status=2)

    def test_it_overwrites_its_own_files_and_nobody_elses(self):
        before = self.lock.read_bytes()
        self.run_tool("doctor", "--lock", self.lock)
        self.assertEqual(json.loads(before)["components"], json.loads(self.lock.read_text())["components"])
        lock, requirements = self.folder / "machine.lock", self.folder / "requirements.txt"
        requirements.write_text("mine==1\n")
        self.assertIn("requirements.txt", self.run_tool("doctor", "--lock", lock, status=2)["reason"])
        self.assertEqual(requirements.read_text(), "mine==1\n")
        self.assertFalse(lock.exists())
        requirements.unlink()
        self.run_tool("doctor", "--lock", requirements, status=2)
        self.run_tool("doctor", "--lock", self.folder / "none" / "machine.lock", status=2)

    def test_a_python_that_hides_its_packages_is_told(self):
        python, lock = os.environ["UNMOOR_PYTHON"], self.folder / "machine.lock"
        wrapper = self.folder / "python"
        wrapper.write_text(f'#!/bin/sh\ncase "$2" in *unmoor-packages*) echo broken >&2; exit 9;; esac\nexec {python} "$@"\n')
        wrapper.chmod(0o755)
        found = self.run_tool("doctor", "--python", wrapper)
        if not any(each["state"] == "ready" for each in found["engines"]):
            self.skipTest("no engine is here")
        self.assertIn("exit status 9", found["python"]["problem"])
        reason = self.run_tool("doctor", "--lock", lock, "--python", wrapper, status=3)["reason"]
        self.assertIn("exit status 9", reason)
        self.assertIn("broken", reason)
        self.assertFalse(lock.exists())
        self.assertIn("does not list its packages", " ".join(unmoor("doctor", "--python", wrapper).out.split()))

    def test_text_fits_80_columns(self):
        for line in self.shown.out[self.shown.out.index("\n\n"):].splitlines():
            if not re.match(r"  \S|.* from /", line):
                self.assertLessEqual(len(line), 80, line)


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
