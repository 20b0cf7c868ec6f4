"""OpenVINO on a CPU as an engine: unmoor align MODEL.onnx --reference reference --target py:examples/engines/openvino.py

Needs the package openvino. OPENVINO_DEVICE names another device; OPENVINO_PRECISION another precision than float32."""
import os

import openvino

PACKAGES = ["openvino"]  # Whose versions go into results.
core = openvino.Core()
device = os.environ.get("OPENVINO_DEVICE", "CPU")
settings = {"INFERENCE_PRECISION_HINT": os.environ.get("OPENVINO_PRECISION", "f32"), "PERFORMANCE_HINT": "LATENCY"}
if device == "CPU":
    settings["INFERENCE_NUM_THREADS"] = int(os.environ.get("UNMOOR_THREADS", "0"))  # As --threads says; 0 lets OpenVINO choose.
path = None
compiled = {}  # By the values that are shown; () is the model as it is.


def compile_showing(names):
    """The model with further results: it may fuse less than without."""
    model = core.read_model(path)
    outputs = {name for each in model.outputs for name in each.names}
    for op in model.get_ordered_ops():
        for port in op.outputs() if op.get_type_name() not in ("Parameter", "Constant", "Result") else []:
            found = port.get_names() & set(names) - outputs
            if found:
                model.add_outputs(port)
                outputs |= found
    return core.compile_model(model, device, settings)


def load(model):
    global path
    path = model
    compiled[()] = compile_showing(())


def run(inputs, wanted=None):
    key = tuple(wanted or ())
    if key not in compiled:
        compiled[key] = compile_showing(key)
    results = compiled[key].create_infer_request().infer(inputs)
    return {name: array for port, array in results.items() for name in port.names}
