"""NVIDIA TensorRT as an engine: unmoor bench MODEL.onnx --on cpu,py:examples/engines/tensorrt.py

Needs TensorRT 10 and the package torch with CUDA, which holds the device's memory. TENSORRT_FP16=1 lets it choose float16."""
import os

import tensorrt
import torch

PACKAGES = ["tensorrt", "torch"]
logger = tensorrt.Logger(tensorrt.Logger.WARNING)
state = {}


def load(model):
    builder = tensorrt.Builder(logger)
    network = builder.create_network(0)
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse_from_file(model):
        raise RuntimeError("; ".join(str(parser.get_error(i)) for i in range(parser.num_errors)))
    config = builder.create_builder_config()
    if os.environ.get("TENSORRT_FP16") == "1":
        config.set_flag(tensorrt.BuilderFlag.FP16)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise RuntimeError("TensorRT could not build an engine: its messages stand above")
    state["engine"] = tensorrt.Runtime(logger).deserialize_cuda_engine(plan)
    state["context"] = state["engine"].create_execution_context()
    state["stream"] = torch.cuda.Stream()


def run(inputs):
    engine = state["engine"]
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    with torch.cuda.stream(state["stream"]):  # Copies and the run in one order.
        return run_in_order(names, inputs)


def run_in_order(names, inputs):
    engine, context = state["engine"], state["context"]
    tensors = {name: torch.from_numpy(inputs[name]).cuda() for name in names if name in inputs}
    for name, tensor in tensors.items():
        context.set_input_shape(name, tuple(tensor.shape))
    results = [name for name in names if name not in inputs]
    for name in results:
        dtype = getattr(torch, tensorrt.nptype(engine.get_tensor_dtype(name)).__name__)
        tensors[name] = torch.empty(tuple(context.get_tensor_shape(name)), dtype=dtype, device="cuda")
    for name, tensor in tensors.items():
        context.set_tensor_address(name, tensor.data_ptr())
    if not context.execute_async_v3(state["stream"].cuda_stream):
        raise RuntimeError("TensorRT could not run the model: its messages stand above")
    return {name: tensors[name].cpu().numpy() for name in results}  # .cpu() waits.
