"""Where a target shows outputs only, `align` finds the first wrong node by running parts of the model in it."""
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import models
from engines import EngineTest
from program import unmoor

ROOT = Path(__file__).resolve().parent.parent.parent

# Runs in ONNX Runtime, shows nothing but outputs, and multiplies what some nodes make, by name, with a factor each.
ENGINE = """
import time
import onnx, onnxruntime
from onnx import helper, numpy_helper
import numpy as np

def load(path):
    global session
    model = onnx.load(path)
    check(model.graph)
    for value, factor in {spoilt}.items():
        spoil(model.graph, value, factor)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

def run(inputs):
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))

def spoil(graph, value, factor):
    for i, node in enumerate(graph.node):
        if value in node.output:
            node.output[list(node.output).index(value)] = value + "_right"
            graph.initializer.append(numpy_helper.from_array(np.array(factor, np.float32), value + "_factor"))
            graph.node.insert(i + 1, helper.make_node("Mul", [value + "_right", value + "_factor"], [value]))
            return

def check(graph):
    {check}
"""


def choice(path):
    """x -> Relu -> If(mean > 0: a captured value doubled; else negated) -> Tanh, Sigmoid."""
    def body(name, op):
        return helper.make_graph([helper.make_node(op, ["r"] + (["two"] if op == "Mul" else []), [f"{name}_out"], name=f"{name}.node")], name, [],
                                 [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [2, 8])])
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="relu"), helper.make_node("ReduceMean", ["r"], ["m"], name="mean", keepdims=0),
             helper.make_node("Greater", ["m", "zero"], ["c"], name="greater"),
             helper.make_node("If", ["c"], ["i"], name="if", then_branch=body("then", "Mul"), else_branch=body("else", "Neg")),
             helper.make_node("Tanh", ["i"], ["t"], name="tanh"), helper.make_node("Sigmoid", ["t"], ["y"], name="sigmoid")]
    graph = helper.make_graph(nodes, "choice", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 8])],
                              [numpy_helper.from_array(np.array(each, np.float32), name) for name, each in (("zero", 0), ("two", 2))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), str(path))
    return path


class BisectionTest(EngineTest):
    def setUp(self):
        super().setUp()
        self.model = models.block(self.folder / "m.onnx", gelu="tanh", layers=4)

    def guilty(self, *spoilt, factor=1.01, check="pass"):
        return self.engine(ENGINE.format(spoilt={each: factor for each in spoilt}, check=check))

    def align(self, target, *arguments, status=1, **environment):
        return self.tool("align", self.model, "--target", target, *arguments, status=status, **environment)


