"""Platforms that take ONNX operators, for tools/make_catalog.py."""
import json

from catalog_files import TypeSets, spelled
from catalog_limits import MEASURED_REFUSALS, is_never, limits_of, measured_limits

# Platform id: file of facts, how the version is spelled, what an operator that is not listed means, and further header keys.
NO_KERNEL = "no kernel in the list, which is complete"
NOT_LISTED = "not in the list, which may be incomplete"
CPU = {"fallback": "ort-cpu"}
PLATFORMS = [
    ("ort-cpu", "ort_cpu", "1.32.0", "unsupported", {"runs_functions": True}),
    ("ort-cuda", "ort_cuda", "1.25.0", "unsupported", {**CPU, "runs_functions": True}),
    ("ort-dml", "ort_dml", "1.25.0", "unsupported", {**CPU, "runs_functions": True}),
    ("ort-rocm", "ort_rocm", "1.23.0", "unsupported", {**CPU, "runs_functions": True}),
    ("ort-cann", "ort_cann", "1.25.0", "unsupported", {**CPU, "runs_functions": True}),
    ("ort-webgpu", "ort_webgpu", "1.25.0", "unsupported", {**CPU, "runs_functions": True}),
    ("ort-xnnpack", "ort_xnnpack", "1.25.0", "unsupported", {**CPU, "runs_functions": True}),
    ("ort-migraphx", "ort_migraphx_ep", "1.25.0", "unsupported", CPU),
    ("ort-openvino", "ort_openvino_ep", "1.25.0", "unsupported", CPU),
    ("ort-coreml", "ort_coreml_mlprogram", "1.25.0", "unsupported", CPU),
    ("ort-coreml", "ort_coreml_nn", "1.25.0-neuralnetwork", "unsupported", CPU),
    ("ort-qnn", "ort_qnn", "1.25.0", "unsupported", {**CPU, "static_shapes": True}),
    ("ort-nnapi", "ort_nnapi", "1.25.0", "unsupported", CPU),
    ("ort-vsinpu", "ort_vsinpu", "1.25.0", "unsupported", {**CPU, "static_shapes": True}),
    ("tensorrt", "tensorrt_10_15", "10.15", "unsupported", {}),
    ("tensorrt", "tensorrt_10_1", "10.1", "unsupported", {}),
    ("openvino", "openvino_onnx", "2026", "unknown", {}),
    ("migraphx", "amd_migraphx", "2.16", "unknown", {"opset_claimed": 19}),
    ("mnn", "mnn_onnx", "2026.8", "unknown", {}),
    ("ncnn", "ncnn_onnx", "2026.7", "unknown", {}),
    ("ascend-atc", "ascend_atc_onnx_doc", "5.0.4", "unknown", {"opset_claimed": 17}),
]
# The filters of these providers are lists in their source: what is not in them is not claimed, and ONNX Runtime's cpu takes it.
CLAIMS_LISTED = {"ort-migraphx", "ort-openvino", "ort-coreml", "ort-qnn", "ort-nnapi", "ort-vsinpu", "ort-webgpu", "ort-xnnpack", "ort-cann", "ort-rocm"}
# ONNX Runtime takes an open-ended kernel only for the operator's version that it was registered with (KernelRegistry::VerifyKernelDef).
EXACT = {"ort-cpu", "ort-cuda", "ort-dml", "ort-rocm", "ort-cann", "ort-webgpu", "ort-xnnpack"}


# What some lists say where a domain belongs. Operators of vendors and of old exporters stand in the domain of ONNX itself in models.
PROSE = {"com.microsoft or other", "vendor extension", "exporter or vendor extension", "legacy"}
MICROSOFT = "com.microsoft"


