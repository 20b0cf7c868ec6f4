"""Finds an engine in this Python and says what it is. Also a program: python3 probe.py ort|torch, which doctor's collector runs."""
import importlib.metadata
import json
import platform
import sys


class Missing(Exception):
    """What has to be there for an engine to run."""


class Unloadable(Missing):
    """What is there and does not load."""


def need(package, install=None):
    """Imports a package, or says how to get it."""
    try:
        return __import__(package)
    except ModuleNotFoundError as error:
        raise Missing(f"the Python package {error.name} is not installed for {sys.executable}; install it with: "
                      f"{sys.executable} -m pip install {install or error.name}") from error
    except (ImportError, OSError) as error:
        raise Unloadable(f"the Python package {package} of {sys.executable} does not load: {error}") from error


def versions_of(*packages):
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def short(provider):
    return provider.removesuffix("ExecutionProvider").lower()


def probe_ort():
    runtime = need("onnxruntime")
    found = [short(each) for each in runtime.get_available_providers() if short(each) != "azure"]  # Azure's runs elsewhere.
    return {"version": runtime.__version__, "runners": [f"ort:{each}" for each in found], "versions": versions_of("numpy")}


PLUGINS = {"npu": "torch_npu", "mlu": "torch_mlu", "musa": "torch_musa", "hpu": "habana_frameworks.torch"}  # What brings a device, beside torch.
KINDS = ("cpu", "cuda", "xpu", "mps", *PLUGINS)


def backend(torch, kind):
    return getattr(torch, kind, None) or getattr(torch.backends, kind, None)


def probe_torch():
    torch = need("torch")
    here = ["cpu"]
    for kind in KINDS[1:]:
        module = backend(torch, kind)
        if module is not None and module.is_available():
            count = module.device_count() if hasattr(module, "device_count") else 1
            here += [f"{kind}:{i}" for i in range(count)]
    extra = {"cuda": torch.version.cuda, "hip": torch.version.hip}
    return {"version": torch.__version__, "runners": [f"torch:{each}" for each in here],
            "versions": {**versions_of("numpy"), **{key: value for key, value in extra.items() if value}}}


def probe(engine):
    need("numpy")
    return {"ort": probe_ort, "torch": probe_torch}[engine]()


def main(engine):
    try:
        found = {"state": "ready", **probe(engine)}
    except Missing as error:
        found = {"state": "broken" if isinstance(error, Unloadable) else "absent", "reason": str(error)}
    except BaseException as error:  # Whatever an engine raises is an answer.
        found = {"state": "broken", "reason": f"{type(error).__name__}: {error}"}
    sys.stdout.write("\nunmoor-engine " + json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
