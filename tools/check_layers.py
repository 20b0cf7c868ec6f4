#!/usr/bin/env python3
"""Checks that every folder of unmoor/ includes only folders before it (docs/architecture.md). Prints what breaks the order."""
import pathlib
import re
import sys

ops = {"base", "tensor", "graph", "ops"}
# What each layer may include besides itself.
MAY_INCLUDE = {
    "base": set(),
    "tensor": {"base"},
    "graph": {"base", "tensor"},
    "ops": {"base", "tensor", "graph"},
    "formats": ops,
    "passes": ops,
    "catalog": {"base"},
    "hal": ops,
    "backends": ops | {"hal"},
    "runtime": ops | {"hal", "passes"},
    "engines": ops | {"hal", "passes", "runtime", "formats"},
    "workbench": ops | {"hal", "passes", "runtime", "formats", "engines", "catalog"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
SOURCES = {".h", ".cpp", ".c", ".cc", ".hpp"}


def layer_of(path):
    """The layer of a path below unmoor/, and the backend ('' for files that belong to all backends)."""
    parts = path.split("/")
    return parts[0], parts[1] if parts[0] == "backends" and len(parts) > 2 else ""


def complaint(file, included):
    """Why `file` may not include `included`, both below unmoor/; None if it may."""
    layer, backend = layer_of(file)
    other, other_backend = layer_of(included)
    if layer not in MAY_INCLUDE:
        return f"'{layer}' is no layer; there are: {', '.join(MAY_INCLUDE)}"
    if other != layer:
        return None if other in MAY_INCLUDE[layer] else f"{layer} may not include {other}"
    if backend and other_backend and backend != other_backend:
        return f"backend {backend} may not include backend {other_backend}"
    return None


def check(root):
    """All complaints about the folder that holds unmoor/."""
    found = []
    for path in sorted((root / "unmoor").rglob("*")):
        if path.suffix not in SOURCES:
            continue
        file = path.relative_to(root / "unmoor").as_posix()
        for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if included.startswith("unmoor/"):
                why = complaint(file, included[len("unmoor/"):])
            elif included.startswith("cli/") or included.startswith("tests/"):
                why = "the library may not include what is built on it"
            elif included.startswith(".") or (path.parent / included).exists():
                why = "write the whole path, from unmoor/ on"
            else:
                why = None
            if why:
                found.append(f"unmoor/{file}: #include \"{included}\": {why}")
    return found


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(complaints) if complaints else "the order of layers holds")
    sys.exit(1 if complaints else 0)
