#!/usr/bin/env python3
"""Other runtimes behind the same lines that `unmoor bench --serve` speaks. bench/compare.py starts it.

  bench/peers.py onnxruntime MODEL INPUTS.npz THREADS
"""
import json
import pathlib
import sys
import time

import numpy as np


class OnnxRuntime:
    def __init__(self, threads):
        import onnxruntime
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3
        self.version = onnxruntime.__version__
        self.precision = "float32, as the model"  # It changes none unasked.
        self.make_session = onnxruntime.InferenceSession

    def load(self, model):
        self.session = self.make_session(str(model), self.options, providers=["CPUExecutionProvider"])

    def prepare(self, feed):
        return lambda: self.session.run(None, feed)

    def named(self, answers):
        return dict(zip([each.name for each in self.session.get_outputs()], answers))


class OpenVino:
    def __init__(self, threads):
        import openvino
        self.core = openvino.Core()
        self.settings = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
        self.version = openvino.__version__.split("-")[0]

    def load(self, model):
        compiled = self.core.compile_model(self.core.read_model(str(model)), "CPU", self.settings)
        self.precision = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        self.outputs = [each.get_any_name() for each in compiled.outputs]
        self.request = compiled.create_infer_request()

    def prepare(self, feed):
        return lambda: self.request.infer(feed)

    def named(self, answers):
        return {name: answers[index] for index, name in enumerate(self.outputs)}


PACKAGES = {"onnxruntime": "onnxruntime==1.32.0", "openvino": "openvino==2026.4.0"}
PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


def resident_bytes():
    """The most memory of this process so far."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def time_runs(run, count):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def serve(name, model, inputs, threads):
    if name not in PEERS:
        raise SystemExit(f"no peer is called '{name}'; there are: {', '.join(PEERS)}")
    try:
        peer = PEERS[name](int(threads))
    except ImportError as error:
        raise SystemExit(f"{name}: {error}; install it with: {sys.executable} -m pip install {PACKAGES[name]}")
    imported = {"imported_at": time.monotonic(), "imported_bytes": resident_bytes()}
    peer.load(pathlib.Path(model))
    with np.load(inputs) as archive:
        run = peer.prepare({key: archive[key] for key in archive.files})
    run()
    print("ready", json.dumps({"name": name, "version": peer.version, "precision": peer.precision, **imported}), flush=True)
    for line in sys.stdin:
        words = line.split(maxsplit=1)
        if words[:1] == ["run"]:
            print(json.dumps(time_runs(run, int(words[1]))), flush=True)
        elif words[:1] == ["outputs"]:
            np.savez(words[1].strip(), **peer.named(run()))
            print("done", flush=True)
        else:
            break


if __name__ == "__main__":
    serve(*sys.argv[1:5])
