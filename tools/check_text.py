#!/usr/bin/env python3
"""Checks what is committed: no package host and no path of one machine in any text, no `resolved` host in an npm lock file."""
import json
import os
import pathlib
import re
import subprocess
import sys

# Written so that this file does not match itself.
FORBIDDEN = {
    "a package host": re.compile(r"\bpypi\.(org|io)\b|pythonhoste[d]\.org|registry\.(npmjs|yarnpkg)\b|\b(deb|security|snapshot)\.debian\.(org|net)\b"
                                 r"|archive\.ubunt[u]\.com|nodesourc[e]\.com|download\.pytorc[h]\.org|proxy\.golan[g]\.org|index\.crate[s]\.io"),
    "a path of one machine": re.compile(r"(?<![\w.$}-])/(wor[k]|hom[e]/\w+|roo[t])/[\w.]|/tm[p]/bash_jobs|/op[t]/(pypi|wheels)"),
}


def complaints_in(name, text):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in FORBIDDEN.items():
            match = pattern.search(line)
            if match:
                found.append(f"{name}:{number}: names {what}: {match.group(0)}")
    if name.endswith("package-lock.json"):
        packages = json.loads(text).get("packages", {})
        hosts = [package for package, entry in packages.items() if "resolved" in entry]
        if hosts:
            found.append(f"{name}: {len(hosts)} packages have a `resolved` host, such as {hosts[0]}; "
                         "make the lock file with: npm install --package-lock-only --omit-lockfile-registry-resolved")
    return found


def committed(root):
    """Files that git knows or would add."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=True).stdout
    return sorted(set(listed.decode().split("\0")) - {""})


def check(root):
    found = []
    for name in committed(root):
        path = root / name
        if path.is_symlink():
            target = os.readlink(path)
            if os.path.isabs(target) or not path.exists():
                found.append(f"{name}: links to {target}, which is not of this tree")
            continue
        if not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data[:8192]:
            found += complaints_in(name, data.decode("utf-8", "replace"))
    return found


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(complaints) if complaints else "no hosts, no machine paths")
    sys.exit(1 if complaints else 0)
