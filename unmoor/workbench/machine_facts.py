"""Prints what an engine's Python is and the packages that its engines are made of: the packages by which engines and their plug-ins come, and
what those need. Run by `unmoor doctor` in the user's interpreter, 3.8 or newer; imports no package, so nothing of theirs runs."""
import sys

if sys.path[:1] == [""]:  # Files of the working folder are no packages.
    del sys.path[0]

import csv
import hashlib
import json
import mmap
import os
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


# c10::detail::torchCheckFail(const char*, const char*, uint32_t, const std::string&), which PyTorch defines and whatever is built on it calls.
TORCH_CHECK = b"_ZN3c106detail14torchCheckFailEPKcS2_jRK"
ABIS = {b"Ss": "0", b"NSt7__cxx1112basic_string": "1"}  # How std::string is spelled behind it: _GLIBCXX_USE_CXX11_ABI.
MOST_LIBRARIES = 50


def abi_of_library(path):
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = data.find(TORCH_CHECK)
            behind = data[at + len(TORCH_CHECK):at + len(TORCH_CHECK) + 40] if at >= 0 else b""
    except (OSError, ValueError):
        return ""
    return next((abi for spelling, abi in ABIS.items() if behind.startswith(spelling)), "")


def abi_of(distribution):
    """The C++ ABI that a package's libraries were built with; empty if none of them uses PyTorch's."""
    rows = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    files = [row[0] for row in rows if row and re.search(r"\.so(\.\d+)*$", row[0])]
    files.sort(key=lambda name: "libc10" not in name)  # PyTorch's own is there.
    return next(filter(None, (abi_of_library(os.fspath(distribution.locate_file(name))) for name in files[:MOST_LIBRARIES])), "")


def extensions(found):
    """PyTorch and the packages with libraries that are built on it."""
    built = {"torch"} & set(found) | {name for name, each in found.items() if "torch" in needed(each)}
    listed = ({"name": name, "version": found[name].version, "abi": abi_of(found[name])} for name in sorted(built))
    return [each for each in listed if each["abi"]] if "torch" in found else []


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
    facts = {"python": platform.python_version(), "path": sys.executable, "packages": packages, "extensions": extensions(found)}
    sys.stdout.write("\nunmoor-packages " + json.dumps(facts) + "\n")


main()
