#!/usr/bin/env python3
"""Independent answers to conformance cases: made once by other implementations, kept as facts, checked against the reference in ./test.

  tests/conformance/facts.py make  --unmoor build/release/unmoor     asks PyTorch, SciPy, the onnx package's evaluator and ONNX Runtime
  tests/conformance/facts.py check --unmoor build/release/unmoor     compares the reference's outputs with what is kept

A fact is a line of facts.jsonl: the case, who answered (`also`: who answered the same), and by output dtype, shape and up to eight elements.
What an answerer computed in float64, rounded once to the stored dtype, must be met within one step of it; what it computed in the stored
dtype, within that dtype's usual tolerance. Who contradicts the reference must stand in settled.json, with the reason by the specification:
`make` fails on every contradiction that does not. `make` needs the packages torch and scipy, `check` does not.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import ml_dtypes
import numpy as np

import answers

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "facts.jsonl"
SETTLED = HERE / "settled.json"
FLOATS = {np.dtype(np.float64): (52, -1022), np.dtype(np.float32): (23, -126), np.dtype(np.float16): (10, -14), np.dtype(ml_dtypes.bfloat16): (7, -126)}
SAMPLES = 8
FEWEST_CASES = 12000
FEWEST_FACTS = 8000
# |answer - reference| <= tolerance * (rms + |answer|) where the answerer computed in the stored dtype.
USUAL = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-5, np.dtype(np.float16): 2e-3, np.dtype(ml_dtypes.bfloat16): 1.6e-2}
NOISE = 1e-13  # Of the answer's own sums in float64, as a part of its rms.


def step_of(dtype, value):
    digits, lowest = FLOATS[dtype]
    exponent = lowest if value == 0 or not math.isfinite(value) else max(math.frexp(abs(value))[1] - 1, lowest)
    return math.ldexp(1.0, exponent - digits)


def places(count):
    """Up to SAMPLES elements: the first, the last and some between."""
    return list(range(count)) if count <= SAMPLES else sorted({round(i * (count - 1) / (SAMPLES - 1)) for i in range(SAMPLES)})


def rms(values):
    numbers = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    return math.sqrt(sum(value * value for value in numbers) / len(numbers)) if numbers else 0.0


def agrees(expected, found, dtype, rule, scale):
    """Whether a stored element meets the answer. Rules: exact, usual, or near, which is what float32 inside of either loses."""
    if expected == found:
        return True
    if isinstance(expected, float) and isinstance(found, float) and (math.isnan(expected) or math.isnan(found)):
        return math.isnan(expected) and math.isnan(found)
    if dtype not in FLOATS:
        return False
    largest = float(ml_dtypes.finfo(dtype).max)
    if abs(expected) > largest and math.isfinite(expected):  # Rounded once, it is infinite or the largest.
        return abs(found) >= largest and (found > 0) == (expected > 0)
    if math.isinf(expected) or math.isinf(found):
        return False
    if rule == "exact":
        rounded = float(np.asarray(expected).astype(dtype))
        return abs(rounded - found) <= step_of(dtype, rounded) + NOISE * scale
    tolerance = max(USUAL[dtype], USUAL[np.dtype(np.float32)]) if rule == "near" else USUAL[dtype]
    return abs(expected - found) <= tolerance * (scale + abs(expected))


def plain(value):
    """An element as JSON holds it."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (bytes, str)):
        return value.decode() if isinstance(value, bytes) else value
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, (bool, int)):
        return int(value)
    return float(value)


def describe_one(output, ours):
    """Dtype and shape as the reference stores them, elements as the answerer has them; of a sequence its items. A text if they differ in kind."""
    if isinstance(ours, list):
        if not isinstance(output, list):
            return "no sequence"
        if len(output) != len(ours):
            return f"a sequence of {len(output)}, not {len(ours)}"
        items = [describe_one(each, mine) for each, mine in zip(output, ours)]
        return next((each for each in items if isinstance(each, str)), {"items": items})
    if isinstance(output, list) or output is None:
        return "no tensor"
    output = np.asarray(output)
    if output.shape != ours.shape:
        return f"{list(output.shape)}, not {list(ours.shape)}"
    if ours.dtype.name.startswith("float8") and output.dtype == np.uint8:  # ONNX Runtime shows their bits.
        output = output.view(ours.dtype)
    flat = output.reshape(-1)
    return {"dtype": str(ours.dtype), "shape": list(ours.shape), "values": [plain(flat[i]) for i in places(ours.size)]}


def describe(outputs, stored):
    if len(outputs) != len(stored):
        return f"{len(outputs)} outputs, not {len(stored)}"
    described = [describe_one(output, ours) for output, ours in zip(outputs, stored)]
    return next((f"output {i}: {each}" for i, each in enumerate(described) if isinstance(each, str)), described)


def problem_of_one(told, ours, rule):
    if "items" in told:
        if not isinstance(ours, list) or len(ours) != len(told["items"]):
            return "is no such sequence"
        return next(filter(None, (problem_of_one(each, mine, rule) for each, mine in zip(told["items"], ours))), "")
    if isinstance(ours, list):
        return "is a sequence"
    if str(ours.dtype) != told["dtype"] or list(ours.shape) != told["shape"]:
        return f"is {ours.dtype}{list(ours.shape)}, not {told['dtype']}{told['shape']}"
    flat = ours.reshape(-1)
    scale = rms(told["values"])
    for i, expected in zip(places(ours.size), told["values"]):
        found = plain(flat[i])
        if not agrees(expected, found, ours.dtype, rule, scale):
            return f"element {i} is {found}, not {expected}"
    return ""


