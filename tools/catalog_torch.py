"""Platforms that run ATen operators, for tools/make_catalog.py: what each lists, joined with what PyTorch does where nothing is listed."""
import json
import re

from catalog_files import TypeSets

DECOMPOSES = "PyTorch takes it apart into other operators"
BY_OTHERS = "one kernel for all devices, written with other operators"
KERNEL = "a kernel of its own"
STRUCTURED = "a kernel of its own, through the out= form"
# add.out is made by PyTorch's generator for the CPU and CUDA (ufunc_inner_loop in native_functions.yaml), so its dispatch table is empty there.
GENERATED = {"aten::add.Tensor"}
# Registered through oneDNN inside PyTorch, as the notes of the list say: convolution, matmul, addmm, attention.
XPU_ONEDNN = {"aten::convolution_overrideable", "aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::addmv", "aten::addbmm", "aten::tensordot",
              "aten::_scaled_dot_product_fused_attention_overrideable"}


def key_of(entry):
    return f"{entry['op']}.{entry['overload']}" if entry.get("overload") else entry["op"]


class Native:
    """PyTorch's own functions: those that a model calls, without the forms that write in place or into out=."""

    def __init__(self, facts):
        data = json.loads((facts / "pytorch_native.json").read_text())
        self.header = data["header"]
        self.functions = {key_of(entry): entry for entry in data["entries"] if "variant" not in entry and "_backward" not in entry["op"]}
        dtypes = json.loads((facts / "torch_opinfo_dtypes.json").read_text())
        self.dtypes_source, self.dtypes = dtypes["header"]["source"], {}
        for entry in dtypes["entries"]:
            self.dtypes.setdefault(entry["op"], []).append(entry["dtypes"])

    def composite(self, key):
        """How PyTorch runs it on a device without a kernel for it; None if it does not."""
        kind = self.functions.get(key, {}).get("composite", "")
        return DECOMPOSES if kind == "implicit" else BY_OTHERS if kind.startswith("explicit") else None


class Listed:
    """The entries of one platform's list, with the joins that PyTorch's structured functions need."""

    def __init__(self, entries, native):
        self.entries = {key_of(entry): entry for entry in entries}
        self.native = native

    def get(self, key):
        """The entry for a function and how it was found."""
        if key in self.entries:
            return self.entries[key], KERNEL
        if self.native.functions.get(key, {}).get("structured"):
            op, _, overload = key.partition(".")
            for form in (f"{op}.{overload}_out" if overload else f"{op}.out", f"{op}.out"):
                if form in self.entries:
                    return self.entries[form], STRUCTURED
        return None, None


def within(version, ranges):
    """Whether '2.7' is in ['2.1-2.13', '2.15']; ranges of whole releases too."""
    def number(text):
        return tuple(int(part) for part in re.findall(r"\d+", text))
    for each in ranges:
        low, _, high = each.partition("-")
        if number(low) <= number(version) <= number(high or low):
            return True
    return False


def cuda(native, rocm=None):
    exceptions = {entry["op"]: entry for entry in rocm or []}
    for key, entry in native.functions.items():
        has_kernel = "CUDA" in entry.get("dispatch", []) or key in GENERATED
        state, why = ("native", KERNEL) if has_kernel else ("native", native.composite(key)) if native.composite(key) else ("unsupported", "no kernel for it in PyTorch")
        exception = exceptions.get(entry["op"])
        if exception:
            state = "unsupported" if exception["status"] == "unsupported" else "constrained"
            why = exception["constraints"]
        yield key, state, why


def npu(native, listed, release, releases):
    for key in sorted(set(native.functions) | {k for k in listed.entries if k.startswith("npu::") and "_out" not in k}):
        entry, how = listed.get(key)
        since = entry.get("since_release", releases[0]) if entry else None
        if entry and releases.index(since) <= releases.index(release):
            if entry.get("op_api") or entry.get("torch_npu"):
                yield key, "native", how
            elif entry.get("acl_op"):
                yield key, "constrained", "only the old aclop path: kernels are compiled at first use"
            else:
                yield key, "constrained", "for sparse tensors only" if entry.get("sparse") else how
        elif key.startswith("npu::"):  # PyTorch has none that could run instead.
            yield key, "unsupported", f"torch_npu has it from op-plugin {since} on"
        elif native.composite(key):
            yield key, "native", native.composite(key)
        else:
            yield key, "fallback", "torch_npu runs it on the CPU and warns"


def xpu(native, listed, release):
    for key in native.functions:
        entry, how = listed.get(key)
        words = entry.get("constraints", "") if entry else ""
        if key in XPU_ONEDNN:
            yield key, "native", "through oneDNN inside PyTorch"
        elif entry and "CPU" in words:
            yield key, "fallback", words
        elif entry and within(release, entry.get("torch", [])) and "sparse" not in words:
            yield key, "native", how
        elif native.composite(key):
            yield key, "native", native.composite(key)
        else:
            yield key, "unsupported", "PyTorch raises; PYTORCH_ENABLE_XPU_FALLBACK=1 runs it on the CPU instead"


def by_list(native, listed, release, field, otherwise):
    """A list without a word on what is missing: composites run, the rest is not known."""
    for key in native.functions:
        entry, how = listed.get(key)
        if entry and release in entry.get(field, []) and "sparse" not in entry.get("constraints", ""):
            yield key, "native", how
        elif native.composite(key):
            yield key, "native", native.composite(key)
        else:
            yield key, "unknown", otherwise


