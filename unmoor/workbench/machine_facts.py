"""Prints what an engine's Python is and the packages that its engines are made of: the packages by which engines and their plug-ins come, and
what those need. Run by `unmoor doctor` in the user's interpreter, 3.8 or newer; imports no package, so nothing of theirs runs."""
import sys

if sys.path[:1] == [""]:  # Files of the working folder are no packages.
    del sys.path[0]

import csv
import hashlib
import json
import platform
import re
from importlib import metadata

ROOTS = re.compile(r"(onnxruntime|torch|torch-.*|onnxruntime-.*|onnx|numpy|triton|pytorch-triton.*|intel-extension-for-pytorch|openvino)\Z")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(distribution):
    """Names of required packages; those of extras are no part of it."""
    for each in distribution.requires or ():
        name, _, marker = each.partition(";")
        if not re.search(r"\bextra\s*==", marker):
            yield plain(re.match(r"\s*([\w.-]+)", name).group(1))


def content_hash(distribution):
    """SHA-256 over the installed files' names and hashes as its RECORD lists them. Metadata and scripts are left out: they tell who installed
    it, and where. Empty if there is no such record."""
    record = distribution.read_text("RECORD")
    if not record:
        return ""
    rows = sorted(f"{row[0]} {row[1]}" for row in csv.reader(record.splitlines())
                  if len(row) > 1 and row[1] and ".dist-info/" not in row[0] and not row[0].startswith(".."))
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def main():
    found = {}
    for each in metadata.distributions():  # In the order of sys.path: the first of a name is the one that is imported.
        name = each.metadata["Name"]
        if name:
            found.setdefault(plain(name), each)
    wanted, taken = [name for name in found if ROOTS.match(name)], set()
    while wanted:
        name = wanted.pop()
        if name in found and name not in taken:
            taken.add(name)
            wanted.extend(needed(found[name]))
    packages = [{
  "name" : name, "version" : found[name].version, "path" : str(found[name].locate_file("")), "sha256" : content_hash(found[name])}
                for name in sorted(taken)]
    facts = {"python": platform.python_version(), "path": sys.executable, "packages": packages}
    sys.stdout.write("\nunmoor-packages " + json.dumps(facts) + "\n")


main()
