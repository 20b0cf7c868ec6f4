"""What tools/make_catalog.py writes: files of data/catalog, one line an operator, so that the program parses only the lines it needs."""
import json
import re


def one_line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=False)


class TypeSets:
    """Sets of element types, each written once and named by its number."""

    def __init__(self):
        self.sets = []

    def number(self, names):
        names = sorted({spelled(name) for name in names})
        if names not in self.sets:
            self.sets.append(names)
        return self.sets.index(names)


SHORT = {"float": "float32", "double": "float64", "double_t": "float64"}


def spelled(name):
    """An element type as the program spells it: float32, seq(float32), optional(seq(int64)), map(int64,float32)."""
    name = name.replace(" ", "").replace("sparse_tensor(", "sparse(")
    name = re.sub(r"tensor\((\w+)\)", r"\1", name)
    return re.sub(r"\b(float|double|double_t)\b", lambda word: SHORT[word[0]], name)


def write(path, header, ops):
    """One platform and version: the header's keys a line each, then an operator a line, sorted by bytes."""
    lines = [f"{one_line(key)}:{one_line(value)}" for key, value in header.items() if value not in (None, [], {}, "")]
    entries = [f"{one_line(op)}:{one_line(ops[op])}" for op in sorted(ops, key=lambda name: name.encode())]
    path.write_text("{" + ",\n".join(lines) + ',\n"ops":{\n' + ",\n".join(entries) + "\n}}\n", encoding="utf-8")
