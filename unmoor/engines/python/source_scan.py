"""Finds what ties PyTorch code to one vendor's devices, and writes the edits that would untie it. Runs in the user's Python, 3.8 or later; nothing of
the code is imported or run. Reads a request as JSON on standard input, writes the result as JSON."""
import ast
import gc
import json
import os
import sys

from unmoor_source_rules import Rules, requirement_findings  # In one process with this, by whoever starts it.
from unmoor_source_patch import patched

MOST_FILES, MOST_BYTES, MOST_OF_FILE, MOST_FINDINGS = 50_000, 512 << 20, 4 << 20, 50_000
SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}
WORDS = (b"cuda", b"torch", b"nccl", b"CUDA", b"NCCL", b"nvidia", b"float64", b"double", b"triton", b"flash_attn", b"xformers", b"bitsandbytes", b"apex", b"pynvml", b"cupy")


class Scan:
    def __init__(self, root):
        self.root = root
        self.files, self.skipped, self.findings, self.parts = 0, [], [], []
        self.trains, self.seeds = None, False

    def skip(self, path, why):
        self.skipped.append({"file": os.path.relpath(path, self.root), "why": why})

    def paths(self):
        """Files to read, sorted; links to folders, hidden folders and virtual environments are left out."""
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS
                                and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg")))
            for name in sorted(names):
                is_list = name.startswith("requirements") and name.endswith(".txt") or name in ("environment.yml", "environment.yaml", "constraints.txt")
                if name.endswith((".py", ".cu", ".cuh")) or is_list:
                    yield os.path.join(folder, name)

    def run(self):
        total = 0
        for path in self.paths():
            if self.files == MOST_FILES:
                raise SystemExit(f"there are more than {MOST_FILES} files; name a smaller folder")
            self.files += 1
            try:
                if not os.path.isfile(path):
                    self.skip(path, "no regular file")
                    continue
                if os.path.getsize(path) > MOST_OF_FILE:
                    self.skip(path, f"more than {MOST_OF_FILE >> 20} MiB")
                    continue
                with open(path, "rb") as file:
                    data = file.read(MOST_OF_FILE + 1)
            except OSError as problem:
                self.skip(path, problem.strerror or "cannot be read")
                continue
            total += len(data)
            if total > MOST_BYTES:
                raise SystemExit(f"the files have more than {MOST_BYTES >> 20} MiB; name a smaller folder")
            self.read(path, data)
            if len(self.findings) > MOST_FINDINGS:
                raise SystemExit(f"there are more than {MOST_FINDINGS} findings; name a smaller folder")
        self.add_seeds()

    def read(self, path, data):
        name = os.path.relpath(path, self.root)
        if name.endswith((".cu", ".cuh")):
            self.add(name, [{"line": 1, "column": 0, "rule": "cuda-extension", "what": os.path.basename(name), "edits": None}])
        elif not name.endswith(".py"):
            self.add(name, requirement_findings(data, name))
        elif any(word in data for word in WORDS):
            self.read_python(path, name, data)

    def read_python(self, path, name, data):
        try:
            tree = ast.parse(data, name)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            self.skip(path, f"does not parse: {str(problem)[:200]}")
            return
        rules = Rules(tree, data)
        try:
            rules.run()
        except RecursionError:
            self.skip(path, "nests too deep to follow")
            return
        self.seeds = self.seeds or rules.seeds
        if rules.trains and self.trains is None:
            self.trains = (name, rules.trains)
        changed = {}
        text, kept = patched(name, data, tree, rules)
        if text:
            self.parts.append(text)
            changed = kept
        for number, finding in enumerate(rules.findings):
            finding["edits"] = None if number not in changed else finding["edits"]
        self.add(name, rules.findings)

    def add(self, name, findings):
        for each in findings:
            edits = each.pop("edits", None)
            self.findings.append({"file": name, **each, "patched": bool(edits)})

    def add_seeds(self):
        if self.trains is not None and not self.seeds:
            name, line = self.trains
            self.findings.append({"file": name, "line": line, "column": 0, "rule": "no-seed", "what": "training without a seed anywhere", "patched": False})


def clean(value):
    """Names of files may hold bytes that are no UTF-8."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def main():
    if sys.version_info < (3, 8):
        raise SystemExit(f"this is Python {sys.version.split()[0]}; reading source needs 3.8 or later")
    request = json.loads(sys.stdin.buffer.read().decode())
    sys.setrecursionlimit(3000)
    gc.disable()  # Trees hold no circles, and looking for some takes as long as parsing.
    scan = Scan(request["root"])
    scan.run()
    findings = [{key: clean(value) for key, value in each.items()} for each in scan.findings]
    skipped = [{key: clean(value) for key, value in each.items()} for each in scan.skipped]
    result = {"files": scan.files, "skipped": skipped, "findings": findings, "patch": "".join(scan.parts), "python": sys.version.split()[0]}
    sys.stdout.buffer.write(json.dumps(result).encode())


main()
