#!/usr/bin/env python3
"""Makes the inputs that tools/models.json describes for a model: the same bytes on every machine.

  tools/model_inputs.py ppocr4-rec -o inputs.npz
"""
import argparse
import json
import pathlib
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Five dots a row, seven rows, dark where 1.
LETTERS = {
    " ": ("00000",) * 7,
    "D": ("11110", "10001", "10001", "10001", "10001", "10001", "11110"),
    "E": ("11111", "10000", "10000", "11110", "10000", "10000", "11111"),
    "H": ("10001", "10001", "10001", "11111", "10001", "10001", "10001"),
    "L": ("10000", "10000", "10000", "10000", "10000", "10000", "11111"),
    "O": ("01110", "10001", "10001", "10001", "10001", "10001", "01110"),
    "R": ("11110", "10001", "10001", "11110", "10100", "10010", "10001"),
    "W": ("10001", "10001", "10001", "10101", "10101", "11011", "10001"),
}


def normal(spec, random):
    return random.standard_normal(spec["shape"]) * spec.get("std", 1.0) + spec.get("mean", 0.0)


def uniform(spec, random):
    return random.random(spec["shape"]) * (spec["hi"] - spec["lo"]) + spec["lo"]


def randint(spec, random):
    """From lo up to, but not, hi."""
    return random.integers(spec["lo"], spec["hi"], spec["shape"])


def const(spec, random):
    return np.full(spec["shape"], spec["value"])


def listed(spec, random):
    return np.array(spec["value"]).reshape(spec["shape"])


def audio(spec, random):
    """Like a voiced sound: twelve harmonics, a slow envelope, some noise."""
    count, rate, pitch = int(np.prod(spec["shape"])), spec.get("sr", 16000), spec.get("f0", 140.0)
    time = np.arange(count) / rate
    tone = sum(np.sin(2 * np.pi * pitch * k * time + k) / k for k in range(1, 13))
    envelope = 0.55 + 0.45 * np.sin(2 * np.pi * 3.0 * time)
    return (tone * envelope * 0.12 + random.standard_normal(count) * 0.004).reshape(spec["shape"])


def scaled(picture, spec):
    """0..1, channels first, brought to the model's range and batch."""
    return np.broadcast_to(np.clip(picture, 0, 1) * spec.get("scale", 1.0) + spec.get("offset", 0.0), spec["shape"])


def image(spec, random):
    """Twelve discs of one colour each on a slow gradient, with a little noise."""
    channels, height, width = spec["shape"][-3:]
    y, x = np.mgrid[0:height, 0:width]
    picture = np.zeros((channels, height, width))
    for _ in range(12):
        top, left, radius = random.random() * height, random.random() * width, (0.05 + 0.2 * random.random()) * max(height, width)
        colour = random.random(channels)
        disc = (y - top) ** 2 + (x - left) ** 2 < radius * radius
        picture = np.where(disc[None], colour[:, None, None], picture)
    picture = picture + 0.25 * (x / width)[None] + random.standard_normal((channels, height, width)) * 0.01
    return scaled(picture, spec)


def image_hwc(spec, random):
    """An image with the channels last."""
    count, height, width, channels = spec["shape"]
    return image(dict(spec, shape=[count, channels, height, width]), random).transpose(0, 2, 3, 1)


def text(spec, random):
    """Dark dot-matrix letters on a light page; `size` is the side of a dot."""
    channels, height, width = spec["shape"][-3:]
    page, size = np.ones((height, width)), spec["size"]
    row, column = spec.get("row", height // 8), spec.get("column", width // 20)
    for place, letter in enumerate(spec["text"]):
        for dy, dots in enumerate(LETTERS[letter]):
            for dx, dot in enumerate(dots):
                y, x = row + dy * size, column + (6 * place + dx) * size
                if dot == "1" and y + size <= height and x + size <= width:
                    page[y:y + size, x:x + size] = 0
    return scaled(page * 0.95 + random.standard_normal((channels, height, width)) * 0.005, spec)


def bytes_ends(spec, random):
    """A text at the start and again at the end of each row, padding between."""
    content = np.frombuffer(spec["text"].encode(), dtype=np.uint8)
    rows = np.full(spec["shape"], spec["pad"])
    rows[..., :len(content)] = content
    rows[..., -len(content):] = content
    return rows


MAKERS = {"normal": normal, "uniform": uniform, "randint": randint, "const": const, "list": listed, "audio": audio, "image": image,
          "image_hwc": image_hwc, "text": text, "bytes_ends": bytes_ends}


def make_inputs(row):
    """The inputs of a row of models.json, by name. Each has a random generator of its own, seeded by model and name."""
    inputs = {}
    for name, spec in row["inputs"].items():
        random = np.random.Generator(np.random.PCG64(zlib.crc32(f"{row['id']}/{name}".encode())))
        made = np.asarray(MAKERS[spec["gen"]](spec, random))
        inputs[name] = np.array(made.astype(spec["dtype"]), order="C", ndmin=0).reshape(spec["shape"])
    return inputs


def load_row(model):
    rows = json.loads((ROOT / "tools" / "models.json").read_text(encoding="utf-8"))
    for row in rows:
        if row["id"] == model:
            return row
    raise SystemExit(f"no model is called '{model}'; there are: {', '.join(row['id'] for row in rows)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-o", "--output", default="inputs.npz")
    options = parser.parse_args()
    np.savez(options.output, **make_inputs(load_row(options.model)))
