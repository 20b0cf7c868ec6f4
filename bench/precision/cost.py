#!/usr/bin/env python3
"""What `unmoor align` costs, next to the runs that it is made of.

    bench/precision/cost.py MODEL …                     prints the table; MODEL is an ONNX file, or a folder as bench/export_models.py makes
    bench/precision/cost.py --rounds 5 --write MODEL …  writes it into docs/precision.md, between the marks there

Everything is run in a process of its own, the kinds in turn, and the least of the rounds counts: of a time that includes starting, reading the model
and planning. "With all values" is a run that writes every value into a folder in memory, which is what it takes to look at them elsewhere.
Inputs are inputs.npz beside the model where there is one, else generated. Needs onnx.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import onnx

import page

ROOT = Path(__file__).resolve().parent.parent.parent
MARKS = ("<!-- Written by bench/precision/cost.py. -->", "<!-- End of its table. -->")
COPIES = 4  # Noise runs of whole models.
ASKED = {"beside": 1.3, "floor": 8, "live sets": COPIES + 2}


@dataclass
class Ran:
    seconds: float
    peak: int  # Bytes of memory that are no file's.
    out: str


@dataclass
class Costs:
    """Seconds, and bytes. `weights` are the reference's, and all that a run of the target alone takes."""
    name: str
    plain: float
    target: float
    reference: float
    align: float
    floor: float
    peak: int
    weights: int
    live: int

    @property
    def reached(self):
        return {"beside": (self.align - self.floor) / (self.target + self.reference), "floor": self.floor / self.plain,
                "live sets": (self.peak - self.weights) / self.live}


def private_memory(pid):
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def timed(command):
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
        peak = 0
        while process.poll() is None:
            peak = max(peak, private_memory(process.pid))
            time.sleep(0.003)
        seconds = time.perf_counter() - start
        out.seek(0)
        errors.seek(0)
        if process.returncode not in (0, 1):  # 1: align has found something.
            raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}: {errors.read().decode()[-600:]}")
        return Ran(seconds, peak, out.read().decode())


def shown_sizes(folder):
    """By the name of each value of a dump, its bytes where floats take eight, as all numbers do here."""
    values = json.loads((folder / "manifest.json").read_text())["values"]
    return {value["name"]: 8 * math.prod(value["shape"]) for value in values if "shape" in value}


def live_set(graph, sizes):
    """The most bytes of values that are there at once, each from the node that makes it to the last that reads it."""
    made = {value.name: -1 for value in graph.input}
    last = dict(made)
    for i, node in enumerate(graph.node):
        made.update(dict.fromkeys(node.output, i))
        last.update(dict.fromkeys((*node.input, *node.output), i))
    last.update({value.name: len(graph.node) for value in graph.output})
    return max(sum(sizes.get(name, 0) for name, start in made.items() if start <= i <= last[name]) for i in range(len(graph.node)))


def weight_bytes(graph):
    """Of the reference, which holds them in float64."""
    return 8 * sum(math.prod(each.dims) for each in graph.initializer if len(each.dims) > 0)


def measured(program, path, rounds=3, shapes=None):
    """The costs of one model on this machine; `shapes` of generated inputs as --shapes takes them."""
    path = Path(path)
    model = path / "model.onnx" if path.is_dir() else path
    inputs = model.parent / "inputs.npz"
    given = [str(model), *(["-i", str(inputs)] if inputs.exists() else []), *(["--shapes", shapes] if shapes else [])]
    best = {}
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=memory) as place:
            folder = Path(place)
            kinds = {"plain": ["run", *given, "--on", "reference"], "alone": ["run", *given, "--on", "cpu"],
                     "target": ["run", *given, "--on", "cpu", "--dump", str(folder / "target")],
                     "reference": ["run", *given, "--on", "reference", "--no-fuse", "--dump", str(folder / "reference")],
                     "align": ["align", *given, "--target", "cpu", "--json"]}
            for kind, arguments in kinds.items():
                ran = timed([program, *arguments])
                best[kind] = min(best.get(kind, ran), ran, key=lambda each: each.seconds)
            sizes = shown_sizes(folder / "reference")
    graph = onnx.load(str(model), load_external_data=False).graph
    return Costs(path.stem if path.is_file() else path.name, best["plain"].seconds, best["target"].seconds, best["reference"].seconds,
                 best["align"].seconds, json.loads(best["align"].out)["floor_ms"] / 1000, best["align"].peak,
                 weight_bytes(graph) + best["alone"].peak, live_set(graph, sizes))


def table(rows):
    lines = ["| model | one float64 run | target, reference with all values | align | of it the floor | align without the floor, of both runs | floor, of a float64 run |"
             " peak memory, of it weights and target | live set | live sets beside weights |", "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        reached = row.reached
        mib = [f"{each / 2**20:.0f} MiB" for each in (row.peak, row.weights, row.live)]
        lines.append(f"| {row.name} | {row.plain:.2f} s | {row.target:.2f} s, {row.reference:.2f} s | {row.align:.2f} s | {row.floor:.2f} s | {reached['beside']:.2f} | "
                     f"{reached['floor']:.1f} | {mib[0]}, {mib[1]} | {mib[2]} | {reached['live sets']:.1f} |")
    lines.append(f"| asked, at most | | | | | {ASKED['beside']} | {ASKED['floor']} | | | {ASKED['live sets']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--unmoor", default=str(ROOT / "build/release/unmoor"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="into docs/precision.md")
    given = parser.parse_args()
    rows = []
    for model in given.models:
        rows.append(measured(given.unmoor, model, given.rounds))
        print(f"{rows[-1].name}: {rows[-1].reached}", file=sys.stderr)
    text = table(rows)
    print(text)
    if given.write:
        page.write(MARKS, text)


if __name__ == "__main__":
    main()
