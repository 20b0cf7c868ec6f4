#!/usr/bin/env python3
"""How often `unmoor align` flags what is right, misses what is wrong, and names the cause.

    bench/precision/measure.py                          prints the tables
    bench/precision/measure.py --write                  writes them into docs/precision.md, between the marks there
    bench/precision/measure.py --models ppocr4-rec …    plants in these models (tools/fetch_models.py has fetched them)
    bench/precision/measure.py --right slovorez …       judges these as they are, besides
    bench/precision/measure.py --quick                  plants nothing in models, only in single nodes

Plants are computed by ONNX Runtime and NumPy, what is right by ONNX Runtime, and by PyTorch and OpenVINO where they are installed: nothing of align's
own arithmetic. Seeded. Needs numpy, onnx, onnxruntime, ml_dtypes; under an hour on two cores.
"""
import argparse
import collections
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / each) for each in ("bench/precision", "bench", "tests/precision", "tools")]
import ml_dtypes
import numpy as np

import dumps
import model_inputs
import nodes
import page
import recorded
import sown

MODELS = ("ppocr4-rec", "minilm-l6-w8", "basic-pitch", "magika", "silero-vad-op18", "atspm-pairnet", "atspm-headnet", "romanizer-encoder",
          "romanizer-decoder", "mtcnn-onet", "ppocr2-cls", "caustic-nmr", "captcha-crnn", "centerface")
# In which nothing is planted, since they take long or store 16 bits. Models of 8-bit products are left out: on processors without VNNI, ONNX Runtime's overflow.
RIGHT = ("eeg-spindle-unet", "chython-rxnmap", "ppocr4-det", "ddddocr-det", "ddddocr-common", "asr-nemo80", "slovorez")
MARKS = ("<!-- Written by bench/precision/measure.py. -->", "<!-- End of what it writes. -->")


