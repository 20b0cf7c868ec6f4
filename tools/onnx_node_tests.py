#!/usr/bin/env python3
"""Writes the operator tests of the installed `onnx` package in ONNX's own test layout, for `unmoor conformance --onnx-tests FOLDER`.

  tools/onnx_node_tests.py FOLDER            one folder a case: model.onnx, test_data_set_N/{input,output}_M.pb
  tools/onnx_node_tests.py FOLDER --only softmax     only cases whose name holds this text

A folder that was written whole by the same version is left alone.
"""
import argparse
import pathlib
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

# NumPy 2 transforms single precision in single precision, as NumPy 1 did not: its rounding (1.5e-6 where 0 is right) would pass for
# what is expected, and is larger than the tolerance.
def in_double(transform):
    return lambda values, *arguments, **named: transform(np.asarray(values).astype(np.complex128), *arguments, **named)


np.fft.fft, np.fft.ifft = in_double(np.fft.fft), in_double(np.fft.ifft)
WRITERS = {"map_type": numpy_helper.from_dict, "sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional,
           "tensor_type": numpy_helper.from_array}


def as_bytes(value, declared):
    """A value as the protobuf message of its declared kind."""
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    kind = declared.type.WhichOneof("value")
    return WRITERS[kind](value, declared.name).SerializeToString()


def write_case(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        place = folder / f"test_data_set_{number}"
        place.mkdir()
        for stem, values, declared in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for i, value in enumerate(values):
                (place / f"{stem}_{i}.pb").write_bytes(as_bytes(value, declared[i]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="TEXT")
    options = parser.parse_args()
    stamp = options.folder / "written"
    written = f"onnx {onnx.__version__} {options.only}\n"
    if stamp.is_file() and stamp.read_text() == written:
        return
    if options.folder.exists():
        if not stamp.is_file() and any(options.folder.iterdir()):
            sys.exit(f"onnx_node_tests: {options.folder} holds something else; name an empty or a new folder")
        shutil.rmtree(options.folder)
    options.folder.mkdir(parents=True)
    (options.folder / "written").write_text("not finished\n")
    warnings.simplefilter("ignore")  # Tests of extremes overflow and divide by zero on purpose.
    cases = [case for case in load_model_tests(kind="node") if options.only in case.name]
    for done, case in enumerate(cases):
        write_case(case, options.folder / case.name)
        if sys.stderr.isatty() and done % 50 == 0:
            print(f"\r{done} of {len(cases)}", end="", file=sys.stderr)
    stamp.write_text(written)
    print(f"wrote {len(cases)} cases of onnx {onnx.__version__} into {options.folder}")


if __name__ == "__main__":
    main()
