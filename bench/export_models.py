#!/usr/bin/env python3
"""Exports six known architectures from PyTorch, with seeded random weights, by both of its ONNX exporters.

  bench/export_models.py                     all, into bench/models/NAME-EXPORTER/model.onnx
  bench/export_models.py gpt2 --by dynamo    one

Each folder also gets inputs.npz and expected.npz: what ONNX Runtime answers for these inputs. Needs the packages of
bench/requirements.txt; with none of them installed, it makes a virtual environment in build/bench-venv and runs itself there.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "build" / "bench-venv"

try:
    import numpy as np
    import onnx
    import onnxruntime
    import torch
    import transformers
except ImportError:
    if pathlib.Path(sys.prefix) == VENV:
        raise
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run([str(VENV / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "-r",
                    str(ROOT / "bench" / "requirements.txt")], check=True)
    os.execv(str(VENV / "bin" / "python"), [str(VENV / "bin" / "python"), *sys.argv])

PAST, TOKENS = 256, 128
GPT2_LAYERS, GPT2_HEADS, GPT2_WIDTH = 12, 12, 64


class Logits(torch.nn.Module):
    """An image classifier that takes a tensor and gives a tensor."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, pixel_values):
        return self.net(pixel_values).logits


class Encoder(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, attention_mask, token_type_ids):
        out = self.net(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return out.last_hidden_state, out.pooler_output


class DecodeStep(torch.nn.Module):
    """One token, with the keys and values of those before it; gives logits and the longer keys and values."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, position_ids, *past):
        cache = transformers.DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.net(input_ids=input_ids, position_ids=position_ids, past_key_values=cache, use_cache=True)
        present = []
        for layer in out.past_key_values.layers:
            present += [layer.keys, layer.values]
        return out.logits, *present


def set_weights(net, seed):
    """Random weights that keep activations near unit size: no layer is a near-identity, as fresh ones often are."""
    generator = torch.Generator().manual_seed(seed)

    def normal(tensor, std, mean=0.0):
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * std + mean)

    with torch.no_grad():
        for name, parameter in net.named_parameters():
            kind = name.rsplit(".", 1)[-1]
            if "layer_scale" in name:
                normal(parameter, 0.1, 0.3)
            elif parameter.dim() == 1 and kind == "weight":
                normal(parameter, 0.1, 1.0)
            elif parameter.dim() == 1:
                normal(parameter, 0.05)
            elif parameter.dim() == 4:
                normal(parameter, (2.0 / parameter[0].numel()) ** 0.5)
            elif "embedding" in name or "wte" in name or "wpe" in name or "_token" in name:
                normal(parameter, 0.05)
            else:  # GPT-2 keeps its matrices transposed; its fan-in is the first dimension.
                fan_in = parameter.shape[0] if ".c_" in name else parameter.shape[-1]
                normal(parameter, fan_in ** -0.5)


def set_statistics(net, make_input, rounds=4):
    """Runs the net on random batches, so that each BatchNorm's statistics are those of what it really sees."""
    norms = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    if not norms:
        return
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # A plain average over the rounds.
    net.train()
    with torch.no_grad():
        for _ in range(rounds):
            net(make_input())


def image_inputs(batch=1):
    """Smooth blobs with some noise, roughly normalised: closer to a picture than white noise is."""
    generator = torch.Generator().manual_seed(batch)
    coarse = torch.randn((batch, 3, 14, 14), generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=(224, 224), mode="bilinear", align_corners=False)
    return {"pixel_values": smooth + 0.1 * torch.randn(smooth.shape, generator=generator)}


def vision(config, model, seed):
    net = Logits(model(config))
    set_weights(net, seed)
    set_statistics(net, lambda: image_inputs(8)["pixel_values"])
    return net, image_inputs(), ["logits"], None


def resnet50():
    return vision(transformers.ResNetConfig(num_labels=1000), transformers.ResNetForImageClassification, 1)


def mobilenet_v2():
    config = transformers.MobileNetV2Config(num_labels=1000, tf_padding=False)
    return vision(config, transformers.MobileNetV2ForImageClassification, 2)


def convnext_t():
    return vision(transformers.ConvNextConfig(num_labels=1000), transformers.ConvNextForImageClassification, 3)


def vit_b16():
    return vision(transformers.ViTConfig(num_labels=1000), transformers.ViTForImageClassification, 4)


def bert_base():
    net = Encoder(transformers.BertModel(transformers.BertConfig()))
    set_weights(net, 5)
    generator = torch.Generator().manual_seed(5)
    mask = torch.ones((1, TOKENS), dtype=torch.int64)
    mask[:, 120:] = 0
    inputs = {"input_ids": torch.randint(1000, 30000, (1, TOKENS), generator=generator), "attention_mask": mask,
              "token_type_ids": (torch.arange(TOKENS)[None] >= 64).long()}
    axes = {name: {0: "batch", 1: "sequence"} for name in inputs}
    return net, inputs, ["last_hidden_state", "pooler_output"], axes


def gpt2():
    net = DecodeStep(transformers.GPT2LMHeadModel(transformers.GPT2Config()))
    set_weights(net, 6)
    generator = torch.Generator().manual_seed(6)
    inputs = {"input_ids": torch.tensor([[1234]]), "position_ids": torch.tensor([[PAST]])}
    axes, outputs = {}, ["logits"]
    for layer in range(GPT2_LAYERS):
        for part in ("key", "value"):
            name = f"past_key_values.{layer}.{part}"
            inputs[name] = torch.randn((1, GPT2_HEADS, PAST, GPT2_WIDTH), generator=generator)
            axes[name] = {2: "past_sequence"}
            outputs.append(f"present.{layer}.{part}")
    return net, inputs, outputs, axes


MODELS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "convnext_t": convnext_t, "vit_b16": vit_b16,
          "bert_base": bert_base, "gpt2": gpt2}