def problem(fact, stored, rule=None):
    """Why the reference's outputs do not meet a fact; empty if they do."""
    if len(fact["outputs"]) != len(stored):
        return f"{len(stored)} outputs, not {len(fact['outputs'])}"
    for number, (told, ours) in enumerate(zip(fact["outputs"], stored)):
        why = problem_of_one(told, ours, rule or ("exact" if "float64" in fact["by"] else "usual"))
        if why:
            return f"output {number} {why}"
    return ""


def new_folder():
    """A folder for 60,000 small files, in memory where there is room: some disks take minutes to delete them."""
    memory = pathlib.Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30
    return tempfile.TemporaryDirectory(dir=memory if roomy else None)


def write_cases(unmoor, folder, only=()):
    ops = ["--op", ",".join(sorted(only))] if only else []
    subprocess.run([unmoor, "conformance", "--write", str(folder), *ops], check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.iterdir())


def judge(folder, left_out):
    """A case's text and, by answerer, what is wrong, whether float32 inside explains it, and the fact it would make."""
    case, model, inputs, stored = answers.load(folder)
    said = []
    for who, outputs in answers.answers(model, inputs, left_out):
        described = describe(outputs, stored)
        fact = {"case": case, "by": who, "outputs": described}
        if isinstance(described, str):
            said.append((who, described, False, fact))
        else:
            said.append((who, problem(fact, stored), not problem(fact, stored, "near"), fact))
    return case, said


class Settled:
    """Reasons why who answers otherwise is wrong, or why nobody can be right."""

    def __init__(self):
        self.entries = json.loads(SETTLED.read_text())
        self.used = collections.Counter()

    def explains(self, case, who, near):
        for i, entry in enumerate(self.entries):
            if entry.get("near", near) == near and any(who.startswith(each) for each in entry["who"]) and any(re.match(each, case) for each in entry["cases"]):
                self.used[i] += 1
                return True
        return False

    def without_cases(self, cases):
        """Entries of which a pattern names no case any more."""
        return [entry for entry in self.entries if not all(any(re.match(each, case) for case in cases) for each in entry["cases"])]

    def stale(self):
        return [entry for i, entry in enumerate(self.entries) if not self.used[i]]


def fact_of(said):
    """What is kept of the answers that the reference meets: the first, which is the most exact, and who else gave it."""
    agreed = [fact for _, why, _, fact in said if not why]
    if not agreed:
        return None
    also = [fact["by"] for fact in agreed[1:]]
    return {**agreed[0], "also": also} if also else agreed[0]


def judged_cases(folders):
    """What all answerers say, in the order of the cases; nothing where none came back."""
    own = threading.local()

    def ask(folder):
        if not hasattr(own, "answerer"):
            own.answerer = answers.Answerer(judge)
        return own.answerer.judge(folder)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from pool.map(ask, folders)


def make(unmoor, only):
    settled = Settled()
    counts, lines, against = collections.Counter(), [], []
    with new_folder() as place:
        for judged in judged_cases(write_cases(unmoor, pathlib.Path(place) / "cases", only)):
            counts["cases"] += 1
            if judged is None:
                continue
            case, said = judged
            fact = fact_of(said)
            if fact:
                counts.update([fact["by"], *fact.get("also", [])])
                lines.append(json.dumps(fact, separators=(",", ":")))
            open_questions = [(who, why) for who, why, near, _ in said if why and not settled.explains(case, who, near)]
            if open_questions:
                against.append((case, open_questions))
    for case, whys in against:
        print(case, *(f"\n    {who}: {why}" for who, why in whys))
    stale = [] if only else settled.stale()
    for entry in stale:
        print("settled, but nobody says otherwise:", entry["cases"], entry["who"])
    print(f"{len(against)} cases with contradictions that are not settled; {sum(settled.used.values())} settled; {len(lines)} facts; {dict(counts)}")
    if only:  # Facts of other operators stay.
        others = [line for line in KEPT.read_text().splitlines() if json.loads(line)["case"].split(" ")[0] not in only]
        lines = sorted(others + lines, key=lambda line: json.loads(line)["case"].split(" ")[0])
    KEPT.write_text("\n".join(lines) + "\n")
    return 1 if against or stale else 0


def check(unmoor):
    facts = {}
    for line in KEPT.read_text().splitlines():
        fact = json.loads(line)
        facts[fact["case"]] = fact
    failures = []
    met = 0
    cases = []
    with new_folder() as place:
        for folder in write_cases(unmoor, pathlib.Path(place) / "cases"):
            case = (folder / "case.txt").read_text().strip()
            cases.append(case)
            fact = facts.pop(case, None)
            if fact is None:
                continue
            why = problem(fact, answers.load(folder)[3])
            met += not why
            if why:
                failures.append(f"{case}\n    {fact['by']}: {why}")
    failures += [f"{case}: there is a fact for it, and the case is gone: run facts.py make" for case in facts]
    failures += [f"settled.json speaks of no case: {entry['cases']}" for entry in Settled().without_cases(cases)]
    if len(cases) < FEWEST_CASES:
        failures.append(f"there are {len(cases)} cases, fewer than {FEWEST_CASES}")
    if met < FEWEST_FACTS:
        failures.append(f"{met} cases have an independent answer, fewer than {FEWEST_FACTS}")
    print("\n".join(failures[:50]))
    print(f"{met} of {len(cases)} cases meet their independent answers, {len(failures)} do not")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("--unmoor", required=True)
    parser.add_argument("--op", default="", help="make: only these operators; the facts of others stay")
    options = parser.parse_args()
    if options.what == "check":
        return check(options.unmoor)
    return make(options.unmoor, set(filter(None, options.op.split(","))))


if __name__ == "__main__":
    sys.exit(main())
