"""Answers Unmoor's requests: opens an engine, runs it, shows its values. Values cross as unmoor/runtime/wire.cpp packs them."""
import os
import sys
import time
import traceback

from unmoor_probe import Missing, Unloadable, need, probe, versions_of

# The bits of types that NumPy lacks travel as unsigned integers of their width.
UNLIKE_NUMPY = {"bfloat16": "uint16", "float8e4m3fn": "uint8", "float8e4m3fnuz": "uint8", "float8e5m2": "uint8", "float8e5m2fnuz": "uint8"}
PLAIN = {"float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "complex64", "complex128"}


class Wrong(Exception):
    """What the user asked for makes no sense."""


class Bits:
    """A tensor of a type that NumPy lacks: its name and its bits."""

    def __init__(self, dtype, array):
        self.dtype, self.array = dtype, array


def strings(array):
    parts = []
    for text in array.reshape(-1):
        data = text if isinstance(text, bytes) else str(text).encode(errors="surrogateescape")
        parts.append(len(data).to_bytes(8, "little") + data)
    return b"".join(parts)


class Packer:
    """Values as JSON, and the bytes that it points into."""

    def __init__(self):
        self.parts, self.at = [], 0

    def tensor(self, dtype, shape, data):
        entry = {"dtype": dtype, "shape": list(shape), "at": self.at, "size": data.nbytes}
        self.parts.append(data)
        self.at += data.nbytes
        return entry

    def pack(self, value):
        import numpy as np
        if value is None:
            return None
        if isinstance(value, dict):
            keys = np.array(list(value), dtype=object if any(isinstance(key, str) for key in value) else np.int64)
            return {"keys": self.pack(keys), "values": [self.pack(np.asarray(each)) for each in value.values()]}
        if isinstance(value, (list, tuple)):
            return {"items": [self.pack(each) for each in value]}
        dtype = value.dtype if isinstance(value, Bits) else None
        array = np.asarray(value.array if isinstance(value, Bits) else value)
        if array.dtype.kind in "OUS":
            return self.tensor("string", array.shape, memoryview(strings(array)))
        dtype = dtype or str(array.dtype)
        if dtype not in PLAIN and dtype not in UNLIKE_NUMPY:
            raise TypeError(f"a value of the type {dtype} cannot be shown")
        data = np.ascontiguousarray(array).reshape(-1)
        return self.tensor(dtype, array.shape, memoryview(data.view(np.uint8)))

    def named(self, values):
        return {"names": list(values), "values": [self.pack(each) for each in values.values()]}


def unpack(entry, payload):
    import numpy as np
    if entry is None:
        return None
    if "items" in entry:
        return [unpack(each, payload) for each in entry["items"]]
    if "keys" in entry:
        return dict(zip(unpack(entry["keys"], payload).tolist(), [unpack(each, payload) for each in entry["values"]]))
    dtype, at, size = entry["dtype"], entry["at"], entry["size"]
    if dtype == "string":
        texts = []
        while len(texts) < int(np.prod(entry["shape"])):
            length = int.from_bytes(payload[at:at + 8], "little")
            texts.append(bytes(payload[at + 8:at + 8 + length]).decode(errors="surrogateescape"))
            at += 8 + length
        return np.array(texts, dtype=object).reshape(entry["shape"])
    plain = UNLIKE_NUMPY.get(dtype, dtype)
    if plain not in PLAIN:
        raise TypeError(f"an input of the type {dtype} cannot be given to Python")
    # A copy: aligned, and writable, which PyTorch wants.
    array = np.frombuffer(payload, np.dtype(plain), offset=at, count=size // np.dtype(plain).itemsize).reshape(entry["shape"]).copy()
    return Bits(dtype, array) if dtype in UNLIKE_NUMPY else array


def named(packed, payload):
    return {name: unpack(each, payload) for name, each in zip(packed["names"], packed["values"])}


def threads_of(request):
    return request["threads"] or len(os.sched_getaffinity(0))


def choose(settings, known):
    """Settings against what an engine knows: {key: (first allowed is the default, …)}, or a function that reads the text."""
    for key in settings:
        if key not in known:
            raise Wrong(f"there is no setting '{key}'; known are: {', '.join(sorted(known))}")
    chosen = {}
    for key, allowed in known.items():
        text = settings.get(key)
        if callable(allowed):
            chosen[key] = None if text is None else allowed(text)
        elif text is not None and text not in allowed:
            raise Wrong(f"the setting {key} is one of {', '.join(allowed)}, not '{text}'")
        else:
            chosen[key] = text or allowed[0]
    return chosen


def peak_bytes():
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def time_runs(run, count, seconds):
    times, start = [], time.perf_counter()
    while len(times) < count or time.perf_counter() - start < seconds:
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1e3)
    return times


def engine_module(name):
    return sys.modules["unmoor_" + {"ort": "onnxruntime_engine", "torch": "torch_engine", "py": "file_engine"}[name]]


class Server:
    def __init__(self, channel):
        self.channel, self.engine, self.samples = channel, None, None

    def probe(self, head, payload):
        return probe(head["engine"])

    def open(self, head, payload):
        need("numpy")
        began = time.perf_counter()
        self.engine = engine_module(head["engine"]).Engine(head)
        return {"load_ms": self.engine.load_ms if hasattr(self.engine, "load_ms") else (time.perf_counter() - began) * 1e3,
                "versions": self.engine.versions, "values": self.engine.values, "notes": self.engine.notes,
                "unmatched": getattr(self.engine, "unmatched", [])}

    def run(self, head, payload):
        outputs = self.engine.run(named(head["inputs"], payload), head["wanted"], self.show)
        packer = Packer()
        hidden = getattr(self.engine, "hidden", None)  # Why it shows no values: of interest to who wants some.
        notes = [*self.engine.notes, hidden] if hidden and head["watched"] else self.engine.notes
        return {"outputs": packer.named(outputs), "notes": notes}, packer.parts

    def show(self, name, value):
        packer = Packer()
        self.channel.send({"event": "value", "name": name, "data": packer.pack(value)}, packer.parts)

    def time(self, head, payload):
        return {"times": time_runs(self.engine.prepare(named(head["inputs"], payload)), head["count"], head["seconds"])}

    def match(self, head, payload):
        return self.engine.match(head, named(head["inputs"], payload), named(head["known"], payload))

    def script_names(self, head, payload):
        return {"names": engine_module("torch").script_names(head["model"])}

    def open_samples(self, head, payload):
        need("numpy")
        self.samples = sys.modules["unmoor_samples"].Samples(head["file"])
        return {}

    def next_sample(self, head, payload):
        sample = self.samples.next()
        if sample is None:
            return {}
        packer = Packer()
        return {"sample": packer.named(sample)}, packer.parts

    def stats(self, head, payload):
        return {"peak_bytes": peak_bytes()}

    def answer(self, head, payload):
        try:
            answer = getattr(self, head["do"])(head, payload)
            reply, parts = answer if isinstance(answer, tuple) else (answer, [])
            self.channel.send({"ok": True, **reply}, parts)
        except Missing as error:
            self.channel.send({"ok": False, "kind": "broken" if isinstance(error, Unloadable) else "missing", "text": str(error)})
        except Wrong as error:
            self.fail("wrong", error)
        except MemoryError as error:
            self.fail("memory", error)
        except BaseException as error:  # Whatever an engine raises, SystemExit included, is a result.
            self.fail("failure", error)

    def fail(self, kind, error):
        text = str(error) or type(error).__name__
        if kind == "failure" and isinstance(error, (AttributeError, ImportError, KeyError, NameError, SyntaxError, SystemExit, TypeError)):
            text = f"{type(error).__name__}: {text}{place_of(error)}"
        self.channel.send({"ok": False, "kind": kind, "text": text})


def place_of(error):
    """The last line outside of Unmoor's own modules and of packages, where the user can do something."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("unmoor/") and "site-packages" not in each.filename]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def serve(channel):
    server = Server(channel)
    while True:
        server.answer(*channel.receive())
