#!/usr/bin/env python3
"""Writes docs/support-matrix.md: every operator on every device by dtype, and why not. `--check` compares instead: status 1 if they differ.

  tools/make_matrix.py build/release/unmoor [--check]

The states are those of `unmoor conformance --dry-run`: where the planner puts each case, without running it.
"""
import argparse
import collections
import json
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs" / "support-matrix.md"
DEVICES = ["cpu", "opencl"]
WORDS = {"native": "native", "generic": "plain path", "expanded": "by parts", "host": "host", "fallback": "cpu instead", "unsupported": "none"}
HEAD = """# Support matrix

Made by `tools/make_matrix.py` from `unmoor conformance --dry-run`; do not edit. A test checks it. Every cell is what the planner answers to
the operator's conformance cases, by dtype of the first input; `5/7` means 5 of 7 cases. What a state says was right or refused is run by
`unmoor conformance`.

* **native**: a kernel of the device made for this operator.
* **by parts**: the operator as a graph of simpler ones, all on the device.
* **plain path**: the `cpu`'s own slow and exact form, `cpu.generic`.
* **host**: shape arithmetic and control flow, which run beside every device.
* **cpu instead**: the device refuses and the `cpu` runs it; the reasons are listed. `--fallback forbid` makes it an error.

`opencl` is answered by PoCL 3.1 on a processor: what a device lacks (float16, float64) depends on the device.
"""


def placements(program, device):
    run = subprocess.run([program, "conformance", "--on", device, "--dry-run", "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"make_matrix: {program} on {device} ended with status {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout)["cases"]


def dtype_of(case):
    found = re.search(r" ([a-z]+[0-9a-z]*)\[", case)
    return found.group(1) if found else "no input"


def cell(states):
    """One operator on one device: {dtype: Counter of states} as words."""
    by_state = collections.defaultdict(list)
    for dtype, counts in states.items():
        total = sum(counts.values())
        for state, count in counts.items():
            by_state[state].append(dtype if count == total else f"{dtype} {count}/{total}")
    return "; ".join(f"**{WORDS[state]}** {', '.join(by_state[state])}" for state in WORDS if state in by_state)


def escaped(text):
    return re.sub(r"([|<>*_`\[\]])", r"\\\1", " ".join(text.split()))


def document(program):
    states = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(collections.Counter)))
    reasons = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for device in DEVICES:
        for case in placements(program, device):
            op = case["case"].split(" ")[0]
            states[op][device][dtype_of(case["case"])][case["verdict"]] += 1
            if case["verdict"] in ("fallback", "unsupported"):
                reasons[op][device][case["detail"]] += 1
    lines = [HEAD, f"{len(states)} operators.\n", "| Operator | " + " | ".join(DEVICES) + " |", "|---|" + "---|" * len(DEVICES)]
    for op in sorted(states):
        lines.append(f"| {op} | " + " | ".join(cell(states[op][device]) for device in DEVICES) + " |")
    lines.append("\n## Why not\n")
    for op in sorted(reasons):
        for device, counts in sorted(reasons[op].items()):
            lines += [f"* {op} on {device}, {count} {'case' if count == 1 else 'cases'}: {escaped(why)}" for why, count in sorted(counts.items())]
    return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", help="the unmoor program")
    arguments.add_argument("--check", action="store_true")
    options = arguments.parse_args()
    text = document(options.program)
    if not options.check:
        DOCS.write_text(text)
    elif not DOCS.exists() or DOCS.read_text() != text:
        print(f"{DOCS.name} is not what the program says; run tools/make_matrix.py {options.program}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