class Domains:
    """The domain of every entry, also where a list has none or words in its place: what ONNX defines is ONNX's; what another list has as
    ONNX Runtime's own, and no list as ONNX's, is ONNX Runtime's; ATen is the exporter's of PyTorch."""

    def __init__(self, facts, standard):
        self.standard, self.microsoft, onnx = standard, set(), set()
        for _, stem, *_ in PLATFORMS:
            for entry in json.loads((facts / f"{stem}.json").read_text())["entries"]:
                if entry.get("domain") == MICROSOFT:
                    self.microsoft.add(entry["op"])
                elif stem in ("ort_cpu", "ort_cuda") and not entry.get("domain"):  # Lists of a registry, with every domain.
                    onnx.add(entry["op"])
        self.microsoft -= onnx

    def name(self, entry):
        op, domain = entry["op"], entry.get("domain", "")
        if domain == "ai.onnx" or op in self.standard and domain in PROSE | {""}:
            return op
        if domain in PROSE | {""}:
            domain = MICROSOFT if op in self.microsoft else "org.pytorch.aten" if op == "ATen" else ""
        if " " in domain:
            raise SystemExit(f"'{domain}' is no domain, of {op}: say in PROSE what it means")
        return f"{domain}:{op}" if domain else op


def name_of(entry):
    """The name of an entry of ONNX's own tables."""
    domain = entry.get("domain", "")
    return f"{domain}:{entry['op']}" if domain not in ("", "ai.onnx") else entry["op"]


class Schemas:
    """Every version of every standard operator."""

    def __init__(self, facts):
        data = json.loads((facts / "onnx_opset.json").read_text())
        self.header, self.sets, self.by_name = data["header"], data["type_sets"], {}
        for entry in data["entries"]:
            self.by_name.setdefault(name_of(entry), []).append(entry)
        for entries in self.by_name.values():
            entries.sort(key=lambda entry: entry["since_opset"])

    def at(self, name, opset):
        found = [entry for entry in self.by_name.get(name, []) if entry["since_opset"] <= opset]
        return found[-1] if found else None

    def next_version(self, name, opset):
        return next((entry["since_opset"] for entry in self.by_name.get(name, []) if entry["since_opset"] > opset), None)

    def allowed(self, schema, constraint):
        types = schema.get("types", {})
        return {spelled(each) for each in self.sets[types[constraint]]} if constraint in types else {spelled(constraint)}


def constraint_list(ports):
    """["X:T", "*rest:V"] as ["T", "*V"]: the constraint of each, a star before the last if it repeats."""
    return [("*" if port.startswith("*") else "") + port.split(":", 1)[1] for port in ports]


def signature(entry, schema):
    if "io" in entry:
        inputs, outputs = constraint_list(entry["io"]["in"]), constraint_list(entry["io"]["out"])
        if schema is not None:  # Which ports repeat is in the schema alone.
            for ports, ours in ((schema["in"], inputs), (schema["out"], outputs)):
                if ports and ports[-1].startswith("*") and len(ours) == len(ports):
                    ours[-1] = "*" + ours[-1].lstrip("*")
        return inputs, outputs
    return (constraint_list(schema["in"]), constraint_list(schema["out"])) if schema is not None else ([], [])


def main_constraint(schemas, schema, names):
    """The constraint that a plain list of element types is about: the first whose types it meets."""
    wanted = {spelled(name) for name in names}
    for constraint in [each.lstrip("*") for each in constraint_list(schema["in"]) + constraint_list(schema["out"])]:
        if constraint in schema.get("types", {}) and schemas.allowed(schema, constraint) & wanted:
            return constraint
    return None


