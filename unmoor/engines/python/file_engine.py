"""An engine that a user's Python file defines: load(model), and run(inputs, wanted=None), which returns arrays by name."""
import importlib.util
import inspect
import os
import sys
import time

from unmoor_serve import Missing, Wrong, choose, threads_of, versions_of


def load_file(path, functions=("load", "run"), hint="an engine has load(model) and run(inputs, wanted=None)"):
    if not os.path.isfile(path):
        raise Wrong(f"there is no file '{path}'")
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem.isidentifier() and importlib.util.find_spec(stem) is None:
        sys.modules[stem] = None  # A file that is called as the package it needs must not find itself in its place.
    sys.path.append(os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("unmoor_user_engine", path, loader=importlib.machinery.SourceFileLoader("unmoor_user_engine", path))
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise Missing(f"'{path}' needs the Python package {error.name}, which is not installed for {sys.executable}") from error
    for name in functions:
        if not callable(getattr(module, name, None)):
            raise Wrong(f"'{path}' has no function {name}(); {hint}")
    return module


def set_threads(request):
    """For the file to read, before it imports anything: libraries read such variables once."""
    count = str(threads_of(request))
    os.environ["UNMOOR_THREADS"] = count
    if request["threads"]:
        os.environ["OMP_NUM_THREADS"] = count
    else:
        os.environ.setdefault("OMP_NUM_THREADS", count)


class Engine:
    def __init__(self, request):
        choose(request["settings"], {})
        set_threads(request)
        self.module = load_file(request["device"])
        self.shows = "wanted" in inspect.signature(self.module.run).parameters
        self.outputs = request["outputs"]
        self.notes, self.hidden = [], None if self.shows else "its run() takes no 'wanted': it shows outputs only"
        began = time.perf_counter()
        try:
            self.module.load(request["model"])
        except ModuleNotFoundError as error:
            raise Missing(f"'{request['device']}' needs the Python package {error.name}, which is not installed for {sys.executable}") from error
        self.load_ms = (time.perf_counter() - began) * 1e3
        self.values = request["shown"] if self.shows else []
        self.versions = versions_of("numpy", *getattr(self.module, "PACKAGES", ()))

    def call(self, inputs, wanted):
        found = self.module.run(inputs, wanted=wanted) if self.shows and wanted else self.module.run(inputs)
        if not isinstance(found, dict):
            raise Wrong(f"run() must return arrays by name, not {type(found).__name__}")
        return found

    def run(self, inputs, wanted, show):
        found = self.call(inputs, wanted)
        for name in wanted or ():
            if name in found:
                show(name, found[name])
        missing = [name for name in self.outputs if name not in found]
        if missing:
            raise Wrong(f"run() gave no {', '.join(missing)}; it gave {', '.join(found) or 'nothing'}")
        return {name: found[name] for name in self.outputs}

    def prepare(self, inputs):
        return lambda: self.module.run(inputs)
