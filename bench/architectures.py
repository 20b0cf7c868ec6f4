"""What the exported models are made of: a sample of each, its weights, and what several of them need.

Weights are random and seeded. They are chosen so that activations stay near unit size and every layer does something: fresh ones often
leave a layer near the identity, which hides errors.
"""
import dataclasses

import torch


@dataclasses.dataclass
class Sample:
    """A net ready to export: what goes in by name and in order, the names of what comes out, and the axes that may change."""

    net: torch.nn.Module
    inputs: dict
    outputs: list
    axes: dict = dataclasses.field(default_factory=dict)  # Input name to {axis: name}.


class Picked(torch.nn.Module):
    """A net of transformers that takes tensors by name, with the attributes of its answer that are wanted, as a tensor or a tuple."""

    def __init__(self, net, inputs, outputs):
        super().__init__()
        self.net, self.input_names, self.output_names = net, list(inputs), list(outputs)

    def forward(self, *tensors):
        answer = self.net(**dict(zip(self.input_names, tensors)))
        picked = tuple(answer[name] for name in self.output_names)
        return picked if len(picked) > 1 else picked[0]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def set_weights(net, seed):
    """Random weights that keep activations near unit size."""
    generator = seeded(seed)

    def normal(tensor, std, mean=0.0):
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * std + mean)

    with torch.no_grad():
        for name, parameter in net.named_parameters():
            kind = name.rsplit(".", 1)[-1]
            if "layer_scale" in name:
                normal(parameter, 0.1, 0.3)
            elif parameter.dim() <= 1 and kind == "weight":
                normal(parameter, 0.1, 1.0)
            elif parameter.dim() <= 1:
                normal(parameter, 0.05)
            elif parameter.dim() in (3, 4) and kind == "weight":
                normal(parameter, (2.0 / parameter[0].numel()) ** 0.5)
            elif any(part in name for part in ("embed", "wte", "wpe", "_token", "relative_", "shared")):
                normal(parameter, 0.05)
            else:  # GPT-2 keeps its matrices transposed; its fan-in is the first dimension.
                fan_in = parameter.shape[0] if ".c_" in name else parameter.shape[-1]
                normal(parameter, fan_in ** -0.5)


def set_statistics(net, example):
    """One run of the net on a batch: each BatchNorm, a frozen one too, takes the mean and variance of what it sees there."""
    def take(norm, arguments):
        values = arguments[0]
        norm.running_mean.copy_(values.mean((0, 2, 3)))
        norm.running_var.copy_(values.var((0, 2, 3)))

    norms = [module for module in net.modules() if hasattr(module, "running_mean")]
    if not norms:
        return
    hooks = [norm.register_forward_pre_hook(take) for norm in norms]
    with torch.no_grad():
        net.eval()(example)
    for hook in hooks:
        hook.remove()


def images(height, width, batch=1):
    """Smooth blobs with some noise, roughly normalised: closer to a picture than white noise is."""
    generator = seeded(batch)
    coarse = torch.randn((batch, 3, height // 16, width // 16), generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=(height, width), mode="bilinear", align_corners=False)
    return smooth + 0.1 * torch.randn(smooth.shape, generator=generator)


def vision(net, seed, height, width, outputs=("logits",), batch=8):
    """A net of images: `batch` is of the one run that sets the statistics of its BatchNorms."""
    net = Picked(net, ["pixel_values"], outputs)
    set_weights(net, seed)
    set_statistics(net, images(height, width, batch))
    return Sample(net, {"pixel_values": images(height, width)}, list(outputs))


def language(net, seed, inputs, outputs):
    """A net of tokens: batch and sequence may change."""
    net = Picked(net, inputs, outputs)
    set_weights(net, seed)
    return Sample(net, inputs, list(outputs), {name: {0: "batch", 1: "sequence"} for name in inputs})


def tokens(count, vocabulary, seed):
    return torch.randint(vocabulary // 30, vocabulary - 2, (1, count), generator=seeded(seed))
