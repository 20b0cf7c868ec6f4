#!/usr/bin/env python3
"""Fetches trained models out of pinned Python packages and puts them at examples/models/ID.onnx.

  tools/fetch_models.py example      the models that the README and the examples use
  tools/fetch_models.py first        the models that ./test uses as well
  tools/fetch_models.py ID...        single models
  tools/fetch_models.py --list       what there is, with package, size and licence

tools/models.json says which file of which package, and its SHA-256. No package is installed and none of its code runs.
Files that are already there and right are left alone.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
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


def download(package, version, folder):
    """The wheel of package==version, without what it depends on."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", "--dest", str(folder), f"{package}=={version}"]
    result = subprocess.run(command, stdout=sys.stderr)
    wheels = list(folder.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        raise SystemExit(f"fetch_models: pip could not download {package}=={version} (exit {result.returncode}).\n"
                         f"Check that pip reaches its package index, then try again: {' '.join(command)}")
    return wheels[0]


def extract(row, wheel, path):
    """Copies the model out of the wheel; the file appears under its name only when it is whole and right."""
    with zipfile.ZipFile(wheel) as archive:
        try:
            data = archive.read(row["path"])
        except KeyError:
            raise SystemExit(f"fetch_models: {wheel.name} holds no file {row['path']}")
    found = hashlib.sha256(data).hexdigest()
    if found != row["sha256"]:
        raise SystemExit(f"fetch_models: {row['path']} in {wheel.name} has SHA-256\n  {found}, not\n  {row['sha256']}.\n"
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
            print(f"{row['id']:18} {row['bytes'] / 1e6:6.2f} MB  {row['package']}=={row['version']}  {row['licence']}")
        return
    options.to.mkdir(parents=True, exist_ok=True)
    missing = {}
    for row in choose(rows, options.wanted):
        if not is_there(row, options.to / f"{row['id']}.onnx"):
            missing.setdefault((row["package"], row["version"]), []).append(row)
    for (package, version), group in missing.items():
        with tempfile.TemporaryDirectory() as folder:
            wheel = download(package, version, pathlib.Path(folder))
            for row in group:
                extract(row, wheel, options.to / f"{row['id']}.onnx")
                print(f"fetched {row['id']} from {package} {version} ({row['licence']})")


if __name__ == "__main__":
    main()