def torchair(native, listed):
    for key in native.functions:
        entry, _ = listed.get(key)
        entry = entry if entry and key in listed.entries else None
        if entry and entry["status"] == "supported":
            yield key, "native", "a converter of its own"
        elif entry and entry["status"] == "partial":
            yield key, "constrained", entry["constraints"]
        elif native.functions[key].get("decomposition") or native.functions[key].get("composite") == "implicit":
            yield key, "native", "taken apart before the graph is converted"
        elif entry:
            yield key, "unsupported", "its converter is a stub that raises"
        else:
            yield key, "unknown", "no converter is listed"


class Compact:
    """Answers as the files hold them: by operator and overload, [state, number of the reason, number of the element types]."""

    def __init__(self):
        self.reasons, self.types = [], TypeSets()

    def made(self, answers, dtypes=None):
        ops = {}
        for key, state, why in answers:
            op, _, overload = key.partition(".")
            if why not in self.reasons:
                self.reasons.append(why)
            value = [state, self.reasons.index(why)]
            names = dtypes(op) if dtypes else None
            if names:
                value.append(self.types.number(names))
            ops.setdefault(op, {})[overload] = value
        return ops


def opinfo(native, device):
    """Element types that PyTorch's own tests claim for an operator on cuda or rocm, as far as all its APIs agree to them."""
    def of(op):
        found = [each.get(device) or each.get("cuda") or each["cpu"] for each in native.dtypes.get(op, [])]
        return set().union(*found) if found else None
    return of


def read(facts, stem, native):
    data = json.loads((facts / f"{stem}.json").read_text())
    return data["header"], Listed(data["entries"], native), data["entries"]


def platforms(facts):
    native = Native(facts)
    core = native.header["source"]
    made = []

    def family(platform, head, versions, absent, absent_why, more=None):
        """The newest version whole, the older ones as what differs from it. `versions`: (version, answers, dtypes), newest first."""
        newest = None
        for version, answers, dtypes in versions:
            compact = Compact()
            ops = compact.made(answers, dtypes)
            header = {"schema": 1, "platform": platform, "version": version, "title": head["platform"], "vendor": head["vendor"], "runtime": head["runtime"],
                      "described": head["version"], "vocabulary": "aten", "absent": absent, "absent_why": absent_why, **(more or {}),
                      "sources": [head["source"], core] if head["source"] != core else [core], "date": head["source"]["date"], "notes": head["notes"],
                      "licence": head["licence"]}
            whole = {op: {overload: (value[0], compact.reasons[value[1]]) for overload, value in each.items()} for op, each in ops.items()}
            if newest is not None:
                ops = {op: ops[op] for op in ops if whole[op] != newest[1].get(op)}
                header.update({"like": f"{platform}@{newest[0]}"})
            else:
                newest = (version, whole)
            made.append((f"{platform}@{version}", {**header, "reasons": compact.reasons, "types": compact.types.sets}, ops))

    unlisted = "not in the list, which may be incomplete: it falls back to the CPU or raises"
    head = {**native.header, "platform": "NVIDIA GPU, PyTorch CUDA eager", "vendor": "NVIDIA"}
    family("torch-cuda", head, [("2.6.0", cuda(native), opinfo(native, "cuda"))], "unknown", "PyTorch 2.6 has no such function")
    head, _, exceptions = read(facts, "rocm_aten", native)
    family("torch-rocm", head, [("2.6.0", cuda(native, exceptions), opinfo(native, "rocm"))], "unknown", "PyTorch 2.6 has no such function")
    head, listed, _ = read(facts, "ascend_torch_npu", native)
    releases = [each["op_plugin"] for each in head["releases"]]
    family("torch-npu", head, [(release, npu(native, listed, release, releases), None) for release in reversed(releases)], "unknown", "PyTorch 2.6 has no such function")
    head, listed, _ = read(facts, "ascend_torchair", native)
    family("torchair", head, [("2026.6", torchair(native, listed), None)], "unknown", "no converter is listed", {"static_graph": True})
    head, listed, _ = read(facts, "cambricon_torch_mlu", native)
    family("torch-mlu", head, [(v, by_list(native, listed, v, "torch", unlisted), None) for v in ("2.4", "2.3", "2.1")], "unknown", unlisted)
    head, listed, _ = read(facts, "moorethreads_torch_musa", native)
    family("torch-musa", head, [(v, by_list(native, listed, v, "torch_musa", unlisted), None) for v in ("2.7.1", "2.5.0", "2.1.1", "1.3.2")], "unknown", unlisted)
    head, listed, _ = read(facts, "intel_xpu", native)
    family("torch-xpu", head, [(f"2.{v}", xpu(native, listed, f"2.{v}"), None) for v in range(12, 5, -1)], "unknown", "PyTorch 2.6 has no such function")
    rocm = next(header for name, header, _ in made if name == "torch-rocm@2.6.0")
    other = json.loads((facts / "versions_other.json").read_text())["header"]
    hygon = [source for source in other["sources"] if "DTK" in source.get("what", "")]  # The rest is about other vendors.
    made.append(("torch-hygon@2.6.0", {**{key: rocm[key] for key in ("schema", "version", "runtime", "vocabulary", "absent", "absent_why", "licence")},
                 "platform": "torch-hygon", "title": "Hygon DCU, PyTorch on DTK", "vendor": "Hygon", "same_as": "torch-rocm@2.6.0", "date": "2026-04-21",
                 "notes": "Hygon publishes no list of operators. Its DCUs use the ROCm programming model (DTK), so the answers are those of torch-rocm; "
                          "element types may differ.", "sources": [*hygon, *rocm["sources"]]}, {}))
    return made
