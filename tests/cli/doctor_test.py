"""doctor's lock: what decided on a machine, and what differs on another."""
import hashlib
import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from program import ProgramTest, unmoor


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
                            (json.dumps(twice), "stands there twice"), ("[" * 100_000, "no JSON"), (" " * (17 << 20), "more than any lock")):
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
        import os
        python = os.environ.get("UNMOOR_PYTHON") or sys.executable
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


if __name__ == "__main__":
    unittest.main()
