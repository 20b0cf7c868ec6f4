#!/usr/bin/env python3
"""Copies the operator tests that an older release of ONNX ships as files, for `unmoor conformance --onnx-tests FOLDER`.

  tools/onnx_released_tests.py FOLDER                 from Debian's package libonnx-testdata (ONNX 1.12): 932 node tests, 82 and 35
                                                      that PyTorch exported in opset 6, 23 of single features
  tools/onnx_released_tests.py FOLDER --from SOURCE   from another folder of the same layout

What contradicts its own model is corrected on the way; why is said at each correction below.
"""
import argparse
import pathlib
import shutil
import sys

import onnx
from onnx import TensorProto

DEBIAN = pathlib.Path("/usr/share/libonnx-testdata/data")


def name_epsilon(folder, model):
    """The outputs were computed with an epsilon of 0.01 that the node does not have; later releases of ONNX write it."""
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("epsilon", 0.01))
    return True


def data_files(folder, stem):
    return sorted(folder.glob(f"test_data_set_*/{stem}_*.pb"))


def name_bfloat16(folder, model):
    """NumPy has no bfloat16, so the release wrote its bits as uint16, which is not what the model declares."""
    found = False
    for stem, values in (("input", model.graph.input), ("output", model.graph.output)):
        for path in data_files(folder, stem):
            tensor = TensorProto.FromString(path.read_bytes())
            declared = values[int(path.stem.split("_")[1])].type.tensor_type.elem_type
            if declared == TensorProto.BFLOAT16 and tensor.data_type == TensorProto.UINT16:
                tensor.data_type = declared
                path.write_bytes(tensor.SerializeToString())
                found = True
    return found


def declare_one_element(folder, model):
    """`like` is declared as [3,4], but what is given for it has one element, as all other tests of CastLike declare."""
    like = model.graph.input[1].type.tensor_type.shape
    del like.dim[:]
    like.dim.add().dim_value = 1
    return True


CORRECTIONS = {
    "test_adam_multiple": [name_epsilon],
    "test_cast_BFLOAT16_to_FLOAT": [name_bfloat16],
    "test_cast_FLOAT_to_BFLOAT16": [name_bfloat16],
    "test_castlike_BFLOAT16_to_FLOAT": [name_bfloat16, declare_one_element],
    "test_castlike_BFLOAT16_to_FLOAT_expanded": [name_bfloat16, declare_one_element],
    "test_castlike_FLOAT_to_BFLOAT16": [name_bfloat16, declare_one_element],
    "test_castlike_FLOAT_to_BFLOAT16_expanded": [name_bfloat16, declare_one_element],
}


def correct(folder):
    """Applies what CORRECTIONS has for a case. Fails if it finds nothing to correct: then the release is another one."""
    path = folder / "model.onnx"
    model = onnx.load(path)
    for correction in CORRECTIONS[folder.name]:
        if not correction(folder, model):
            raise SystemExit(f"onnx_released_tests: {folder.name} has nothing that {correction.__name__} corrects; is this another release?")
    path.write_bytes(model.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=DEBIAN)
    options = parser.parse_args()
    if not options.source.is_dir():
        sys.exit(f"onnx_released_tests: there is no folder {options.source}; install the Debian package libonnx-testdata (./setup --tests does)")
    stamp = options.folder / "written"
    if options.folder.exists():
        if not stamp.is_file() and any(options.folder.iterdir()):
            sys.exit(f"onnx_released_tests: {options.folder} holds something else; name an empty or a new folder")
        shutil.rmtree(options.folder)
    options.folder.mkdir(parents=True)
    stamp.write_text("by onnx_released_tests.py\n")
    shutil.copytree(options.source, options.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("real"), copy_function=shutil.copyfile)
    cases = [path.parent for path in options.folder.rglob("model.onnx")]
    wrong = [folder for folder in cases if folder.name in CORRECTIONS]
    for folder in wrong:
        correct(folder)
    print(f"copied {len(cases)} cases into {options.folder}, {len(wrong)} of them corrected")


if __name__ == "__main__":
    main()