EXPORTERS = ("torchscript", "dynamo")


def dynamic_shapes(inputs, axes):
    """The same axes in the newer exporter's words; what follows two named inputs is the tuple `past`."""
    shapes = tuple({axis: torch.export.Dim.AUTO for axis in axes.get(name, {})} for name in inputs)
    return shapes if len(inputs) < 20 else (*shapes[:2], shapes[2:])


def export(net, inputs, outputs, axes, exporter, path):
    options = {"input_names": list(inputs), "output_names": outputs, "dynamo": exporter == "dynamo"}
    if axes and exporter == "torchscript":
        options["dynamic_axes"] = axes
    elif axes:
        options["dynamic_shapes"] = dynamic_shapes(inputs, axes)
    with torch.no_grad():
        torch.onnx.export(net, tuple(inputs.values()), str(path), **options)


def count_operators(path):
    """Operators of a file with their numbers, subgraphs and functions included."""
    model = onnx.load(str(path), load_external_data=False)
    counts = collections.Counter()

    def walk(nodes):
        for node in nodes:
            counts[f"{node.domain}:{node.op_type}" if node.domain else node.op_type] += 1
            for attribute in node.attribute:
                for graph in [attribute.g, *attribute.graphs]:
                    walk(graph.node)

    walk(model.graph.node)
    for function in model.functions:
        walk(function.node)
    opsets = {o.domain or "ai.onnx": o.version for o in model.opset_import}
    return opsets, dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def record(folder, inputs, net):
    """Writes inputs and ONNX Runtime's outputs; complains where these and PyTorch's differ."""
    feed = {name: tensor.numpy() for name, tensor in inputs.items()}
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    feed = {i.name: feed[i.name] for i in session.get_inputs()}
    names = [o.name for o in session.get_outputs()]
    answers = session.run(None, feed)
    np.savez(folder / "inputs.npz", **feed)
    np.savez(folder / "expected.npz", **dict(zip(names, answers)))
    with torch.no_grad():
        wanted = net(*inputs.values())
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    worst = 0.0
    for name, got, want in zip(names, answers, wanted):
        want = want.numpy()
        error = float(np.linalg.norm((got - want).ravel()) / np.linalg.norm(want.ravel()))
        if not np.isfinite(got).all() or error > 1e-4:
            raise SystemExit(f"{folder.name}: {name} of ONNX Runtime differs from PyTorch's by {error:.2g}")
        worst = max(worst, error)
    return worst, float(np.std(answers[0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {' '.join(MODELS)} (default: all)")
    parser.add_argument("--by", choices=EXPORTERS, help="one exporter (default: both)")
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "bench" / "models")
    options = parser.parse_args()
    for name in options.models or MODELS:
        if name not in MODELS:
            raise SystemExit(f"no model is called '{name}'; there are: {' '.join(MODELS)}")
        torch.manual_seed(0)
        net, inputs, outputs, axes = MODELS[name]()
        net.eval()
        for exporter in [options.by] if options.by else EXPORTERS:
            folder = options.to / f"{name}-{exporter}"
            folder.mkdir(parents=True, exist_ok=True)
            export(net, inputs, outputs, axes, exporter, folder / "model.onnx")
            error, spread = record(folder, inputs, net)
            opsets, operators = count_operators(folder / "model.onnx")
            (folder / "operators.json").write_text(json.dumps({"opsets": opsets, "operators": operators}, indent=1) + "\n")
            print(f"{folder.name}: opset {opsets['ai.onnx']}, {sum(operators.values())} nodes, {error:.1e} from PyTorch, "
                  f"output spread {spread:.3g}", flush=True)


if __name__ == "__main__":
    main()
