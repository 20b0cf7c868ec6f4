#!/usr/bin/env python3
"""Compares what `unmoor scan` says of ort-cpu with what ONNX Runtime really accepts, on ONNX's own operator cases, and lists every disagreement.

  tools/check_catalog.py UNMOOR [FOLDER]      FOLDER: the cases, as tools/onnx_node_tests.py writes them; made if it is missing

A case is accepted if ONNX Runtime makes a session of it and, where Python can feed its inputs, runs it. A model with several nodes is accepted by the
catalogue if all of them are. Ends with 1 unless 97 % agree and 80 % of the refusals are found."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

LEAST_AGREEMENT, LEAST_REFUSALS_FOUND = 0.97, 0.80
FEEDABLE = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.INT8, onnx.TensorProto.UINT8,
            onnx.TensorProto.INT16, onnx.TensorProto.UINT16, onnx.TensorProto.INT32, onnx.TensorProto.UINT32, onnx.TensorProto.INT64,
            onnx.TensorProto.UINT64, onnx.TensorProto.BOOL, onnx.TensorProto.STRING}


def feeds(model, folder):
    """The inputs of a case, or None where Python cannot make them."""
    found = {}
    for i, declared in enumerate(model.graph.input):
        file = folder / "test_data_set_0" / f"input_{i}.pb"
        if declared.type.WhichOneof("value") != "tensor_type" or declared.type.tensor_type.elem_type not in FEEDABLE or not file.is_file():
            return None
        tensor = onnx.TensorProto.FromString(file.read_bytes())
        value = numpy_helper.to_array(tensor)
        found[declared.name] = value.astype(object) if value.dtype.kind in "SU" else value
    return found


def engine_accepts(folder):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    model = onnx.load(str(folder / "model.onnx"))
    try:
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        given = feeds(model, folder)
        declared = [output.type.tensor_type.elem_type for output in model.graph.output if output.type.WhichOneof("value") == "tensor_type"]
        if given is not None and len(declared) == len(model.graph.output) and all(kind in FEEDABLE for kind in declared):
            session.run(None, given)
    except Exception as problem:  # Any refusal; its text is shown.
        return str(problem).replace("\n", " ")[:160]
    return ""


def catalogue_says(unmoor, folder):
    done = subprocess.run([unmoor, "scan", str(folder / "model.onnx"), "--on", "ort-cpu", "--json"], capture_output=True, check=False)
    found = json.loads(done.stdout)
    if "nodes" not in found:
        return None, found.get("reason", "")
    taken = [node["state"] in ("native", "constrained") or node["form"] == "function" for node in found["nodes"]]
    unknown = any(node["state"] == "unknown" for node in found["nodes"])
    story = "; ".join(f"{node['op']} {node['state']} {node['reason']}: {node['detail']}" for node, good in zip(found["nodes"], taken) if not good)
    return (None if unknown else all(taken)), story


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    unmoor = sys.argv[1]
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else pathlib.Path(temporary) / "cases"
        subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / "onnx_node_tests.py"), str(place)], check=True, stdout=subprocess.DEVNULL)
        folders = sorted(path.parent for path in place.glob("*/model.onnx"))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            says = list(pool.map(lambda folder: catalogue_says(unmoor, folder), folders))
        counts = {"agree": 0, "unknown": 0, "refusals": 0, "refusals found": 0}
        for folder, (taken, story) in zip(folders, says):
            refusal = engine_accepts(folder)
            counts["agree"] += taken == (not refusal)
            counts["unknown"] += taken is None
            counts["refusals"] += bool(refusal)
            counts["refusals found"] += bool(refusal) and taken is False
            if taken != (not refusal):
                print(f"{folder.name}: the catalogue says {'unknown' if taken is None else 'yes' if taken else 'no'} ({story}); ONNX Runtime {refusal or 'accepts it'}")
        agreement, found = counts["agree"] / len(folders), counts["refusals found"] / max(counts["refusals"], 1)
        print(f"{len(folders)} cases with onnxruntime {onnxruntime.__version__}: {agreement:.1%} agree, {counts['unknown']} unknown; of {counts['refusals']} refusals {found:.1%} are found")
        sys.exit(0 if agreement >= LEAST_AGREEMENT and found >= LEAST_REFUSALS_FOUND else 1)


if __name__ == "__main__":
    main()
