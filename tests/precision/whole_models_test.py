"""A trained model in float16: explained, and what keeping steps in float32 brings is what was predicted. A smaller set of bench/precision/models.py."""
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / each) for each in ("tests/support", "bench/precision")]
import speech
from program import ProgramTest

MODEL = ROOT / "examples" / "models" / "silero-vad-sequence.onnx"


def halved(model):
    """Inputs, outputs, weights and constants in float16; every value between follows from them."""
    half = lambda tensor: numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name)
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    del model.graph.value_info[:]
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(half(tensor))
    for attribute in (each for node in model.graph.node for each in node.attribute):
        if attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
            attribute.t.CopyFrom(half(attribute.t))
    return model


@unittest.skipUnless(MODEL.is_file(), "tools/fetch_models.py silero-vad-sequence")
class WholeModels(ProgramTest):
    def test_speech_in_float16(self):
        path = self.folder / "half.onnx"
        onnx.save(halved(onnx.load(str(MODEL))), str(path))
        np.savez(self.folder / "inputs.npz", **{name: array.astype(np.float16) for name, array in speech.windows(600).items()})
        found = self.run_tool("align", path, "--input", self.folder / "inputs.npz", "--keep-curve", self.folder / "keep.txt")
        self.assertEqual([each["name"] for each in found["values"] + found["outputs"] if each["verdict"] not in ("match", "explained")], [])
        probabilities = next(each for each in found["keep_float32"]["outputs"] if each["name"] == "speech_probs")
        self.assertEqual(probabilities["elements"], 600)
        self.assertLess(probabilities["predicted"], 0.7)
        self.assertLess(abs(probabilities["predicted"] - probabilities["applied"]), 0.1)


if __name__ == "__main__":
    unittest.main()