class Bisection(BisectionTest):
    def test_the_guilty_node_is_found_at_the_begin_in_the_middle_and_at_the_end(self):
        for node in ("block0.norm", "block1.bias", "log"):
            found = self.align(self.guilty(f"{node}_out"))
            bisection = found["bisection"]
            self.assertEqual((found["first_divergent"], bisection["node"], bisection["within"]), (node, node, [node]))
            self.assertEqual((bisection["wrong_alone"], bisection["wrong_behind"], bisection["stopped"]), ("yes", "no", None), node)
            self.assertLessEqual(bisection["runs"], 8)
            self.assertEqual(bisection["runs"], len(bisection["trials"]))

    def test_a_node_on_either_branch_of_a_residual_is_found(self):
        for node in ("block1.residual", "block2.up"):
            self.assertEqual(self.align(self.guilty(f"{node}_out"))["first_divergent"], node)

    def test_of_two_wrong_nodes_the_first_is_named_and_the_other_is_told_of(self):
        found = self.align(self.guilty("block1.up_out", "block3.norm_out"))
        self.assertEqual(found["first_divergent"], "block1.up")
        self.assertEqual((found["bisection"]["wrong_alone"], found["bisection"]["wrong_behind"]), ("yes", "yes"))

    def test_cuts_are_where_few_values_cross(self):
        trials = [each for each in self.align(self.guilty("block1.act_out"))["bisection"]["trials"] if each["part"] == "begin"]
        self.assertEqual(trials[0]["outputs"], 1, trials[0])
        self.assertLessEqual(max(each["outputs"] for each in trials), 2)

    def test_what_stayed_hidden_is_listed(self):
        bisection = self.align(self.guilty("block1.act_out"))["bisection"]
        shown = {each["value"] for each in bisection["trials"]}
        self.assertFalse(shown & set(bisection["hidden"]))
        self.assertGreater(len(bisection["hidden"]), 10)

    def test_nothing_is_cut_where_nothing_is_wrong(self):
        self.assertNotIn("bisection", self.align(self.guilty(), status=0))

    def test_a_part_that_the_target_does_not_take_is_gone_around(self):
        check = "if any(each.name == 'block1.residual_out' for each in graph.output): raise RuntimeError('not this one')"
        for node in ("block1.down",):
            bisection = self.align(self.guilty(f"{node}_out", check=check))["bisection"]
            self.assertEqual(bisection["node"], node)

    def test_a_target_that_takes_no_part_says_why_and_what_is_left(self):
        check = "if len(graph.node) < 24: raise RuntimeError('too small for me')"
        found = self.align(self.guilty("block1.act_out", check=check))
        self.assertIn("too small for me", found["bisection"]["stopped"])
        self.assertIsNone(found["first_divergent"])
        self.assertIn("block1.act", found["bisection"]["within"])
        self.assertTrue(all("too small" in each["failure"] and each["wrong"] is None for each in found["bisection"]["trials"]))

    def test_a_part_that_hangs_is_ended(self):
        check = "if graph.output[0].name == 'block1.residual_out': time.sleep(1000)"
        found = self.align(self.guilty("block1.act_out", check=check), UNMOOR_PATIENCE="15")
        self.assertEqual(found["first_divergent"], "block1.act")
        self.assertIn("of silence", " ".join(each["failure"] or "" for each in found["bisection"]["trials"]))
        self.assertEqual(list(self.temporary.glob("unmoor*")), [], "temporary files are gone")

    def test_a_gathered_error_is_told_from_a_bad_node(self):
        # Every node is off by two or three units of the last place, which rounding explains of each alone.
        factors = {f"block{i}.{part}_out": 1 + units * 2**-23 for i in range(4) for part, units in (("norm", 2), ("up", 3), ("act", 3), ("down", 3))}
        found = self.align(self.engine(ENGINE.format(spoilt=factors, check="pass")))
        self.assertEqual(found["bisection"]["wrong_alone"], "no")
        self.assertEqual(found["first_divergent"], found["bisection"]["node"])

    def test_weights_of_another_file_come_along(self):
        path = self.folder / "outside.onnx"
        onnx.save(onnx.load(str(self.model)), str(path), save_as_external_data=True, size_threshold=0, location="weights.bin")
        self.model = path
        self.assertEqual(self.align(self.guilty("block1.down_out"))["first_divergent"], "block1.down")

    def test_what_a_subgraph_reads_from_outside_is_given_to_it(self):
        self.model = choice(self.folder / "choice.onnx")
        for value, node in (("r", "relu"), ("i", "if"), ("t", "tanh")):
            found = self.align(self.guilty(value, factor=1.5))
            self.assertEqual(found["first_divergent"], node, found["bisection"])

    def test_bisect_looks_at_outputs_only_of_any_target(self):
        showing = self.guilty("block2.up_out")
        path = Path(showing[3:])
        path.write_text(path.read_text().replace("def run(inputs):", "def run(inputs, wanted=None):"))
        self.assertNotIn("bisection", self.align(showing, status=1))
        found = self.align(showing, "--bisect")
        self.assertEqual((found["values"], found["first_divergent"]), ([], "block2.up"))
        self.assertNotIn("bisection", self.align("cpu", "--bisect", status=0))

    def test_a_tolerance_decides_on_parts_too(self):
        self.assertNotIn("bisection", self.align(self.guilty("block1.act_out"), "--rtol", "1", "--atol", "1", status=0))
        found = self.align(self.guilty("block1.up_out", "block2.up_out", factor=1.5), "--atol", "0.5")
        self.assertTrue(all(each["error"]["excess_e"] is None for each in found["bisection"]["trials"]))

    def test_one_of_our_devices_runs_parts_too(self):
        wrong = models.block(self.folder / "wrong.onnx", gelu="tanh", layers=4, epsilon=0.5)
        self.tool("run", wrong, "--no-fuse", "--dump", self.folder / "dump")
        found = self.align("cpu", "--bisect", "--reference", self.folder / "dump")
        self.assertEqual(found["first_divergent"], "block1.norm")

    def test_what_does_not_go_together_is_refused(self):
        dump = self.folder / "dump"
        self.tool("run", self.model, "--dump", dump)
        for flags in (["--target", dump], ["--target", "torch:cpu"], ["--node", "log"], ["--values", "log*"], ["--reproductions", self.folder / "r"]):
            self.assertIn("--bisect", self.tool("align", self.model, "--bisect", *flags, status=2)["reason"])

    def test_it_fits_a_terminal_and_the_page_has_it(self):
        target = self.guilty("block1.act_out")
        page = self.folder / "p.html"
        result = unmoor("align", self.model, "--target", target, "--html", page, environment=self.environment)
        self.assertIn("'block1.act' (Gelu) is the first", " ".join(result.out.split()))
        self.assertTrue(all(len(line) <= 80 for line in result.out.splitlines()), result)
        self.assertIn('"bisection"', page.read_text())


class Trained(BisectionTest):
    def test_the_guilty_node_of_a_trained_model_is_found(self):
        self.model = ROOT / "examples" / "models" / "ppocr2-cls.onnx"
        if not self.model.is_file():
            self.skipTest("fetch the models first: tools/fetch_models.py ppocr2-cls")
        graph = onnx.load(str(self.model)).graph
        convolutions = [each for each in graph.node if each.op_type == "Conv"]
        for node in (convolutions[2], convolutions[-5]):
            found = self.align(self.guilty(node.output[0], factor=1.05))
            self.assertEqual(found["first_divergent"], node.name or f"Conv:{node.output[0]}")
            self.assertLessEqual(found["bisection"]["runs"], 16)


if __name__ == "__main__":
    unittest.main()
