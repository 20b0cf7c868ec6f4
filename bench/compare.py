#!/usr/bin/env python3
"""Times Unmoor against ONNX Runtime and OpenVINO: asked in turn in one session, each in a process of its own.

  bench/compare.py                                         every model of bench/models, 1 and 2 threads, both peers: about 13 minutes
  bench/compare.py --write                                 the same, into docs/performance.md and docs/performance.svg
  bench/compare.py bench/models/vit_b16-dynamo --threads 2 --peers onnxruntime
  bench/compare.py examples/models/magika.onnx -i inputs.npz
  bench/compare.py --real [ID]                             trained models that tools/fetch_models.py fetched, of 1 ms and more
  bench/compare.py --contended                             with another process that keeps one core busy
  bench/compare.py --load                                  load to first result, and memory, of bert_base and resnet50
  bench/compare.py --check opencl                          compares outputs of a device only, times nothing

Outputs are compared before anything is timed. A speed-up is the peer's time by Unmoor's, over 1 where Unmoor is faster: the median of the
ratios of each round, with its 95 % range, so that what disturbs a whole round cancels. At one thread processor time is told, too: it stays
true on a busy machine. Needs the packages of bench/requirements.txt. The exit status is 1 if a model could not be compared.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import numpy as np

import figures
import loading
import ratios
import served
import targets

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 1e-4  # Relative L2 error between outputs of float32 models.
HALF_TOLERANCE = 5e-3  # The same of float16 models: some roundings to 11 bits.
LIKENESS = 0.99   # Cosine, for models with quantised activations: one rounding changes all that follows.


def peer_command(name, target, threads):
    return [sys.executable, str(ROOT / "bench" / "peers.py"), name, str(target.model), str(target.inputs), str(threads)]


def unmoor_command(unmoor, target, threads, device="cpu"):
    return [unmoor, "bench", str(target.model), "--on", device, "--threads", str(threads), "-i", str(target.inputs), "--serve"]


def load_outputs(path):
    with np.load(path, allow_pickle=False) as archive:
        try:
            return {name: archive[name] for name in archive.files}
        except ValueError:  # Maps, sequences and texts, which are no arrays of numbers.
            raise served.EngineError("an output is no tensor of numbers, which is not compared here") from None


def run_unmoor(unmoor, target, device="cpu"):
    """Unmoor's outputs by name."""
    with tempfile.TemporaryDirectory() as folder:
        taken = pathlib.Path(folder) / "outputs.npz"
        result = subprocess.run([unmoor, "run", str(target.model), "-i", str(target.inputs), "-o", str(taken), "--on", device],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            raise served.EngineError(f"unmoor: {(result.stderr.strip().splitlines() or ['no reason given'])[0]}")
        return load_outputs(taken)


def run_peer(name, target):
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Quitting(name, peer_command(name, target, 2), quiet=True)) as peer:
        taken = pathlib.Path(folder) / "outputs.npz"
        peer.write_outputs(taken)
        return load_outputs(taken)


class Quitting(served.Served):
    close = served.Served.quit


def difference(target, got, want):
    """How far outputs are from the expected ones: the largest relative L2 error, or of a quantised model 1 - the smallest cosine."""
    worst = 0.0
    for name, expected in want.items():
        if name not in got:
            raise served.EngineError(f"has no output '{name}'")
        if target.quantised and got[name].shape == expected.shape and np.isfinite(got[name]).all():
            a, b = np.ravel(got[name]).astype(np.float64), np.ravel(expected).astype(np.float64)
            worst = max(worst, 1 - float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30)))
        else:
            worst = max(worst, ratios.relative_error(got[name], expected))
    return worst


def checked(name, target, got, want):
    """The difference, if it is small enough."""
    half = any(expected.dtype == np.float16 for expected in want.values())
    found, limit = difference(target, got, want), 1 - LIKENESS if target.quantised else HALF_TOLERANCE if half else TOLERANCE
    if not found <= limit:
        raise served.EngineError(f"outputs of {name} differ from ONNX Runtime's by {found:.3g}, not at most {limit:.3g}")
    return found


def check_all(target, options):
    """By engine: its difference from ONNX Runtime, or why it cannot be timed."""
    want = run_peer("onnxruntime", target)
    found = {"onnxruntime": {"error": 0.0}} if "onnxruntime" in options.peers else {}
    others = {"unmoor": lambda: run_unmoor(options.unmoor, target)}
    others.update({name: lambda name=name: run_peer(name, target) for name in options.peers if name != "onnxruntime"})
    for name, answer in others.items():
        try:
            found[name] = {"error": checked(name, target, answer(), want)}
        except served.EngineError as error:
            found[name] = {"failed": str(error)}
    return found


@contextlib.contextmanager
def all_served(commands):
    engines = []
    try:
        for name, command in commands.items():
            engines.append(served.Served(name, command))
        yield engines
    finally:
        for engine in engines:
            engine.quit()


def time_model(target, threads, found, options):
    """One row: all that answered right, timed in turn."""
    row = {"model": target.name, "threads": threads, "engines": {name: dict(each) for name, each in found.items()}}
    commands = {"unmoor": unmoor_command(options.unmoor, target, threads)}
    commands.update({name: peer_command(name, target, threads) for name in options.peers if "failed" not in found[name]})
    with all_served(commands) as engines:
        for name, measured in served.measure(engines, options.seconds).items():
            row["engines"][name].update(measured)
        for engine in engines:
            row["engines"][engine.name].update({key: engine.facts[key] for key in ("version", "precision") if key in engine.facts})
    row["rounds"] = len(row["engines"]["unmoor"]["times"])
    ratios.add_speedups(row, options.peers)
    return row


