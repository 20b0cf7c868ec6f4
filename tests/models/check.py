#!/usr/bin/env python3
"""Runs a trained model with `unmoor run` on a device and compares with ONNX Runtime on the same inputs.

  check.py ppocr4-rec --on cpu --unmoor build/release/unmoor
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import model_inputs

# Relative L2 error of an output by its dtype; of float16 what docs/decisions/align-tolerance.md allows.
TOLERANCE = {"float32": 1e-4, "float64": 1e-10, "float16": 2e-3}
LIKENESS = 0.99         # Cosine, for models with quantised activations: one rounding changes all that follows.
TIE = 1e-4              # Classes this close, of the row's range, may change places.


def read_as_user(meaning, outputs, inputs):
    """What the outputs say, as their user would read them; None if it is as recorded, else a complaint."""
    values = outputs[meaning["output"]]
    kind = meaning["kind"]
    if kind == "ctc":       # Greedy: the best class of each step, repeats and blanks (0) dropped.
        best = (values[0] if meaning.get("time_axis", 1) == 1 else values[:, 0]).argmax(-1)
        got = [int(c) for k, c in enumerate(best) if c and (k == 0 or c != best[k - 1])]
    elif kind == "argmax":
        got = [int(c) for c in values.reshape(-1, values.shape[-1]).argmax(-1)]
    elif kind == "mean_argmax":  # Of the mean over time.
        got = [int(c) for c in values.mean(1).argmax(-1)]
    elif kind == "pixels_over":
        count = int((values > meaning["threshold"]).sum())
        return None if meaning["at_least"] <= count <= meaning["at_most"] else f"{count} pixels are over {meaning['threshold']}"
    elif kind == "nearest":  # The first two sentences mean the same, the third does not.
        mask = inputs["attention_mask"][..., None]
        mean = (values * mask).sum(1) / mask.sum(1)
        mean = mean / np.linalg.norm(mean, axis=-1, keepdims=True)
        cosines = mean @ mean.T
        fine = cosines[0, 1] > 0.6 and max(cosines[0, 2], cosines[1, 2]) < 0.15
        return None if fine else f"cosines are {cosines.round(3).tolist()}"
    else:
        raise ValueError(f"no meaning is called '{kind}'")
    return None if got == meaning["value"] else f"reads {got}, not {meaning['value']}"


def same_best(got, want):
    """Whether each row's best class is the same, ties aside."""
    if want.ndim < 2 or want.shape[-1] < 2:
        return True
    got, want = got.reshape(-1, want.shape[-1]), want.reshape(-1, want.shape[-1])
    best = want.max(-1)
    near = best - np.take_along_axis(want, got.argmax(-1)[:, None], -1)[:, 0]
    return bool((near <= TIE * (best - want.min(-1))).all())


def compare(name, got, want, quantised=False, classes=False):
    """Complaints about one output. Of quantised models the best class is compared where the row says that there are `classes`."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return [f"{name} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"]
    if want.dtype.kind != "f":
        return [] if np.array_equal(got, want) else [f"{name} differs in {int((got != want).sum())} of {want.size} elements"]
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return [f"{name} is not finite in other places than ONNX Runtime's"]
    finite = np.isfinite(want)
    a, b = got[finite].astype(np.float64), want[finite].astype(np.float64)
    if quantised:
        cosine = float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
        print(f"{name}: cosine {cosine:.6f}")
        found = [] if cosine >= LIKENESS else [f"{name}: cosine {cosine:.4f}, not at least {LIKENESS}"]
        return found if not classes or same_best(got, want) else [*found, f"{name}: another class is best"]
    error = float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))
    print(f"{name}: relative L2 error {error:.2g}")
    tolerance = TOLERANCE[want.dtype.name]
    found = [] if error <= tolerance else [f"{name}: relative L2 error {error:.3g}, not at most {tolerance}"]
    return found if same_best(got, want) else [*found, f"{name}: another class is best"]


def check_oracle(row, expected):
    """Fails if ONNX Runtime itself does not give what was recorded: then the inputs are not the recorded ones."""
    for name, recorded in row["outputs"].items():
        values = expected[name].astype(np.float64)
        figures = {"mean": values.mean(), "std": values.std(), "min": values.min(), "max": values.max()}
        # Its own kernels for another processor round quantised activations in other places: single values say little.
        kept, tolerance = (("mean", "std"), 2e-2) if row.get("quantised") else (figures, 1e-3)
        for key in kept:
            got = figures[key]
            if abs(got - recorded[key]) > tolerance * max(1.0, abs(recorded[key])):
                raise SystemExit(f"ONNX Runtime gives {name} with {key} {got:.7g}, not the recorded {recorded[key]:.7g}: "
                                 "the inputs are not those that were recorded")


def run_onnxruntime(model, inputs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2  # As when it was recorded: DynamicQuantizeLSTM depends on it.
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def run_unmoor(unmoor, model, inputs, device, fallback):
    with tempfile.TemporaryDirectory() as folder:
        given, taken = pathlib.Path(folder) / "inputs.npz", pathlib.Path(folder) / "outputs.npz"
        np.savez(given, **inputs)
        command = [unmoor, "run", str(model), "-i", str(given), "-o", str(taken), "--on", device, "--fallback", fallback, "--json"]
        result = subprocess.run(command, stdout=subprocess.PIPE)
        if result.returncode != 0:
            raise SystemExit(f"exit status {result.returncode} of: {' '.join(command)}")
        with np.load(taken) as archive:
            return {name: archive[name] for name in archive.files}, json.loads(result.stdout)["plan"]


def silent_fallbacks(plan):
    """Nodes that run elsewhere than on the first device without a word of why."""
    found = []
    for each in plan["placements"]:
        if each["device"] == plan["devices"][0] or each["state"] in ("host", "choice"):
            continue
        if each["state"] != "fallback" or not any(refusal["reason"] and refusal["detail"] for refusal in each["refusals"]):
            found.append(f"{each['op']} '{each['node']}' runs on {each['device']} without a reason")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--on", default="cpu", help="device")
    parser.add_argument("--fallback", default="report")
    parser.add_argument("--unmoor", default="unmoor", help="the command to test")
    options = parser.parse_args()
    row = model_inputs.load_row(options.model)
    path = ROOT / "examples" / "models" / f"{row['id']}.onnx"
    if not path.exists():
        raise SystemExit(f"{path.name} is not there; fetch it with: tools/fetch_models.py {row['id']}")
    inputs = model_inputs.make_inputs(row)
    expected = run_onnxruntime(path, inputs)
    check_oracle(row, expected)
    outputs, plan = run_unmoor(options.unmoor, path, inputs, options.on, options.fallback)
    complaints = silent_fallbacks(plan) + [f"{name} is missing" for name in expected if name not in outputs]
    for name in [name for name in expected if name in outputs]:
        complaints += compare(name, outputs[name], expected[name], row.get("quantised", False), row.get("classes", False))
    if "meaning" in row and not complaints:
        wrong = read_as_user(row["meaning"], outputs, inputs)
        complaints += [wrong] if wrong else []
        if not wrong:
            print(f"meaning: {row['meaning']['text']}")
    told = f", {plan['fallback_nodes']} nodes elsewhere with a reason" if plan["fallback_nodes"] else ""
    print("\n".join(complaints) if complaints else f"{row['id']} on {options.on}: as ONNX Runtime{told}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
