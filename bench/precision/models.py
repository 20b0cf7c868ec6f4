#!/usr/bin/env python3
"""Whole models: float32 and float16 on the cpu device against other engines, and what keeping nodes in float32 brings.

    bench/precision/models.py                     prints the table
    bench/precision/models.py --write             writes it into docs/precision.md, between the marks there
    bench/precision/models.py resnet50 …          these models only
    bench/precision/models.py --results FOLDER    keeps each result there as JSON, and does not run again what is there

Models come from bench/export_models.py and tools/fetch_models.py: one that is not there is left out, with the command that brings it. Exported ones are
also compared with PyTorch where model.pt2 lies beside (bench/export_models.py --pt2). Needs the packages of bench/requirements.txt for the engines
and for float16_models.py; half an hour on two cores.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / each) for each in ("bench/precision", "tools")]
import numpy as np

import float16_models
import model_inputs
import page
import speech

MARKS = ("<!-- Written by bench/precision/models.py. -->", "<!-- End of the whole models. -->")
EXPORTED = {"bert_base": "BERT-base", "resnet50": "ResNet-50"}
FETCHED = {"ddddocr-common": "ddddocr-common (OCR)", "ppocr4-rec": "ppocr4-rec (OCR)", "silero-vad-sequence": "silero-vad-sequence (speech)"}
WINDOWS = 600  # Of 32 ms, for the speech model: one probability each.


def inputs_of(name):
    return speech.windows(WINDOWS) if name == "silero-vad-sequence" else model_inputs.make_inputs(model_inputs.load_row(name))


class Case:
    """A model with its inputs, in float32 and in float16, and what align answers."""

    def __init__(self, name, model, inputs, given, folder):
        self.name, self.model, self.given, self.folder = name, model, given, folder
        self.inputs = folder / f"{name}.npz"
        np.savez(self.inputs, **inputs)
        self.narrow, self.narrow_inputs = folder / f"{name}-float16.onnx", folder / f"{name}-float16.npz"
        np.savez(self.narrow_inputs, **{key: array.astype(np.float16) if array.dtype == np.float32 else array for key, array in inputs.items()})
        if not self.narrow.is_file():
            float16_models.to_float16(model, self.narrow)

    def align(self, reference, narrow=False, extra=()):
        kept = Path(self.given.results or self.folder) / f"{self.name}{'-float16' if narrow else ''}-{reference.replace(':', '-')}.json"
        if not kept.is_file():
            model, inputs = (self.narrow, self.narrow_inputs) if narrow else (self.model, self.inputs)
            done = subprocess.run([self.given.unmoor, "align", str(model), "--input", str(inputs), "--reference", reference, "--target", "cpu", "--python",
                                   sys.executable, "--json", *extra], stdout=subprocess.PIPE, text=True)
            if done.returncode not in (0, 1) or "outputs" not in done.stdout:
                raise SystemExit(f"{self.name} with {reference}: align ended with {done.returncode}: {done.stdout[:500]}")
            kept.write_text(done.stdout)
        return json.loads(kept.read_text())

    def rows(self):
        curve = self.align("reference", True, ["--keep-curve", str(self.folder / f"{self.name}.keep")])
        yield self.row("ort:cpu", self.align("ort:cpu"), [curve, self.align("ort:cpu", True)])
        pt2 = Path(self.model).with_name("model.pt2")
        if pt2.is_file():
            yield self.row("torch:cpu", self.align("torch:cpu", extra=["--set", f"torch.model={pt2}"]), [])

    def row(self, reference, wide, narrow):
        cells = [{**EXPORTED, **FETCHED}[self.name], reference, str(compared(wide)), str(findings(wide)), excess(wide)]
        if not narrow:
            return cells + ["–"] * 5
        keep = narrow[0]["keep_float32"]
        largest = lambda key: ", ".join(f"{each[key]:.2f}" + ("" if each["effective"] >= 500 else f" ({each['effective']:.0f})") for each in keep["outputs"])
        uncertain = ", ".join(f"{each['uncertainty']:.1g}" for each in narrow[0]["outputs"] if each.get("uncertainty"))
        return cells + [", ".join(str(findings(each)) for each in narrow), uncertain, f"{keep['chosen']} of {len(keep['curve'])}", largest("predicted"),
                        largest("applied")]


def compared(result):
    return sum(each["verdict"] != "hidden" for each in result["values"]) + len(result["outputs"])


def findings(result):
    return sum(each["verdict"] in ("suspicious", "differ") for each in result["values"] + result["outputs"])


def excess(result):
    return ", ".join(f"{each['entire']['excess_e']:.2f}" for each in result["outputs"] if each["entire"].get("excess_e") is not None)


def cases(given, folder):
    for name in EXPORTED:
        place = Path(given.exported) / f"{name}-dynamo"
        if name in given.models and (place / "model.onnx").is_file():
            yield Case(name, place / "model.onnx", dict(np.load(place / "inputs.npz")), given, folder)
        elif name in given.models:
            print(f"{name} is not there: bench/export_models.py {name} --by dynamo --pt2", file=sys.stderr)
    for name in FETCHED:
        path = ROOT / "examples" / "models" / f"{name}.onnx"
        if name in given.models and path.is_file():
            yield Case(name, path, inputs_of(name), given, folder)
        elif name in given.models:
            print(f"{name} is not there: tools/fetch_models.py {name}", file=sys.stderr)


def table(rows):
    head = ["model", "reference", "values compared", "findings", "output E", "float16: findings against float64, ONNX Runtime", "uncertainty", "kept steps",
            "predicted", "applied"]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*EXPORTED, *FETCHED], help="of " + " ".join([*EXPORTED, *FETCHED]))
    parser.add_argument("--unmoor", default=str(ROOT / "build/release/unmoor"))
    parser.add_argument("--exported", default=str(ROOT / "bench/models"), help="where bench/export_models.py has put its models")
    parser.add_argument("--results", help="a folder for results")
    parser.add_argument("--write", action="store_true", help="into docs/precision.md")
    given = parser.parse_args()
    if given.results:
        Path(given.results).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        rows = []
        for case in cases(given, Path(place)):
            for row in case.rows():
                rows.append(row)
                print(" | ".join(row), flush=True)
    if not rows:
        raise SystemExit("none of the models is there")
    print("\n" + table(rows))
    if given.write:
        page.write(MARKS, table(rows))


if __name__ == "__main__":
    main()