def planted(given, folder):
    """Rows of single nodes and pairs: nodes.Plants."""
    float32 = nodes.ask(given.program, sown.float32_plants(given.seed, given.each), folder / "float32")
    found = {"float32": float32}
    for name, dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        plants = [*sown.narrow_plants(given.seed, max(given.each // 2, 1), dtype), *sown.narrow_arithmetic_plants(given.seed, 3 * given.each, dtype)]
        found[name] = nodes.ask(given.program, plants, folder / name)
    found["pairs"] = nodes.ask(given.program, sown.paired_plants(given.seed, max(given.each // 2, 1)), folder / "pairs")
    found["systematic"] = nodes.ask(given.program, nodes.systematic_plants(given.seed, 4 * given.each), folder / "systematic")
    return found


def right(given, folder):
    """Nodes with nothing planted, by every runtime that is here."""
    found = {}
    for name, run in nodes.RUNTIMES.items():
        cases = list(nodes.clean_by(run, sown.clean_cases(given.seed, 4 * given.each)))
        if cases:
            found[name] = nodes.ask_plain(given.program, cases, folder / name.replace(" ", "-"))
    for name, dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        cases = list(nodes.clean_narrow(sown.clean_cases(given.seed, 4 * given.each), dtype))
        found[f"stored as {name}"] = nodes.ask_plain(given.program, cases, folder / f"stored-{name}")
    return found


def recorded_rows(given, folder, models):
    """Plants in nodes of the models, and the nodes as they are."""
    both = {"planted": [], "right": []}
    for name, path, inputs in models:
        place = folder / name
        place.mkdir(parents=True)
        (place / "model.onnx").write_bytes(Path(path).read_bytes())
        np.savez(place / "inputs.npz", **inputs)
        plants = list(recorded.recorded_plants([place], given.seed, given.nodes))
        both["planted"] += nodes.ask(given.program, [each for each in plants if each.ids], place / "planted")
        clean = [each for each in plants if not each.ids]
        both["right"] += nodes.ask_plain(given.program, clean, place / "right")
    return both


def of_models(names):
    for name in names:
        path = ROOT / "examples" / "models" / f"{name}.onnx"
        if not path.is_file():
            raise SystemExit(f"{name} is not there: tools/fetch_models.py {name}")
        yield name, str(path), model_inputs.make_inputs(model_inputs.load_row(name))


def whole_models(given, models, right):
    counts = {key: collections.defaultdict(list) for key in ("right", "entire", "wrong", "guilty")} | {"left out": collections.Counter()}
    for name, path, inputs in [*models, *right]:
        print(f"whole model {name}", file=sys.stderr, flush=True)
        try:
            dumps.measure(given.unmoor, path, inputs, counts, plants=not given.quick and name not in [each for each, _, _ in right])
        except Exception as error:  # What ONNX Runtime or align cannot run whole is said, and left out.
            print(f"{name}: {error}", file=sys.stderr)
    return counts


def share(reached, of):
    return "–" if of == 0 else f"{reached} of {of}, {100 * reached / of:.1f} %"


def planted_table(found, recorded_found, counts):
    """Lines of the table of plants: what, how many, how many of them show, what was reached, what is asked."""
    arithmetic = lambda row: row.plant.ids[0].startswith(nodes.ARITHMETIC)
    float32 = found["float32"] + recorded_found["planted"]
    wrong = [row for kind, rows in counts["wrong"].items() if kind not in ("element", "edge") for row in rows]
    guilty = [row for rows in counts["guilty"].values() for row in rows]
    narrow = found["float16"] + found["bfloat16"]
    left = sum(counts["left out"].values())
    lines = []

    def line(what, rows, reached, asked, planted=None, shows=None):
        effective = [row for row in rows if row.shows] if shows is None else shows
        lines.append((what, planted if planted is not None else len(rows), len(effective), sum(map(reached, effective)), asked))

    both = [row for row in float32 if row.shows]
    lines.append(("float32: wrong precision or meaning caught", len(float32) + len(wrong) + left, len(both) + len(wrong),
                  sum(row.caught for row in both) + sum(row["flagged"] for row in wrong), 99.5))
    for kind, what, asked in (("edge", "float32: an odd edge column caught", 99), ("element", "float32: one element 2000u off caught", 93)):
        line(what, counts["wrong"].get(kind, []), lambda row: row["flagged"], asked, shows=counts["wrong"].get(kind, []))
    line("16 bits: sums in the same 16 bits caught", [row for row in narrow if row.plant.ids[0].startswith("sums-")], lambda row: row.caught, 98)
    line("16 bits: every step in float16 caught", [row for row in narrow if row.plant.ids[0] == "steps-float16"], lambda row: row.caught, 85)
    line("the first flagged value is the guilty one, of dumps and live", guilty, lambda row: row["right"], 98, shows=guilty)
    line("cause named: float32, values", [row for row in float32 if not arithmetic(row)], lambda row: row.named, 97)
    line("cause named: 16-bit arithmetic in float32", [row for row in float32 if arithmetic(row)], lambda row: row.named, 90)
    line("cause named: float16 and bfloat16 targets", narrow, lambda row: row.named, 90)
    line("both of two causes named", found["pairs"], lambda row: row.named, 85)
    line("near the floor, systematic: described as such", found["systematic"], lambda row: row.systematic, 90, shows=found["systematic"])
    return lines


def planted_text(lines):
    text = ["| planted | plants | that show | reached | asked |", "|---|---|---|---|---|"]
    for what, planted_count, shows, reached, asked in (line for line in lines if line[1] > 0):
        text.append(f"| {what} | {planted_count} | {shows} | {share(reached, shows)} | {asked} % |")
    return text


def right_text(found, recorded_found, counts):
    text = ["| right, a node alone | results | E median, 95 %, largest | flagged | a cause fires |", "|---|---|---|---|---|"]
    groups = dict(found) | ({"recorded nodes, ONNX Runtime": recorded_found["right"]} if recorded_found["right"] else {})
    for name, rows in groups.items():
        e = [row.e for row in rows if row.e is not None] or [0]
        text.append(f"| {name} | {len(rows)} | {np.median(e):.2f}, {np.quantile(e, .95):.2f}, {max(e):.2f} | {share(sum(row.caught for row in rows), len(rows))} | "
                    f"{share(sum(bool(row.answer.get('cause')) for row in rows), len(rows))} |")
    for key, title, reached in (("right", "every value of a dump", lambda row: row["flagged"]), ("entire", "whole runs", lambda row: not row["passes"])):
        text += ["", f"| right, {title} | values | E median, 95 %, largest | {'flagged' if key == 'right' else 'do not pass'} |", "|---|---|---|---|"]
        for name, rows in counts[key].items():
            e = [row["excess_e" if key == "right" else "e"] for row in rows]
            e = [each for each in e if isinstance(each, (int, float))] or [0]
            text.append(f"| {name} | {len(rows)} | {np.median(e):.2f}, {np.quantile(e, .95):.2f}, {max(e):.2f} | {share(sum(map(reached, rows)), len(rows))} |")
    return text


def missed_rows(found, recorded_found, counts):
    """What a closer look is for: every plant that was not caught or named, and everything right that was flagged."""
    for name, rows in {**found, "recorded": recorded_found["planted"]}.items():
        for row in rows:
            if row.shows and not (row.systematic if name == "systematic" else row.caught and row.named):
                yield {"group": name, "ids": row.plant.ids, "op": row.plant.case.op, "caught": row.caught, **row.answer}
    for rows in counts["right"].values():
        yield from ({"group": "right", **row} for row in rows if row["flagged"])
    for kind, rows in {**counts["wrong"], **counts["guilty"]}.items():
        yield from ({"group": kind, **row} for row in rows if not row.get("flagged", row.get("right")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unmoor", default=str(ROOT / "build/release/unmoor"))
    parser.add_argument("--program", default=str(ROOT / "build/release/tests/precision/name_causes"))
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--right", nargs="*", default=RIGHT)
    parser.add_argument("--each", type=int, default=7, help="plants of each id")
    parser.add_argument("--nodes", type=int, default=1, help="recorded nodes of each operator of a model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="plants nothing in models, only in single nodes")
    parser.add_argument("--write", action="store_true", help="into docs/precision.md")
    parser.add_argument("--json", help="a file for every row that a closer look is for")
    given = parser.parse_args()
    models, others = list(of_models(given.models)), list(of_models(given.right))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        found, clean = planted(given, folder / "planted"), right(given, folder / "right")
        recorded_found = recorded_rows(given, folder / "recorded", [] if given.quick else models)
    counts = whole_models(given, models, others)
    lines = planted_table(found, recorded_found, counts)
    how = "Plants in single nodes, nothing planted in the models" if given.quick else "Plants in single nodes and in the models"
    besides = f"; as they are, also {', '.join(name for name, _, _ in others)}" if others else ""
    text = "\n".join([f"{how}: {', '.join(name for name, _, _ in models)}{besides}; {given.each} plants of each id; seed {given.seed}.", "", *planted_text(lines), "",
                      *right_text(clean, recorded_found, counts)])
    print(text)
    if given.write:
        page.write(MARKS, text)
    if given.json:
        Path(given.json).write_text("\n".join(json.dumps(row, default=str) for row in missed_rows(found, recorded_found, counts)))


if __name__ == "__main__":
    main()
