#!/usr/bin/env python3
"""Times Unmoor against other runtimes: pairs, asked in turn in one session, each runtime in a process of its own.

  bench/compare.py                                         every folder of bench/models, against ONNX Runtime
  bench/compare.py bench/models/vit_b16-dynamo --threads 2 --peers onnxruntime,openvino
  bench/compare.py examples/models/magika.onnx -i inputs.npz
  bench/compare.py --check opencl                          compares outputs of a device only, times nothing

Outputs are compared before anything is timed. A ratio is Unmoor's median time by the peer's in one round; the table gives the median
of these ratios with its 95 % range, so that what disturbs a whole round cancels. Needs the packages of bench/requirements.txt.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import peers

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 1e-4  # Relative L2 error between outputs.


class Served:
    """A runtime in a child process that stays ready: `run N` on its input, N times in milliseconds as a JSON list on its output."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        line = self.line()
        if not line.startswith("ready "):
            raise SystemExit(f"{name}: said '{line.strip()}', not 'ready {{…}}'; the command was: {' '.join(command)}")
        self.facts = json.loads(line[len("ready "):])

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with exit status {self.process.wait()}")
        return line

    def run(self, count):
        print(f"run {count}", file=self.process.stdin)
        times = json.loads(self.line())
        if len(times) < count:
            raise SystemExit(f"{self.name}: {len(times)} times, not {count}")
        return times

    def quit(self):
        print("quit", file=self.process.stdin)
        self.process.stdin.close()
        self.process.wait(timeout=30)


def relative_error(got, want):
    """Relative L2 error of what is finite; infinite where NaN or infinities stand in other places."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise SystemExit(f"shape {list(got.shape)}, not {list(want.shape)}")
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return float("inf")
    return float(np.linalg.norm((got - want)[finite]) / max(np.linalg.norm(want[finite]), 1e-30))


def check_outputs(unmoor, model, inputs, device="cpu"):
    """The largest error of any output of Unmoor against ONNX Runtime's."""
    expected = peers.OnnxRuntime(model, 2).outputs(inputs)
    with tempfile.TemporaryDirectory() as folder:
        taken = pathlib.Path(folder) / "outputs.npz"
        subprocess.run([unmoor, "run", str(model), "-i", str(inputs), "-o", str(taken), "--on", device], check=True,
                       stdout=subprocess.DEVNULL)
        with np.load(taken) as outputs:
            worst = max(relative_error(outputs[name], want) for name, want in expected.items())
    if worst > TOLERANCE:
        raise SystemExit(f"{model}: outputs on {device} differ by {worst:.3g}, not at most {TOLERANCE}")
    return worst


def median_range(values):
    """Median, and the order statistics that hold the true one in 95 of 100 cases (binomial, normal approximation)."""
    values = sorted(values)
    half = 1.96 * len(values) ** 0.5 / 2
    low = max(0, int(len(values) / 2 - half))
    high = min(len(values) - 1, int(len(values) / 2 + half))
    return statistics.median(values), values[low], values[high]


def time_pair(unmoor, peer, rounds, seconds):
    """Runs both in turn; who goes first alternates. Times are medians of each round."""
    counts = {}
    for side in (unmoor, peer):
        side.run(3)
        counts[side] = max(1, min(200, int(seconds * 1000 / max(statistics.median(side.run(3)), 1e-3))))
    times = {unmoor: [], peer: []}
    for number in range(rounds):
        for side in (unmoor, peer) if number % 2 == 0 else (peer, unmoor):
            time.sleep(0.02)  # Lets the other's threads stop spinning.
            times[side].append(statistics.median(side.run(counts[side])))
    ratio, low, high = median_range([a / b for a, b in zip(times[unmoor], times[peer])])
    return {"unmoor_ms": statistics.median(times[unmoor]), "peer_ms": statistics.median(times[peer]),
            "ratio": ratio, "low": low, "high": high, "rounds": rounds}


def compare(model, inputs, options):
    rows = []
    error = check_outputs(options.unmoor, model, inputs)
    for threads in options.threads:
        served = Served("unmoor", [options.unmoor, "bench", str(model), "--on", "cpu", "--threads", str(threads), "-i", str(inputs),
                                   "--serve"])
        for name in options.peers:
            peer = Served(name, [sys.executable, str(ROOT / "bench" / "peers.py"), name, str(model), str(inputs), str(threads)])
            row = {"model": label(model), "threads": threads, "peer": name, "peer_version": peer.facts["version"], "error": error,
                   **time_pair(served, peer, options.rounds, options.seconds)}
            peer.quit()
            rows.append(row)
            print(table_row(row), file=sys.stderr, flush=True)
        served.quit()
    return rows


def label(model):
    return model.parent.name if model.name == "model.onnx" else model.stem


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = [line.split(":", 1) for line in file if ":" in line]
    facts = {key.strip(): value.strip() for key, value in lines}
    flags = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "amx_tile") if flag in facts.get("flags", "").split()]
    return {"name": facts.get("model name", "unknown"), "cores": os.cpu_count(), "features": flags, "load": round(os.getloadavg()[0], 2)}


def table_row(row):
    return (f"| {row['model']} | {row['threads']} | {row['peer']} | {row['unmoor_ms']:.2f} | {row['peer_ms']:.2f} | "
            f"{row['ratio']:.2f} | {row['low']:.2f} – {row['high']:.2f} |")


def markdown(result):
    machine = result["processor"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return "\n".join([f"{machine['name']}, {machine['cores']} cores ({' '.join(machine['features'])}), load {machine['load']} at the start; "
                      f"{versions}", "",
                      "| model | threads | peer | unmoor ms | peer ms | ratio | 95 % range |", "|---|---|---|---|---|---|---|",
                      *map(table_row, result["rows"])])


def chosen_models(options):
    """Pairs of a model and its inputs."""
    if not options.models:
        options.models = sorted((ROOT / "bench" / "models").glob("*/model.onnx"))
        if not options.models:
            raise SystemExit("bench/models is empty: run bench/export_models.py first")
    for path in options.models:
        model = path / "model.onnx" if path.is_dir() else path
        inputs = options.inputs or model.parent / "inputs.npz"
        if not model.exists() or not inputs.exists():
            raise SystemExit(f"{inputs if model.exists() else model} is not there")
        yield model, inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL", help="a file, or a folder with model.onnx and inputs.npz")
    parser.add_argument("-i", "--inputs", type=pathlib.Path, help="inputs by name (default: inputs.npz beside the model)")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["onnxruntime"], help="of onnxruntime,openvino")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one runtime's turn in a round")
    parser.add_argument("--unmoor", default="unmoor", help="the command to time")
    parser.add_argument("--check", metavar="DEVICE", help="only compare this device's outputs")
    parser.add_argument("--json", type=pathlib.Path, help="write the result there")
    options = parser.parse_args()
    said = subprocess.run([options.unmoor, "--version"], capture_output=True, text=True, check=True).stdout.split()
    result = {"processor": processor(), "versions": {"unmoor": said[-1]}, "rows": []}
    for model, inputs in chosen_models(options):
        if options.check:
            print(f"{label(model)} on {options.check}: relative L2 error {check_outputs(options.unmoor, model, inputs, options.check):.2g}",
                  flush=True)
            continue
        result["rows"] += compare(model, inputs, options)
    result["versions"].update({row["peer"]: row["peer_version"] for row in result["rows"]})
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if not options.check:
        print(markdown(result))


if __name__ == "__main__":
    main()
