#!/usr/bin/env python3
"""How often the cause of a planted difference is named: float32 and 16-bit plants, pairs, and nodes with nothing planted.

    bench/precision_causes.py [--program build/release/tests/precision/name_causes] [--each 6] [--seed 1]
    bench/precision_causes.py --models FOLDER...      in nodes of whole models: FOLDER/model.onnx on FOLDER/inputs.npz

Prints a table by kind, and every plant that was not named. Plants are executed by ONNX Runtime and NumPy: tests/precision/sown.py. Needs
numpy, onnx, onnxruntime and ml_dtypes (tools/requirements.txt).
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "precision"))
import ml_dtypes
import numpy as np

import recorded
import sown


def answers(program, plants, folder):
    """(plant, answer) of each; folders go to `folder`."""
    plants = list(plants)
    folders = [str(plant.case.write(Path(folder) / f"{k:04}", plant.target)) for k, plant in enumerate(plants)]
    run = subprocess.run([program, *folders], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    if len(lines) != len(plants):
        raise SystemExit(f"{program} ended with {run.returncode} after {len(lines)} of {len(plants)} plants: {run.stderr[-500:]}")
    return list(zip(plants, lines))


def has_effect(answer):
    """Whether the target is further off than rounding explains; None if it could not be told."""
    if answer.get("mismatches"):
        return True
    return (answer.get("excess") or 0) > 3 or (answer.get("worst") or 0) > 30


def names(answer):
    found = [answer["cause"], *answer.get("also", [])] if answer.get("cause") else []
    return {"+".join(sorted([each, answer["with"]])) if answer.get("with") and "+" not in each else "+".join(sorted(each.split("+"))) for each in found}


def is_named(plant, answer):
    wanted = {"+".join(sorted(ids)) for ids in combinations_of(plant.ids)}
    return bool(wanted & names(answer))


def combinations_of(ids):
    if len(ids) == 1:
        return [(each,) for each in sown.family(ids[0])]
    return [(a, b) for a in sown.family(ids[0]) for b in sown.family(ids[1])]


def judge(title, results):
    effective = [(plant, answer) for plant, answer in results if has_effect(answer) and not answer.get("error")]
    named = [plant for plant, answer in effective if is_named(plant, answer)]
    alone = [plant for plant, answer in effective if is_named(plant, answer) and all(
        set(each.split("+")) <= set().union(*[sown.family(one) for one in plant.ids]) for each in names(answer))]
    print(f"{title}: {len(results)} plants, {len(effective)} with an effect, {len(named)} named ({len(named) / max(len(effective), 1):.1%}), "
          f"{len(alone)} with nothing beside their family")
    for plant, answer in results:
        if answer.get("error"):
            print(f"  ERROR {plant.ids} {plant.case.op}: {answer['error']}")
        elif (plant, answer) not in effective:
            print(f"  no effect: {'+'.join(plant.ids)} in {plant.case.op}: excess {answer.get('excess')}")
        elif not is_named(plant, answer):
            print(f"  {'+'.join(plant.ids)} in {plant.case.op}: {answer['cause']} {answer.get('also', '')} {answer.get('with', '')} "
                  f"excess {answer.get('excess')}; {answer['hypotheses'][:4]} {answer['failed'][:1]} {answer['untried'][:2]}")
    return len(named), len(effective)


def judge_clean(results):
    fired = [(plant, answer) for plant, answer in results if answer.get("cause")]
    print(f"nothing planted: {len(results)} nodes, a cause for {len(fired)}")
    for plant, answer in results:
        if answer.get("error") or answer.get("cause"):
            print(f"  {plant.case.op}: {answer.get('error') or answer['text']} excess {answer.get('excess')}")
    return len(fired)


ARITHMETIC = ("sums-", "steps-", "variance-naive", "softmax-unstable")


def judge_models(given):
    planted, clean = [], []
    for model in given.models:
        with tempfile.TemporaryDirectory() as place:
            results = answers(given.program, recorded.recorded_plants([model], given.seed, given.nodes), place)
        judge(model, [each for each in results if each[0].ids])
        sys.stdout.flush()
        planted += [each for each in results if each[0].ids]
        clean += [each for each in results if not each[0].ids]
    print()
    judge("values", [each for each in planted if not each[0].ids[0].startswith(ARITHMETIC)])
    judge("sizes of errors", [each for each in planted if each[0].ids[0].startswith(ARITHMETIC)])
    judge_clean(clean)
    print(f"slowest search: {max(answer.get('seconds', 0) for _, answer in planted):.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/tests/precision/name_causes"))
    parser.add_argument("--each", type=int, default=7, help="plants of each id")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clean", type=int, default=16, help="nodes of each kind with nothing planted")
    parser.add_argument("--models", nargs="*", help="folders with model.onnx and inputs.npz: plants in their nodes instead")
    parser.add_argument("--nodes", type=int, default=2, help="nodes of each operator of a model")
    parser.add_argument("--only", default="", help="ids that hold this text")
    given = parser.parse_args()
    if given.models:
        return judge_models(given)
    if given.only:
        sown.PLANTS = {key: value for key, value in sown.PLANTS.items() if given.only in key}
        sown.NARROW_IDS = [key for key in sown.NARROW_IDS if given.only in key]
    with tempfile.TemporaryDirectory() as folder:
        results = answers(given.program, sown.float32_plants(given.seed, given.each), Path(folder) / "float32")
        judge("float32, values", [each for each in results if not each[0].ids[0].startswith(ARITHMETIC)])
        judge("float32, sizes of errors", [each for each in results if each[0].ids[0].startswith(ARITHMETIC)])
        for name, dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
            judge(name, answers(given.program, sown.narrow_plants(given.seed, 3, dtype), Path(folder) / name))
        if not given.only:
            judge("two causes at once", answers(given.program, sown.paired_plants(given.seed, 3), Path(folder) / "pairs"))
        judge_clean(answers(given.program, sown.clean_cases(given.seed, given.clean), Path(folder) / "clean"))
        slowest = max(answer.get("seconds", 0) for _, answer in results)
        print(f"slowest search: {slowest:.2f} s")


if __name__ == "__main__":
    main()
