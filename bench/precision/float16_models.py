#!/usr/bin/env python3
"""Makes float16 models of float32 ones, for bench/precision/models.py.

    bench/precision/float16_models.py MODEL.onnx OUTPUT.onnx

Weights and values become float16 (onnxconverter-common, as most people do it); inputs and outputs become so, too, with integers as they are. Operators
that the converter leaves in float32 by its own list, such as Range, stay in float32 between casts. Needs onnx and onnxconverter-common.
"""
import argparse
import warnings

import onnx
from onnxconverter_common import float16


def to_float16(source, target):
    """Writes the model of the file `source` in float16 to `target`, with all its weights inside."""
    model = onnx.load(str(source))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # One for each weight below float16's smallest number.
        narrow = float16.convert_float_to_float16(model)
    onnx.save(narrow, str(target))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("output")
    given = parser.parse_args()
    to_float16(given.model, given.output)
