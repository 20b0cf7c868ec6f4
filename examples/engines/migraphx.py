"""AMD MIGraphX as an engine: unmoor bench MODEL.onnx --on cpu,py:examples/engines/migraphx.py

Needs ROCm's migraphx with its Python module (PYTHONPATH=/opt/rocm/lib). MIGRAPHX_FP16=1 runs in float16. Compiled anew for each set of shapes."""
import os

import migraphx
import numpy

path = None
programs = {}  # By the inputs' shapes.


def load(model):
    global path
    path = model
    migraphx.parse_onnx(model)  # A model that it cannot read is told here, not at the first run.


def compiled(inputs):
    shapes = {name: list(array.shape) for name, array in inputs.items()}
    key = str(sorted(shapes.items()))
    if key not in programs:
        program = migraphx.parse_onnx(path, map_input_dims=shapes)
        if os.environ.get("MIGRAPHX_FP16") == "1":
            migraphx.quantize_fp16(program)
        program.compile(migraphx.get_target("gpu"), offload_copy=True)
        programs[key] = program
    return programs[key]


def run(inputs):
    program = compiled(inputs)
    arguments = {name: migraphx.argument(numpy.ascontiguousarray(array)) for name, array in inputs.items()}
    results = program.run(arguments)
    return {name: numpy.array(result) for name, result in zip(output_names(), results)}


def output_names():
    """As the file names them: MIGraphX keeps only their order."""
    import onnx
    return [each.name for each in onnx.load(path, load_external_data=False).graph.output]
