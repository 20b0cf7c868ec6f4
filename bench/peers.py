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
    def __init__(self, model, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.version = onnxruntime.__version__
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def outputs(self, inputs):
        with np.load(inputs) as archive:
            answers = self.session.run(None, {name: archive[name] for name in archive.files})
        return dict(zip([o.name for o in self.session.get_outputs()], answers))

    def prepare(self, feed):
        return lambda: self.session.run(None, feed)


class OpenVino:
    def __init__(self, model, threads):
        import openvino
        core = openvino.Core()
        settings = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
        self.version = openvino.__version__.split("-")[0]
        self.request = core.compile_model(core.read_model(str(model)), "CPU", settings).create_infer_request()

    def prepare(self, feed):
        return lambda: self.request.infer(feed)


PACKAGES = {"onnxruntime": "onnxruntime==1.32.0", "openvino": "openvino==2026.4.0"}
PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


def serve(name, model, inputs, threads):
    if name not in PEERS:
        raise SystemExit(f"no peer is called '{name}'; there are: {', '.join(PEERS)}")
    try:
        peer = PEERS[name](pathlib.Path(model), int(threads))
    except ImportError as error:
        raise SystemExit(f"{name}: {error}; install it with: {sys.executable} -m pip install {PACKAGES[name]}")
    with np.load(inputs) as archive:
        run = peer.prepare({key: archive[key] for key in archive.files})
    run()
    print("ready", json.dumps({"name": name, "version": peer.version}), flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[:1] != ["run"]:
            break
        times = []
        for _ in range(int(words[1])):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:5])
