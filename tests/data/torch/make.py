#!/usr/bin/env python3
"""Writes the files of PyTorch beside this: small ones of each kind, by torch's own functions. Needs torch 2.13.

What names the machine that wrote them, traces of the stack and TorchScript's debug files, is taken out of the zip files again."""
import io
import json
import pathlib
import struct
import zipfile

import torch

HERE = pathlib.Path(__file__).resolve().parent


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 5)])
        self.register_buffer("steps", torch.arange(3))

    def forward(self, x, times: int = 2):
        y = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        for layer in self.layers:
            y = layer(y)
        if times > 1:
            y = y * times
        return torch.softmax(y, -1), y.argmax(-1)


class Branches(torch.nn.Module):
    """Control flow, an output whose size only the data tells, and float64."""

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda a: a.relu() + 1, lambda a: a.sin().double().float(), (x,))
        return y, torch.nonzero(x)


def without_traces(data):
    """A zip file again, less what tells of the machine."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith(".debug_pkl"):
                continue
            if "/models/" in entry.filename:
                program = json.loads(content)
                clean(program)
                content = json.dumps(program, separators=(",", ":")).encode()
            new.writestr(zipfile.ZipInfo(entry.filename), content, compress_type=entry.compress_type)
    return made.getvalue()


def clean(value):
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        clean(each)
    if isinstance(value, dict):
        value.pop("stack_trace", None)


def saved(save):
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def safetensors(tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def main():
    torch.manual_seed(0)
    net, x = Net().eval(), torch.ones(2, 3, 4, 4)
    program = torch.export.export(net, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch", min=2, max=64)}})
    branches = torch.export.export(Branches(), (torch.ones(3, 3),))
    state = net.state_dict()
    files = {
        "program.pt2": without_traces(saved(lambda to: torch.export.save(program, to))),
        "branches.pt2": without_traces(saved(lambda to: torch.export.save(branches, to))),
        "script.pt": without_traces(saved(lambda to: torch.jit.save(torch.jit.script(net), to))),
        "traced.pt": without_traces(saved(lambda to: torch.jit.save(torch.jit.trace(net, x), to))),
        "checkpoint.pth": saved(lambda to: torch.save({"model": state, "epoch": 3, "rates": [0.1, 0.01], "twice": state["conv.weight"]}, to)),
        "legacy.pth": saved(lambda to: torch.save(state, to, _use_new_zipfile_serialization=False)),
        "whole.pth": saved(lambda to: torch.save(net, to)),
        "tensors.safetensors": safetensors({"a.weight": ("F32", [2, 3], bytes(24)), "a.bias": ("BF16", [3], bytes(6)), "steps": ("I64", [], bytes(8))}),
    }
    for name, content in files.items():
        (HERE / name).write_bytes(content)
        print(name, len(content))


if __name__ == "__main__":
    main()
