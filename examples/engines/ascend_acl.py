"""Huawei Ascend through ACL as an engine: unmoor align MODEL.onnx --target py:examples/engines/ascend_acl.py

Needs CANN's environment (source set_env.sh) with its Python module acl, and the model compiled before into MODEL.om beside MODEL.onnx:
atc --model=MODEL.onnx --framework=5 --output=MODEL --soc_version=…   ASCEND_DEVICE chooses the device."""
import math
import os

import acl
import numpy

TYPES = {0: numpy.float32, 1: numpy.float16, 2: numpy.int8, 3: numpy.int32, 4: numpy.uint8, 9: numpy.int64, 11: numpy.float64, 12: numpy.bool_}
to_device, to_host = 1, 2  # ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST
state = {}


def check(answer):
    *value, status = answer if isinstance(answer, tuple) else (answer,)
    if status != 0:
        raise RuntimeError(f"ACL error {status}: {acl.get_recent_err_msg()}")
    return value[0] if value else None


def load(model):
    check(acl.init())
    check(acl.rt.set_device(int(os.environ.get("ASCEND_DEVICE", "0"))))
    state["model"] = check(acl.mdl.load_from_file(os.path.splitext(model)[0] + ".om"))
    state["about"] = acl.mdl.create_desc()
    check(acl.mdl.get_desc(state["about"], state["model"]))


def dataset(sizes):
    """Buffers on the device with their sizes, and the list of them that ACL takes."""
    buffers, together = [], acl.mdl.create_dataset()
    for size in sizes:
        buffers.append((check(acl.rt.malloc(size, 0)), size))
        acl.mdl.add_dataset_buffer(together, acl.create_data_buffer(*buffers[-1]))
    return buffers, together


def fill(buffer, size, data, name):
    if len(data) > size:
        raise ValueError(f"the input '{name}' has {len(data)} bytes; the model was compiled for {size}")
    check(acl.rt.memcpy(buffer, size, acl.util.bytes_to_ptr(data), len(data), to_device))


def fetch(buffer, size):
    """The bytes of a buffer on the device."""
    host = check(acl.rt.malloc_host(size))
    try:
        check(acl.rt.memcpy(host, size, buffer, size, to_host))
        return acl.util.ptr_to_bytes(host, size)
    finally:
        check(acl.rt.free_host(host))


def run(inputs):
    about = state["about"]
    if "inputs" not in state:
        state["inputs"] = dataset(acl.mdl.get_input_size_by_index(about, i) for i in range(acl.mdl.get_num_inputs(about)))
        state["outputs"] = dataset(acl.mdl.get_output_size_by_index(about, i) for i in range(acl.mdl.get_num_outputs(about)))
    for i, (buffer, size) in enumerate(state["inputs"][0]):
        name = acl.mdl.get_input_name_by_index(about, i)
        fill(buffer, size, inputs[name].tobytes(), name)
    check(acl.mdl.execute(state["model"], state["inputs"][1], state["outputs"][1]))
    found = {}
    for i, (buffer, size) in enumerate(state["outputs"][0]):
        shape = check(acl.mdl.get_cur_output_dims(about, i))["dims"]
        dtype = TYPES[acl.mdl.get_output_data_type(about, i)]
        name = acl.mdl.get_output_name_by_index(about, i).split(":")[-1]
        found[name] = numpy.frombuffer(fetch(buffer, size), dtype, math.prod(shape)).reshape(shape)
    return found
