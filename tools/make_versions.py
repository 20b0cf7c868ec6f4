#!/usr/bin/env python3
"""Writes data/catalog/versions from a folder of collected facts about which versions fit together.

  tools/make_versions.py FOLDER [OUTPUT]

Users do not need it: its output is part of the tree."""
import json
import pathlib
import re
import sys

ANY = [[None, None]]


def exactly(*versions):
    """Ranges of versions that start as these do; 25.2.X is 25.2."""
    return [[each, each] for each in (re.sub(r"\.[Xx]$", "", version) for version in versions)]


def at_least(version):
    return [[version, None]]


def span(text):
    """'2.6-2.11', '1.27+', '2.8', '10.x'."""
    if text.endswith("+"):
        return [[text[:-1], None]]
    first, _, last = text.partition("-")
    return [[re.sub(r"\.x$", "", first), re.sub(r"\.x$", "", last or first)]]


def source_text(source, *further):
    parts = [str(source[key]) for key in ("repo", "what", "path", "commit", *further) if source.get(key)]
    return ", ".join(part[:10] if re.fullmatch(r"[0-9a-f]{40}", part) else part for part in parts)


class Stack:
    """One vendor's rules. When a's version is one of `when`, b's must be one of `fits`; otherwise it does not fit, or nobody knows."""

    def __init__(self, name, title, header):
        self.name, self.title, self.header, self.rules = name, title, header, []
        self.sources = [source_text(each) for each in header["sources"]]

    def rule(self, a, when, b, fits, source, otherwise="does not", date=None, **more):
        """`source`: its number in the header, or its words, with a date of their own."""
        if isinstance(source, int):
            date = self.header["sources"][source].get("date", "undated")
            source = self.sources[source]
        self.rules.append({"a": a, "when": when, "b": b, "fits": fits, "otherwise": otherwise, "source": source, "date": date, **more})

    def write(self, folder):
        head = {"schema": 1, "stack": self.name, "title": self.title, "sources": [source_text(each, "date") for each in self.header["sources"]],
                "notes": self.header["notes"], "licence": self.header["licence"]}
        lines = [f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
        rules = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in self.rules]
        (folder / f"{self.name}.json").write_text("{" + ",\n".join(lines) + ',\n"rules":[\n' + ",\n".join(rules) + "\n]}\n")


DRIVER_NOTE = ("the CUDA version that nvidia-smi shows is the newest that the driver can run; the runtime's is the one that the program was built "
               "for, and may be older, or newer of the same major")


COMPILER_NOTE = "its compiler makes no code for this processor; code for an older one may still run as PTX, compiled by the driver"


def pythons(row):
    """Those that a release of torch takes, what it calls experimental included; 3.13t is another build of 3.13."""
    experimental = re.findall(r"\d+\.\d+\b", row.get("python_experimental", ""))
    return [[row["python_min"], row["python_max"]], *exactly(*experimental)]


def cuda(facts):
    stack = Stack("cuda", "NVIDIA CUDA", facts["header"])
    for a in ("cuda runtime", "cuda toolkit"):
        for row in facts["minor_version_compatibility"]:
            stack.rule(a, exactly(str(row["cuda_major"])), "nvidia driver", at_least(row.get("note") or row["linux_driver_min"]), 2, note=DRIVER_NOTE)
        for row in facts["toolkit_driver"]:
            if row["cuda"].startswith("10."):
                stack.rule(a, exactly(row["cuda"]), "nvidia driver", at_least(row["linux_driver_min"]), 0, note=DRIVER_NOTE)
    for row in facts["toolkit_architectures"]:
        stack.rule("cuda toolkit", span(row["cuda"]), "nvidia gpu", [[row["sm_min"], row["sm_max"]]], 0, note=COMPILER_NOTE)
    for row in facts["torch_releases"]:
        torch = exactly(row["torch"])
        stack.rule("torch", torch, "python", pythons(row), 3)
        stack.rule("torch", torch, "cuda runtime", exactly(*row["cuda_stable"], *row["cuda_experimental"]), 3, "unknown")
    for row in facts["torch_wheel_architectures"]:
        if "linux_x86_64" in row["platform"]:
            gpus = [[sm, sm.split(".")[0]] for sm in row["sm"]]  # Code for sm_XY runs on the same major with a minor of Y or more.
            if "some builds" not in row.get("ptx", "some builds"):
                gpus.append([row["ptx"].split()[0], None])
            for version in row["cuda"].split(","):
                stack.rule("torch", span(row["torch"]), "nvidia gpu", gpus, 4, "unknown" if "some builds" in row.get("ptx", "") else "does not",
                           given={"cuda runtime": exactly(version)})
    for row in facts["onnxruntime_gpu"]:
        cuda_version = re.match(r"\d+(\.\d+)*", row["cuda"]).group(0)
        major = cuda_version.split(".")[0]
        package = span(row["onnxruntime_gpu"])
        stack.rule("onnxruntime-gpu", package, "cuda runtime", exactly(major if int(major) > 10 else cuda_version), 5)
        stack.rule("onnxruntime-gpu", package, "cudnn", exactly(re.match(r"\d+", row["cudnn"]).group(0)), 5)
    return stack