def compare(target, options):
    """The rows of a model, one for each number of threads; one with `failed` where Unmoor could not be timed."""
    found = check_all(target, options)
    if "failed" in found["unmoor"]:
        return [{"model": target.name, "failed": found["unmoor"]["failed"]}]
    rows = []
    for threads in options.threads:
        rows.append(time_model(target, threads, found, options))
        print("\n".join(figures.speed_rows([rows[-1]], options.peers)), file=sys.stderr, flush=True)
    return rows


@contextlib.contextmanager
def busy_core(wanted):
    """Another process that computes all the time, at the same priority."""
    code = f"import os\nwhile os.getppid() == {os.getpid()}: sum(range(100000))"  # It ends with us, however that comes.
    process = subprocess.Popen([sys.executable, "-c", code]) if wanted else None
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = [line.split(":", 1) for line in file if ":" in line]
    facts = {key.strip(): value.strip() for key, value in lines}
    flags = [flag for flag in ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile") if flag in facts.get("flags", "").split()]
    return {"name": facts.get("model name", "unknown"), "cores": os.cpu_count(), "features": flags, "load": round(os.getloadavg()[0], 2)}


def time_all(options):
    result = {"rows": [], "skipped": []}
    with busy_core(options.contended):
        for target in targets.chosen(options):
            try:
                rows = compare(target, options)
            except served.EngineError as error:
                rows = [{"model": target.name, "failed": str(error)}]
            if options.real and targets.is_small(rows):
                result["skipped"].append(target.name)
                continue
            result["rows"] += rows
            for row in rows:
                if "failed" in row:
                    print(f"{row['model']}: {row['failed']}", file=sys.stderr, flush=True)
    timed = [row for row in result["rows"] if row.get("better_peer")]
    result["means"] = {str(threads): ratios.mean_speedup([row for row in timed if row["threads"] == threads])
                       for threads in sorted({row["threads"] for row in timed})}
    if "1" in result["means"]:
        result["cpu_mean"] = ratios.mean_speedup([row for row in timed if row["threads"] == 1], "cpu")
    return result


def check_device(options):
    for target in targets.chosen(options):
        error = checked("unmoor", target, run_unmoor(options.unmoor, target, options.check), run_peer("onnxruntime", target))
        print(f"{target.name} on {options.check}: differs by {error:.2g}", flush=True)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL",
                        help="a file, or a folder with model.onnx and inputs.npz; with --real an id of tools/models.json")
    parser.add_argument("-i", "--inputs", type=pathlib.Path, help="inputs by name (default: inputs.npz beside the model)")
    parser.add_argument("--from", dest="folder", type=pathlib.Path, default=ROOT / "bench" / "models",
                        help="where models are looked for: bench/export_models.py's folder")
    parser.add_argument("--exporter", choices=("dynamo", "torchscript"), default="dynamo",
                        help="whose export of a model is taken, if it is there (default: dynamo)")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["onnxruntime", "openvino"], help="of onnxruntime,openvino")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--seconds", type=float, default=14, help="for one model at one number of threads, all engines together; 7 rounds at least")
    parser.add_argument("--unmoor", default="unmoor", help="the command to time")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--real", action="store_true", help="the models of tools/models.json that are in examples/models")
    kinds.add_argument("--contended", action="store_true", help="one other process computes all the time")
    kinds.add_argument("--load", action="store_true", help="load to first result and peak memory, each in 5 fresh processes")
    kinds.add_argument("--check", metavar="DEVICE", help="only compare this device's outputs")
    parser.add_argument("--write", action="store_true", help="put the result into docs/performance.md")
    parser.add_argument("--json", type=pathlib.Path, help="write the result there")
    options = parser.parse_args(arguments)
    unknown = set(options.peers) - set(figures.TITLES) | set(options.peers) & {"unmoor"}
    if unknown:
        parser.error(f"no peer is called '{min(unknown)}'; there are: onnxruntime, openvino")
    if options.seconds <= 0 or min(options.threads) < 1:
        parser.error("--seconds and --threads are more than 0")
    if options.load and options.models:
        parser.error("--load chooses the models")
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that what was started is ended.
    said = subprocess.run([options.unmoor, "--version"], capture_output=True, text=True, check=True).stdout.split()
    if options.check:
        check_device(options)
        return
    kind = next((name for name in ("real", "contended", "load") if getattr(options, name)), "speed")
    result = {"kind": kind, "processor": processor(), "peers": options.peers}
    result.update(loading.measure(options, unmoor_command, peer_command) if options.load else time_all(options))
    result["versions"] = {"unmoor": said[-1], **figures.versions(result)}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    print(figures.markdown(result))
    if options.write:
        figures.write(result, ROOT / "docs")
    failed = [row for row in result["rows"] if "failed" in row]
    if failed:
        raise SystemExit(f"{len(failed)} of the models could not be compared: {', '.join(row['model'] for row in failed)}")


if __name__ == "__main__":
    main()
