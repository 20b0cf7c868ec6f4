#!/usr/bin/env python3
"""Runs a PyTorch model and writes its values, for `unmoor align MODEL.onnx --reference FOLDER` on another machine. Needs torch and numpy.

  python3 dump.py MODEL.pt2|FILE.py:FUNCTION FOLDER [DEVICE] [INPUTS.npz]

FUNCTION returns a module and its example inputs: a tuple, or a dict by name."""
import importlib.util, itertools, json, pathlib, sys
import numpy as np
import torch

INPUTS, OUTPUTS, PLACES, MODULES = json.loads(r'''@NAMES@''')  # Names of the ONNX model; of its values by module and operator, and by module.
if len(sys.argv) < 3: sys.exit(__doc__)
spec, folder, device = sys.argv[1], pathlib.Path(sys.argv[2]), (sys.argv[3:] or ["cpu"])[0]
folder.mkdir(parents=True, exist_ok=True)
values, makers, numbers = {}, {}, itertools.count()  # What was saved and the part of the program that made it, by name.
runs, again = {}, []  # How often each part ran; values that a part made more than once.

def leaves(value):
    if isinstance(value, torch.Tensor): return [value]
    value = list(value.values()) if hasattr(value, "values") else value
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, (list, tuple)) else []

def in_order(kind, ours, theirs):
    """The ONNX model's names in the program's order: both have the same ones, else one after the other."""
    if len(ours) != len(theirs): sys.exit(f"the PyTorch model has {len(theirs)} {kind} ({', '.join(map(str, theirs))}); the ONNX model has {len(ours)}: {', '.join(ours)}")
    return theirs if set(ours) == set(theirs) else ours

def save(name, tensor):
    tensor, file = tensor.detach().cpu().contiguous(), f"{next(numbers):06}.npy"
    dtype = str(tensor.dtype)[6:].replace("float8_", "float8")
    values[name] = {"name": name, "file": file, "dtype": dtype, "shape": list(tensor.shape)}
    if dtype == "bfloat16" or dtype.startswith("float8"): tensor = tensor.view({1: torch.uint8, 2: torch.uint16}[tensor.element_size()])
    np.save(folder / file, tensor.numpy())

def show(names, name, result):
    """Saves a value of the program. One that runs again is two values of the ONNX model, and nobody knows which: it is left out."""
    runs[name] = runs.get(name, 0) + 1
    if name not in names or names[name] in OUTPUTS or len(leaves(result)) != 1: return
    if runs[name] == 1:
        save(names[name], leaves(result)[0])
        makers[names[name]] = name
    elif makers.get(names[name]) == name:
        del makers[names[name]]
        again.append(names[name])
        (folder / values.pop(names[name])["file"]).unlink()

if spec.endswith(".pt2"):
    program = torch.export.load(spec)
    module = program.module().to(device)
    arguments = [each.arg for each in program.graph_signature.input_specs if each.kind.name == "USER_INPUT"]
    is_tensor = [type(each).__name__ == "TensorArgument" for each in arguments]
    names = [each.name for each, tensor in zip(arguments, is_tensor) if tensor]
    example = torch.utils._pytree.tree_leaves(program.example_inputs)
    example = [each for each in example if isinstance(each, torch.Tensor)]
else:
    file, _, function = spec.rpartition(":")
    loader = importlib.util.spec_from_file_location("model", file)
    loader.loader.exec_module(source := importlib.util.module_from_spec(loader))
    module, example = getattr(source, function)()
    module, named = module.eval().to(device), isinstance(example, dict)
    names, example = list(example) if named else [f"argument {i}" for i in range(len(leaves(list(example))))], leaves(example if named else list(example))
order = in_order("inputs", INPUTS, names)
if len(sys.argv) > 4:
    given = np.load(sys.argv[4])
    if missing := [name for name in order if name not in given]: sys.exit(f"{sys.argv[4]} lacks {', '.join(missing)}; it has {', '.join(given)}")
    inputs = [torch.as_tensor(given[name]) for name in order]
elif len(example) != len(order): sys.exit(f"{spec} has {len(example)} example inputs for {', '.join(order)}: give INPUTS.npz")
else: inputs = example
for name, tensor in zip(order, inputs): save(name, tensor)
inputs = [each.to(device) for each in inputs]
with torch.no_grad():
    if spec.endswith(".pt2"):
        stack = lambda node: [path.removeprefix("L['self'].") for path, _ in (node.meta.get("nn_module_stack") or {}).values() if path not in ("", "L['self']")][-1:]
        calls, places = [node for node in module.graph.nodes if node.op == "call_function"], {}
        folded = {node.name for node, after in zip(calls, calls[1:]) if stack(after) and stack(after)[0] not in MODULES}
        for node in calls: places.setdefault(f"{' '.join(stack(node))} {node.target}", []).append(node.name)
        shown = {name: ours for where, found in PLACES.items() if len(places.get(where, ())) == len(found) for name, ours in zip(places[where], found)}
        shown = {name: ours for name, ours in shown.items() if name not in folded}  # Those before a module that the exporter folded away.
        class Watch(torch.fx.Interpreter):
            def run_node(self, node): show(shown, node.name, result := super().run_node(node)); return result
        tensors = iter(inputs)
        outputs = Watch(module).run(*(next(tensors) if tensor else each.value for each, tensor in zip(arguments, is_tensor)), enable_io_processing=False)
        results = [each.arg.name for each in program.graph_signature.output_specs if each.kind.name == "USER_OUTPUT" and type(each.arg).__name__ == "TensorArgument"]
        dict_of = program.call_spec.out_spec
        if isinstance(dict_of.type, type) and issubclass(dict_of.type, dict): results = list(dict_of.context)
        outputs = leaves(outputs)
    else:
        paths = [path for path, _ in module.named_modules()]
        shown = {path: MODULES[path] for path, after in zip(paths, paths[1:] + paths[:1]) if path in MODULES and after in {*MODULES, ""}}
        for path, part in module.named_modules(): part.register_forward_hook(lambda _, __, result, path=path: show(shown, path, result))
        outputs = module(**dict(zip(names, inputs))) if named else module(*inputs)
        results = list(outputs) if hasattr(outputs, "keys") else []
        outputs = leaves(outputs)
if len(results) != len(outputs): results = [f"output {i}" for i in range(len(outputs))]
for name, tensor in zip(in_order("outputs", OUTPUTS, results), outputs): save(name, tensor)
again = [name for name in again if name not in values]
(folder / "manifest.json").write_text(json.dumps({"values": list(values.values())}))
print(f"wrote {len(values)} values into {folder}" + (f"; left out, since a part that runs more than once makes them: {', '.join(again)}" if again else ""))
