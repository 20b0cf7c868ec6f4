"""Maps, sequences of them and strings, into a model and out of it."""
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from program import ProgramTest, unmoor

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def tensor(dtype, shape):
    return helper.make_tensor_type_proto(dtype, shape)


def save(path, nodes, inputs, outputs):
    """Nodes of ai.onnx.ml: (operator, inputs, outputs, attributes). Inputs and outputs: name -> type."""
    graph = helper.make_graph([helper.make_node(op, *ends, domain="ai.onnx.ml", name=op, **attributes) for op, *ends, attributes in nodes], "test",
                              *([helper.make_value_info(name, kind) for name, kind in each.items()] for each in (inputs, outputs)))
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]), str(path))
    return path


def map_file(path, entries):
    """A MapProto from texts to floats."""
    proto = onnx.MapProto(key_type=STRING, string_keys=[key.encode() for key in entries])
    proto.values.elem_type = onnx.SequenceProto.TENSOR
    proto.values.tensor_values.extend(numpy_helper.from_array(np.float32(each)) for each in entries.values())
    path.write_bytes(proto.SerializeToString())
    return path


class Maps(ProgramTest):
    def zip_map(self):
        kind = helper.make_sequence_type_proto(helper.make_map_type_proto(STRING, tensor(FLOAT, [])))
        path = save(self.folder / "m.onnx", [("ZipMap", ["x"], ["y"], {"classlabels_strings": ["no", "yes"]})], {"x": tensor(FLOAT, ["n", 2])}, {"y": kind})
        np.save(self.folder / "x.npy", np.array([[0.25, 0.75], [1, 0], [0.5, 0.5]], np.float32))
        return path, "-i", self.folder / "x.npy"

    def test_maps_are_printed(self):
        found = self.run_tool("run", *self.zip_map())["outputs"][0]
        self.assertEqual(found["dtype"], "sequence(map(string,float32[]))")
        self.assertEqual(found["items"], 3)
        self.assertEqual(found["value"], "[{no: 0.25, yes: 0.75}, {no: 1, yes: 0}, {no: 0.5, yes: 0.5}]")
        self.assertIn("y: 3 items, the first is {no: 0.25, yes: 0.75}", unmoor("run", *self.zip_map()).out)

    def test_maps_with_equal_keys_are_written_as_rows(self):
        self.run_tool("run", *self.zip_map(), "-o", self.folder / "out.npz")
        with np.load(self.folder / "out.npz") as out:
            self.assertEqual(out["y/keys"].tolist(), ["no", "yes"])
            np.testing.assert_array_equal(out["y/values"], np.float32([[0.25, 0.75], [1, 0], [0.5, 0.5]]))

    def test_a_map_can_be_given(self):
        kind = helper.make_map_type_proto(STRING, tensor(FLOAT, []))
        path = save(self.folder / "m.onnx", [("DictVectorizer", ["x"], ["y"], {"string_vocabulary": ["a", "b", "c"]})], {"x": kind},
                    {"y": tensor(FLOAT, [1, 3])})
        for entries, wanted in (({"c": 3, "a": 1}, [1, 0, 3]), ({}, [0, 0, 0])):
            self.run_tool("run", path, "-i", f"x={map_file(self.folder / 'x.pb', entries)}", "-o", self.folder / "out.npz")
            with np.load(self.folder / "out.npz") as out:
                np.testing.assert_array_equal(out["y"], np.float32([wanted]))
        refused = unmoor("run", path, "-i", f"x={map_file(self.folder / 'x.pb', {'q': 1})}")
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("key 'q' of the map is not in the vocabulary", refused.err)

    def test_strings_pass_from_node_to_node(self):
        path = save(self.folder / "m.onnx", [("LabelEncoder", ["x"], ["t"], {"keys_int64s": [0, 1], "values_strings": ["zero", "a longer text than fits in place"]}),
                                             ("LabelEncoder", ["t"], ["u"], {"keys_strings": ["zero", "a longer text than fits in place"], "values_strings": ["null", "eins"]}),
                                             ("LabelEncoder", ["u"], ["y"], {"keys_strings": ["null", "eins"], "values_int64s": [10, 11]})],
                    {"x": tensor(INT64, [3])}, {"y": tensor(INT64, [3])})
        np.save(self.folder / "x.npy", np.array([1, 0, 5]))
        for device in ("cpu", "reference"):
            self.run_tool("run", path, "--on", device, "-i", self.folder / "x.npy", "-o", self.folder / "out.npz")
            with np.load(self.folder / "out.npz") as out:
                self.assertEqual(out["y"].tolist(), [11, 10, -1])

    def test_scan_says_what_to_do_about_a_zip_map(self):
        result = unmoor("scan", self.zip_map()[0], "--on", "opencl", "--json")
        self.assertEqual(result.status, 1, result)
        node = result.json["nodes"][0]
        self.assertEqual((node["state"], node["reason"]), ("fallback", "dtype"))
        self.assertIn("zipmap=False", node["advice"])
        self.assertIn("which only the host holds", node["detail"])


if __name__ == "__main__":
    unittest.main()
