#!/usr/bin/env python3
"""Runs a PyTorch model and writes its values, for `unmoor align MODEL.onnx --reference FOLDER` on another machine. Needs torch and numpy.

  python3 dump.py MODEL.pt2|FILE.py:FUNCTION FOLDER [DEVICE] [INPUTS.npz]     FUNCTION returns a module and a tuple of example inputs"""
import importlib.util, json, pathlib, sys
import numpy as np
import torch

INPUTS, OUTPUTS, PLACES, MODULES = json.loads(r'''@NAMES@''')  # Names of the ONNX model; of its values by module and operator, and by module.
spec, folder, device = sys.argv[1], pathlib.Path(sys.argv[2]), (sys.argv[3:] or ["cpu"])[0]
folder.mkdir(parents=True, exist_ok=True)
values = []

def leaves(value):
    if isinstance(value, torch.Tensor): return [value]
    value = list(value.values()) if hasattr(value, "values") else value
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, (list, tuple)) else []

def save(name, tensor):
    tensor, file = tensor.detach().cpu().contiguous(), f"{len(values):06}.npy"
    values.append({"name": name, "file": file, "dtype": str(tensor.dtype)[6:], "shape": list(tensor.shape)})
    np.save(folder / file, (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy())

def show(names, name, result):
    if name in names and names[name] not in OUTPUTS and len(leaves(result)) == 1: save(names[name], leaves(result)[0])

if spec.endswith(".pt2"):
    program = torch.export.load(spec)
    module, example = program.module().to(device), torch.utils._pytree.tree_leaves(program.example_inputs)
else:
    file, _, function = spec.rpartition(":")
    loader = importlib.util.spec_from_file_location("model", file)
    loader.loader.exec_module(source := importlib.util.module_from_spec(loader))
    module, example = getattr(source, function)()
    module = module.eval().to(device)
given = np.load(sys.argv[4]) if len(sys.argv) > 4 else None
inputs = [torch.as_tensor(given[name]) for name in INPUTS] if given else leaves(list(example))
for name, tensor in zip(INPUTS, inputs): save(name, tensor)
inputs = [each.to(device) for each in inputs]
with torch.no_grad():
    if spec.endswith(".pt2"):
        stack = lambda node: [path.removeprefix("L['self'].") for path, _ in (node.meta.get("nn_module_stack") or {}).values() if path not in ("", "L['self']")][-1:]
        calls, places = [node for node in module.graph.nodes if node.op == "call_function"], {}
        folded = {node.name for node, after in zip(calls, calls[1:]) if stack(after) and stack(after)[0] not in MODULES}
        for node in calls: places.setdefault(f"{' '.join(stack(node))} {node.target}", []).append(node.name)
        names = {name: ours for where, found in PLACES.items() if len(places.get(where, ())) == len(found) for name, ours in zip(places[where], found)}
        names = {name: ours for name, ours in names.items() if name not in folded}  # Those before a module that the exporter folded away.
        class Watch(torch.fx.Interpreter):
            def run_node(self, node): show(names, node.name, result := super().run_node(node)); return result
        outputs = Watch(module).run(*inputs, enable_io_processing=False)
    else:
        paths = [path for path, _ in module.named_modules()]
        names = {path: MODULES[path] for path, after in zip(paths, paths[1:] + paths[:1]) if path in MODULES and after in {*MODULES, ""}}
        for path, part in module.named_modules(): part.register_forward_hook(lambda _, __, result, path=path: show(names, path, result))
        outputs = module(*inputs)
for name, tensor in zip(OUTPUTS, leaves(outputs)): save(name, tensor)
(folder / "manifest.json").write_text(json.dumps({"values": values}))
print(f"wrote {len(values)} values into {folder}")
