"""Edits of one file as a patch that `git apply` takes."""
import ast
import difflib
import re

NAMES = ("DEVICE", "ACCELERATOR", "UNMOOR_DEVICE")
LINES = {"DEVICE": ['import os', '{device} = os.environ.get("DEVICE", "cuda")  # The type of device to run on: cuda, npu, mlu, musa, xpu or cpu.'],
         "BACKEND": ['{backend} = {{"cuda": "nccl", "npu": "hccl", "mlu": "cncl", "musa": "mccl", "xpu": "xccl"}}.get({device}, "gloo")']}


def is_used(name, data):
    return re.search(rb"\b%s\b" % name.encode(), data) is not None


def place_of_names(tree):
    """The line before which names may be defined: behind the text of the module and what it takes from the future. None if they share a line."""
    after = 0
    for number, node in enumerate(tree.body):
        is_text = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        if not is_text and not is_future:
            return first if first > after else None
        after = node.end_lineno
    return None


def edited(data, edits):
    """The bytes with all edits made; None if two of them overlap or lie outside."""
    lines = data.split(b"\n")
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    placed = []
    for first, last, text in edits:
        if not (1 <= first[0] <= len(lines) and 1 <= last[0] <= len(lines)):
            return None
        placed.append((starts[first[0] - 1] + first[1], starts[last[0] - 1] + last[1], text.encode()))
    placed.sort()
    parts, at = [], 0
    for begin, stop, text in placed:
        if begin < at or stop < begin or stop > len(data):
            return None
        parts += [data[at:begin], text]
        at = stop
    return b"".join([*parts, data[at:]])


def header_name(name):
    """A file's name as a patch has it; None if git would write it in quotes."""
    if re.search(r'[\x00-\x1f"\\\x7f-\uffff]', name) or not name.isprintable():
        return None
    return name + ("\t" if " " in name else "")


def difference(name, before, after):
    """A unified difference of two texts; lines end as they do in the file."""
    path = header_name(name)
    if path is None:
        return ""
    old, new = (text.decode("utf-8").split("\n") for text in (before, after))
    old, new = ([*(line + "\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])] for lines in (old, new))
    parts = []
    for line in difflib.unified_diff(old, new, "a/" + path, "b/" + path):
        parts.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(parts)


def patched(name, data, tree, rules):
    """A patch of the file, and the numbers of the findings that it mends; an empty text if there is nothing that an edit could mend safely."""
    chosen = {number: finding["edits"] for number, finding in enumerate(rules.findings) if finding["edits"]}
    if not chosen or b"\r" in data.replace(b"\r\n", b"") or b"\x0c" in data:
        return "", {}
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "", {}
    line = place_of_names(tree)
    device = next((each for each in NAMES if not is_used(each, data)), None)
    backend = next((each for each in ("BACKEND", "UNMOOR_BACKEND") if not is_used(each, data)), None)
    if line is None or device is None or backend is None:
        return "", {}
    edits = [edit for each in chosen.values() for edit in each]
    wanted = list(LINES["DEVICE"])
    if any(text == "BACKEND" for _, _, text in edits):
        wanted += LINES["BACKEND"]
    edits = [(first, last, re.sub(r"\bDEVICE\b", device, text) if text != "BACKEND" else backend) for first, last, text in edits]
    ending = "\r\n" if b"\r\n" in data else "\n"
    head = "".join(each.format(device=device, backend=backend) + ending for each in wanted)
    after = edited(data, [*edits, ((line, 0), (line, 0), head)])
    try:
        if after is None:
            return "", {}
        ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "", {}
    text = difference(name, data, after)
    return (text, chosen) if text else ("", {})