def kernel(name, entry, platform, schemas, types):
    """One kernel of a platform as the catalogue holds it; None if it can serve no version of the operator."""
    since, until = entry["since_opset"], entry.get("until_opset")
    versions = [each["since_opset"] for each in schemas.by_name.get(name, [])]
    if platform in EXACT and versions:
        if until is None:
            if since not in versions and platform in ("ort-cpu", "ort-cuda"):
                return None
            following = schemas.next_version(name, since)
            until = following - 1 if following else None
    schema = schemas.at(name, since) or (schemas.by_name[name][0] if name in schemas.by_name else None)
    inputs, outputs = signature(entry, schema)
    dtypes = entry.get("dtypes", {})
    if isinstance(dtypes, list):
        main = main_constraint(schemas, schema, dtypes) if schema is not None else None
        dtypes = {main: dtypes} if main else {}
    known = {constraint.lstrip("*") for constraint in inputs + outputs}
    dtypes = {constraint: types.number(names) for constraint, names in dtypes.items() if constraint in known}
    limits = limits_of(entry) + (measured_limits(name) if platform == "ort-cpu" else [])
    made = {"since": since, "until": until, "dtypes": dtypes, "in": inputs if dtypes else None, "out": outputs if dtypes else None,
            "limits": limits, "state": "unsupported" if entry["status"] == "unsupported" or is_never(entry) else None,
            "why": entry["constraints"] if is_never(entry) else None}
    if entry["status"] == "partial" and not limits and "constraints" not in entry:
        made["limits"] = [{"text": "supported in part"}]
    return {key: value for key, value in made.items() if value not in (None, {}, [])}


def standard(facts, schemas):
    """What ONNX itself says of its operators, with this project's categories."""
    data = json.loads((facts / "onnx_categories.json").read_text())
    ops = {}
    for entry in data["entries"]:
        name = name_of(entry)
        versions = schemas.by_name.get(name, [])
        made = {"category": entry["category"], "difficulty": entry["difficulty"], "versions": [each["since_opset"] for each in versions],
                "functions": [each["since_opset"] for each in versions if each.get("function")], "decomposes_to": entry.get("decomposes_to"),
                "decomposition_source": entry.get("decomposition_source"), "note": entry.get("note")}
        ops[name] = {key: value for key, value in made.items() if value not in (None, [], "")}
    header = {"schema": 1, "platform": "onnx", "version": "1.23.2", "title": data["header"]["platform"], "vendor": data["header"]["vendor"],
              "vocabulary": "standard", "opset_max": 28, "sources": [data["header"]["source"]], "date": data["header"]["source"]["date"],
              "notes": data["header"]["notes"], "licence": data["header"]["licence"]}
    return "onnx", header, ops


def platforms(facts):
    schemas = Schemas(facts)
    domains = Domains(facts, schemas.by_name)
    made = [standard(facts, schemas)]
    for platform, stem, version, absent, more in PLATFORMS:
        data = json.loads((facts / f"{stem}.json").read_text())
        head, types, ops = data["header"], TypeSets(), {}
        for entry in data["entries"]:
            if entry.get("domain") == "com.ms.internal.nhwc":  # Made by ONNX Runtime itself; no model has it.
                continue
            name = domains.name(entry)
            each = kernel(name, entry, platform, schemas, types)
            if each is not None:
                ops.setdefault(name, []).append(each)
        if platform == "ort-cpu":
            for name, refusal in MEASURED_REFUSALS.items():
                ops.setdefault(name, []).append(refusal)
        source = head["source"]
        sources = [source]
        if platform == "ort-cpu":
            sources.append(json.loads((facts / "measured_ort_cpu.json").read_text())["header"]["source"])
        why = NO_KERNEL if absent == "unsupported" else NOT_LISTED
        if platform in CLAIMS_LISTED:
            why = "the provider does not claim it"
        header = {"schema": 1, "platform": platform, "version": version, "title": head["platform"], "vendor": head["vendor"], "runtime": head["runtime"],
                  "described": head["version"], "vocabulary": "onnx", "absent": absent, "absent_why": why, "opset_min": head.get("opset_min"),
                  "opset_max": head.get("opset_max") if stem.startswith("tensorrt") else None, **more, "sources": sources,
                  "date": str(source.get("date", "")), "notes": head["notes"], "licence": head["licence"], "types": types.sets}
        made.append((f"{platform}@{version}", header, ops))
    return made