def rocm(facts):
    stack = Stack("rocm", "AMD ROCm", facts["header"])
    for row in facts["rocm"]:
        source = 1 if row["rocm"].startswith("7") else 0
        stack.rule("rocm", exactly(row["rocm"]), "amd gpu", exactly(*row["gfx"]), source)
        stack.rule("rocm", exactly(row["rocm"]), "torch", exactly(*row["torch"]), source, "unknown")
    for row in facts["torch_wheel_rocm"]:
        stack.rule("torch", exactly(row["torch"]), "rocm of torch", exactly(row["rocm"]), 3, "unknown")
    for row in facts["torch_wheel_gfx"]:
        stack.rule("rocm of torch", span(row["rocm"]), "amd gpu", exactly(*row["gfx"]), 2, "unknown")
    return stack


def ascend(facts):
    stack = Stack("ascend", "Huawei Ascend CANN", facts["header"])
    for row in facts["torch_npu"]:
        stack.rule("torch-npu", [row["torch_npu"]], "torch", exactly(row["torch"]), 0)
        release = row["branch"].rpartition("-")[2]
        cross = [each["cann_compatible"] for each in facts["extension_cann_cross"] if each["ascend_extension_for_pytorch"] == release]
        stack.rule("torch-npu", [row["torch_npu"]], "cann", exactly(row["cann"], *(cross[0] if cross else [])), 0)
    for row in facts["torch_python"]:
        stack.rule("torch", exactly(row["torch"]), "python", exactly(*row["python"]), 0, given={"torch-npu": ANY})
    for row in facts["cann_driver"]:
        matched = [row["hdk_matched"]] if "hdk_matched" in row else []
        stack.rule("cann", exactly(row["cann"]), "ascend driver", exactly(*matched, *row.get("hdk_compatible", [])), row["source"], "unknown", "2026-11",
                   refused=exactly(*row.get("hdk_incompatible", [])))
    return stack


def cambricon(facts):
    stack = Stack("cambricon", "Cambricon MLU", facts["header"])
    for version in sorted({row["torch_mlu"] for row in facts["torch_mlu"]}):
        fits = [row["torch"] for row in facts["torch_mlu"] if row["torch_mlu"] == version]
        stack.rule("torch-mlu", exactly(version), "torch", exactly(*fits), 0)
    return stack


def musa(facts):
    stack = Stack("musa", "Moore Threads MUSA", facts["header"])
    for row in facts["torch_musa"]:
        source = row.get("source", stack.sources[0])
        stack.rule("torch-musa", [row["torch_musa"]], "torch", exactly(row["torch"]), source, date=row["date"])
        if "python" in row:
            stack.rule("torch-musa", [row["torch_musa"]], "python", exactly(*row["python"]), source, date=row["date"])
    return stack


def intel(facts):
    stack = Stack("intel", "Intel XPU", facts["header"])
    source = next(number for number, each in enumerate(facts["header"]["sources"]) if each.get("repo") == "intel/torch-xpu-ops")
    for row in facts["intel_xpu"]:  # Which GPUs a release takes is told nowhere.
        stack.rule("torch", exactly(row["torch"]), "intel gpu", [], f"{stack.sources[source]}, {row['torch_xpu_ops_branch']}", "unknown",
                   date=facts["header"]["sources"][source]["date"])
    return stack


STACKS = {"cuda": cuda, "rocm": rocm, "ascend": ascend, "mlu": cambricon, "musa": musa, "other": intel}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    facts = pathlib.Path(sys.argv[1])
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else pathlib.Path(__file__).resolve().parent.parent / "data" / "catalog" / "versions"
    output.mkdir(parents=True, exist_ok=True)
    for name, make in STACKS.items():
        stack = make(json.loads((facts / f"versions_{name}.json").read_text()))
        stack.write(output)
        print(f"{stack.name}: {len(stack.rules)} rules")


if __name__ == "__main__":
    main()
