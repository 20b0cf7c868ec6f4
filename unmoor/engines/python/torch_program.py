"""A PyTorch model as its user has it: an exported program (.pt2), or a function in a Python file that returns a module and example inputs."""
import importlib.util
import os
import sys
from collections.abc import Mapping

from unmoor_serve import Wrong, need


def leaves(value):
    """The tensors in what a module returns, in order."""
    torch = need("torch")
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, (list, tuple)) else []


def open_program(spec, device):
    file, colon, function = spec.rpartition(":")
    if colon and file.endswith(".py"):
        return Eager(file, function, device)
    if not spec.endswith(".pt2"):
        raise Wrong(f"'{spec}' is no PyTorch model; give FILE.pt2 (torch.export.save) or FILE.py:FUNCTION (returns a module and example inputs)")
    if not os.path.isfile(spec):
        raise Wrong(f"there is no file '{spec}'")
    return Exported(spec, device)


def by_name_or_position(kind, ours, theirs):
    """Names of the ONNX model for names of the program, in its order: the same ones, else one after the other."""
    if len(ours) != len(theirs):
        raise Wrong(f"the PyTorch model has the {kind} {', '.join(theirs) or 'none'}; the ONNX model has {', '.join(ours) or 'none'}")
    return list(theirs) if set(ours) == set(theirs) else list(ours)


class Value:
    """Something that a program can show: its name, the operator that makes it ('' for a module's), and the modules that it lies in."""

    def __init__(self, name, target, modules):
        self.name, self.target, self.modules = name, target, modules


class Exported:
    def __init__(self, path, device):
        torch = need("torch")
        program = torch.export.load(path)
        if str(device) != "cpu":
            from torch.export.passes import move_to_device_pass
            program = move_to_device_pass(program, str(device))
        self.torch, self.module = torch, program.module()
        specs = [each for each in program.graph_signature.input_specs if each.kind.name == "USER_INPUT"]
        self.arguments = [(each.arg.name, getattr(each.arg, "value", None), type(each.arg).__name__ == "TensorArgument") for each in specs]
        self.inputs = [name for name, _, is_tensor in self.arguments if is_tensor]
        self.outputs = [each.arg.name for each in program.graph_signature.output_specs
                        if each.kind.name == "USER_OUTPUT" and type(each.arg).__name__ == "TensorArgument"]
        result = program.call_spec.out_spec
        if isinstance(result.type, type) and issubclass(result.type, dict) and len(result.context) == len(self.outputs):
            self.outputs = [str(each) for each in result.context]  # The module gives a dict: its keys.
        self.structure = program.call_spec.in_spec
        self.values = [self.value(node) for node in self.module.graph.nodes if node.op == "call_function"]
        self.run_module = self.module

    @staticmethod
    def value(node):
        modules = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
        return Value(node.name, str(node.target), [path.removeprefix("L['self'].") for path in modules if path and path != "L['self']"])

    def compile(self):
        self.run_module = self.torch.compile(self.module)

    def flat(self, tensors):
        return [tensors[name] if is_tensor else value for name, value, is_tensor in self.arguments]

    def bind(self, tensors):
        """A function that runs the program on these tensors (by input name)."""
        args, kwargs = self.torch.utils._pytree.tree_unflatten(self.flat(tensors), self.structure)
        return lambda: leaves(self.run_module(*args, **kwargs))

    def watch(self, tensors, show):
        """Runs node by node, and shows the tensor of each."""
        interpreter = self.torch.fx.Interpreter

        class Watcher(interpreter):
            def run_node(self, node):
                result = super().run_node(node)
                found = leaves(result) if node.op == "call_function" else []
                if len(found) == 1:
                    show(node.name, found[0])
                return result

        return leaves(Watcher(self.module).run(*self.flat(tensors), enable_io_processing=False))


class Eager:
    def __init__(self, path, function, device):
        self.torch = torch = need("torch")
        if not os.path.isfile(path):
            raise Wrong(f"there is no file '{path}'")
        sys.path.append(os.path.dirname(os.path.abspath(path)))
        spec = importlib.util.spec_from_file_location("unmoor_user_model", path)
        file = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(file)
        if not callable(getattr(file, function, None)):
            raise Wrong(f"'{path}' has no function '{function}'")
        made = getattr(file, function)()
        if not isinstance(made, tuple) or len(made) != 2 or not isinstance(made[0], torch.nn.Module):
            raise Wrong(f"'{function}' in '{path}' must return a module and its example inputs (a tuple, or a dict by name)")
        self.module = made[0].eval().to(device)
        self.named = isinstance(made[1], Mapping)
        self.inputs = list(made[1]) if self.named else self.positional(made[1])
        self.outputs = []  # Known when it ran.
        self.values = [Value(name, "", [name]) for name, _ in self.module.named_modules() if name]
        self.run_module = self.module

    def positional(self, example):
        """The names that forward() gives to its first arguments."""
        import inspect
        count = len(example) if isinstance(example, (list, tuple)) else 1
        names = [name for name, each in inspect.signature(self.module.forward).parameters.items() if each.kind.name == "POSITIONAL_OR_KEYWORD"]
        return names[:count] if len(names) >= count else [f"argument {i}" for i in range(count)]

    def compile(self):
        self.run_module = self.torch.compile(self.module)

    def bind(self, tensors):
        args = [] if self.named else [tensors[name] for name in self.inputs]
        kwargs = tensors if self.named else {}

        def run():
            result = self.run_module(*args, **kwargs)
            found = leaves(result)
            named = isinstance(result, Mapping) and len(result) == len(found)
            self.outputs = [str(each) for each in result] if named else [f"output {i}" for i in range(len(found))]
            return found

        return run

    def watch(self, tensors, show):
        """Runs with a hook on every module; those that run more than once are not told apart, and not shown."""
        seen, hooks = {}, []
        for name, module in self.module.named_modules():
            if name:
                hooks.append(module.register_forward_hook(lambda _, __, output, name=name: seen.setdefault(name, []).append(leaves(output))))
        try:
            outputs = self.bind(tensors)()
        finally:
            for hook in hooks:
                hook.remove()
        for name, runs in seen.items():
            if len(runs) == 1 and len(runs[0]) == 1:
                show(name, runs[0][0])
        return outputs
