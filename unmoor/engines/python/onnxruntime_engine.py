"""ONNX Runtime on any of its execution providers."""
import ctypes
import os
import time

from unmoor_onnx_file import OnnxFile
from unmoor_probe import short
from unmoor_serve import UNLIKE_NUMPY, Bits, Missing, choose, need, threads_of, versions_of

LEVELS = {"all": "ORT_ENABLE_ALL", "extended": "ORT_ENABLE_EXTENDED", "basic": "ORT_ENABLE_BASIC", "on": "ORT_ENABLE_ALL", "off": "ORT_DISABLE_ALL"}
# The package that brings a provider, where it is another than onnxruntime.
PACKAGES = {"cuda": "onnxruntime-gpu", "tensorrt": "onnxruntime-gpu", "dml": "onnxruntime-directml", "openvino": "onnxruntime-openvino",
            "qnn": "onnxruntime-qnn", "rocm": "onnxruntime-rocm", "migraphx": "onnxruntime-migraphx", "cann": "onnxruntime-cann"}
# Types of session.get_outputs() that its arrays do not have, with ONNX's number of the type.
WITHOUT_ARRAYS = {"tensor(bfloat16)": ("bfloat16", 16), "tensor(float8e4m3fn)": ("float8e4m3fn", 17), "tensor(float8e4m3fnuz)": ("float8e4m3fnuz", 18),
                  "tensor(float8e5m2)": ("float8e5m2", 19), "tensor(float8e5m2fnuz)": ("float8e5m2fnuz", 20)}


def provider_for(runtime, kind):
    found = {short(each): each for each in runtime.get_available_providers()}
    if kind in found:
        return found[kind]
    package = PACKAGES.get(kind)
    raise Missing(f"onnxruntime {runtime.__version__} here has no execution provider '{kind}'; it has: {', '.join(sorted(found))}"
                  + (f"; '{kind}' comes with the package {package}" if package else ""))


class Engine:
    def __init__(self, request):
        self.runtime = need("onnxruntime", PACKAGES.get(request["device"].split(":")[0]))
        self.request, self.shown, self.notes = request, None, []
        self.settings = choose(request["settings"], {"optimize": ("all", "on", "extended", "basic", "off")})
        kind, _, index = request["device"].partition(":")
        self.provider = provider_for(self.runtime, kind)
        options = {"device_id": index} if index and kind != "cpu" else {}
        self.providers = [(self.provider, options)] + ([] if kind == "cpu" else ["CPUExecutionProvider"])
        began = time.perf_counter()
        self.plain = self.session(request["model"])
        self.load_ms = (time.perf_counter() - began) * 1e3
        self.versions = {**versions_of("numpy"), "onnxruntime": self.runtime.__version__, "provider": self.provider}
        self.file = OnnxFile(request["model"])
        candidates = set(request["shown"])
        self.values = [name for name in self.file.value_names() if name in candidates]

    def session(self, model):
        options = self.runtime.SessionOptions()
        options.graph_optimization_level = getattr(self.runtime.GraphOptimizationLevel, LEVELS[self.settings["optimize"]])
        options.intra_op_num_threads = threads_of(self.request)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        if isinstance(model, bytes):
            options.add_session_config_entry("session.model_external_initializers_file_folder_path",
                                             os.path.dirname(os.path.abspath(self.request["model"])))
        if self.request["forbid"] and len(self.providers) > 1:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        session = self.runtime.InferenceSession(model, options, providers=self.providers)
        if self.provider not in session.get_providers():  # It goes on without a provider that it cannot load.
            raise Missing(f"ONNX Runtime could not start {self.provider} and would run on {', '.join(session.get_providers())} instead; "
                          "its driver or libraries are missing, or of other versions than it was built for")
        return session

    def run(self, inputs, wanted, show):
        if not wanted:
            return self.call(self.plain, inputs, None)
        if self.shown is None:
            self.shown = self.session(self.file.showing(self.values))
            self.notes = [f"ONNX Runtime shows {len(self.values)} values as further outputs of the model: it may fuse less than without"]
        names = [each.name for each in self.plain.get_outputs()]
        asked = [name for name in self.values if name in set(wanted)]
        found = self.call(self.shown, inputs, list(dict.fromkeys(asked + names)))
        for name in asked:
            show(name, found[name] if name in names else found.pop(name))
        return {name: found[name] for name in names}

    def prepare(self, inputs):
        if self.needs_values(self.plain, None):
            values = self.as_values(self.plain, inputs)
            return lambda: self.plain.run_with_ort_values(None, values)
        return lambda: self.plain.run(None, inputs)

    def call(self, session, inputs, names):
        names = names or [each.name for each in session.get_outputs()]
        if not self.needs_values(session, names):
            return dict(zip(names, session.run(names, inputs)))
        types = {each.name: each.type for each in session.get_outputs()}
        answers = session.run_with_ort_values(names, self.as_values(session, inputs))
        return {name: self.from_value(answer, types[name]) for name, answer in zip(names, answers)}

    def needs_values(self, session, names):
        """Whether some input or output has a type that NumPy lacks."""
        outputs = [each for each in session.get_outputs() if names is None or each.name in names]
        return any(each.type in WITHOUT_ARRAYS for each in [*session.get_inputs(), *outputs])

    def as_values(self, session, inputs):
        types = {each.name: each.type for each in session.get_inputs()}
        make = self.runtime.OrtValue
        return {name: make.ortvalue_from_numpy_with_onnx_type(each.array, WITHOUT_ARRAYS[types[name]][1]) if isinstance(each, Bits)
                else make.ortvalue_from_numpy(each) for name, each in inputs.items()}

    @staticmethod
    def from_value(value, kind):
        import numpy as np
        if kind not in WITHOUT_ARRAYS:
            return value.numpy()
        dtype = WITHOUT_ARRAYS[kind][0]
        plain = np.dtype(UNLIKE_NUMPY[dtype])
        shape = value.shape()
        data = ctypes.string_at(value.data_ptr(), int(np.prod(shape)) * plain.itemsize)
        return Bits(dtype, np.frombuffer(data, plain).reshape(shape))
