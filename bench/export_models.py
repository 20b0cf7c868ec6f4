#!/usr/bin/env python3
"""Exports sixteen known architectures from PyTorch, with seeded random weights, by both of its ONNX exporters.

  bench/export_models.py                     all, into bench/models/NAME-EXPORTER/model.onnx
  bench/export_models.py --by dynamo         all, by one exporter: what bench/compare.py needs
  bench/export_models.py gpt2 --to FOLDER    one, to another folder
  bench/export_models.py bert_base --pt2     also model.pt2, PyTorch's own export of the same net

Each folder also gets inputs.npz and expected.npz: what ONNX Runtime answers for these inputs. An export that fails, or whose answers are not
PyTorch's, leaves no folder, is named with its reason at the end, and makes the exit status 1. Needs the packages of
bench/requirements.txt; with none of them installed, it makes a virtual environment in build/bench-venv and runs itself there.
"""
import argparse
import collections
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "build" / "bench-venv"

try:
    import numpy as np
    import onnx
    import onnxruntime
    import torch
    import transformers  # noqa: F401, only to know that it is there
except ImportError:
    if pathlib.Path(sys.prefix) == VENV:
        raise
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run([str(VENV / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "-r",
                    str(ROOT / "bench" / "requirements.txt")], check=True)
    os.execv(str(VENV / "bin" / "python"), [str(VENV / "bin" / "python"), *sys.argv])

import sequence_models
import vision_models

MODELS = {**vision_models.MODELS, **sequence_models.MODELS}
EXPORTERS = ("torchscript", "dynamo")
TOLERANCE = 1e-4  # Relative L2 error between ONNX Runtime's and PyTorch's outputs.


class ExportError(Exception):
    pass


def dynamic_shapes(sample):
    """The axes in the newer exporter's words: a tuple in the order of the inputs, where all that is taken as `*past` is one of them."""
    shapes = [{axis: torch.export.Dim.AUTO for axis in sample.axes.get(name, {})} for name in sample.inputs]
    named = [p for p in inspect.signature(sample.net.forward).parameters.values() if p.kind != p.VAR_POSITIONAL]
    rest = tuple(shapes[len(named):])
    return (*shapes[:len(named)], rest) if rest else tuple(shapes)


def export(sample, exporter, path):
    options = {"input_names": list(sample.inputs), "output_names": sample.outputs, "dynamo": exporter == "dynamo"}
    if sample.axes and exporter == "torchscript":
        options["dynamic_axes"] = sample.axes
    elif sample.axes:
        options["dynamic_shapes"] = dynamic_shapes(sample)
    try:
        with torch.no_grad():
            torch.onnx.export(sample.net, tuple(sample.inputs.values()), str(path), **options)
    except Exception as error:  # Exporters fail in every way there is; the reason is told, and the other exporter is tried.
        raise ExportError(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}")


def count_operators(path):
    """Operators of a file with their numbers, subgraphs and functions included."""
    model = onnx.load(str(path), load_external_data=False)
    counts = collections.Counter()

    def walk(nodes):
        for node in nodes:
            counts[f"{node.domain}:{node.op_type}" if node.domain else node.op_type] += 1
            for attribute in node.attribute:
                for graph in [attribute.g, *attribute.graphs]:
                    walk(graph.node)

    walk(model.graph.node)
    for function in model.functions:
        walk(function.node)
    opsets = {o.domain or "ai.onnx": o.version for o in model.opset_import}
    return opsets, dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def record(folder, sample):
    """Writes inputs and ONNX Runtime's outputs, if these are PyTorch's. Gives their distance, and the spread of the first output."""
    feed = {name: tensor.numpy() for name, tensor in sample.inputs.items()}
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    feed = {each.name: feed[each.name] for each in session.get_inputs()}
    names = [each.name for each in session.get_outputs()]
    answers = session.run(None, feed)
    with torch.no_grad():
        wanted = sample.net(*sample.inputs.values())
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    if len(wanted) != len(answers):
        raise ExportError(f"{len(answers)} outputs, not {len(wanted)}")
    worst = 0.0
    for name, got, want in zip(names, answers, wanted):
        want = want.numpy()
        error = float(np.linalg.norm((got - want).ravel()) / np.linalg.norm(want.ravel())) if got.shape == want.shape else float("inf")
        if not np.isfinite(got).all() or error > TOLERANCE:
            raise ExportError(f"{name} of ONNX Runtime differs from PyTorch's by {error:.2g}")
        worst = max(worst, error)
    np.savez(folder / "inputs.npz", **feed)
    np.savez(folder / "expected.npz", **dict(zip(names, answers)))
    return worst, float(np.std(answers[0]))


def save_program(sample, path):
    try:
        with torch.no_grad():
            torch.export.save(torch.export.export(sample.net, tuple(sample.inputs.values())), str(path))
    except Exception as error:  # As above.
        raise ExportError(f"model.pt2: {type(error).__name__}: {error}")


def make(sample, exporter, folder, pt2):
    """One export with all that belongs to it; a line that says what it is."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        export(sample, exporter, folder / "model.onnx")
        error, spread = record(folder, sample)
        if pt2:
            save_program(sample, folder / "model.pt2")
    except ExportError:
        shutil.rmtree(folder)
        raise
    opsets, operators = count_operators(folder / "model.onnx")
    (folder / "operators.json").write_text(json.dumps({"opsets": opsets, "operators": operators}, indent=1) + "\n")
    return (f"{folder.name}: opset {opsets['ai.onnx']}, {sum(operators.values())} nodes, {error:.1e} from PyTorch, "
            f"output spread {spread:.3g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {' '.join(MODELS)} (default: all)")
    parser.add_argument("--by", choices=EXPORTERS, help="one exporter (default: both)")
    parser.add_argument("--pt2", action="store_true", help="writes model.pt2 besides")
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "bench" / "models")
    options = parser.parse_args()
    for name in options.models:
        if name not in MODELS:
            raise SystemExit(f"no model is called '{name}'; there are: {' '.join(MODELS)}")
    failed = []
    for name in options.models or MODELS:
        torch.manual_seed(0)
        sample = MODELS[name]()
        sample.net.eval()
        for exporter in [options.by] if options.by else EXPORTERS:
            try:
                print(make(sample, exporter, options.to / f"{name}-{exporter}", options.pt2), flush=True)
            except ExportError as error:
                failed.append(f"{name} by {exporter} failed: {error}")
                print(failed[-1], file=sys.stderr, flush=True)
    if failed:
        raise SystemExit("\n".join([f"{len(failed)} of the exports failed:", *failed]))


if __name__ == "__main__":
    main()
