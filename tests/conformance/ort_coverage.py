#!/usr/bin/env python3
"""Every operator of com.microsoft that Unmoor has is compared with ONNX Runtime's CPU kernel in at least ten cases, where it has one.

  ort_coverage.py --unmoor build/release/unmoor     a line an operator; fails where cases are missing

The cases themselves are run, and must agree, in ort_attention.py, ort_plain_cases.py and ort_quant_cases.py.
"""
import argparse
import collections
import json
import subprocess
import sys

from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

import ort_attention
import ort_plain_cases
import ort_quant_cases

DOMAIN = "com.microsoft"
FEWEST = 10


def operators(unmoor):
    """Those that have conformance cases."""
    done = subprocess.run([unmoor, "conformance", "--on", "reference", "--dry-run", "--json"], check=True, capture_output=True, text=True)
    texts = [each["case"] for each in json.loads(done.stdout)["cases"]]
    return {text.split(" ")[0].removeprefix(DOMAIN + ":") for text in texts if text.startswith(DOMAIN + ":")}


def compared():
    """The number of cases by operator."""
    counts = collections.Counter(case.op for module in (ort_plain_cases, ort_quant_cases) for case in module.all_cases())
    for family in ort_attention.FAMILIES:
        counts.update(case.op.removeprefix(DOMAIN + ":") for case in family() if case.op.startswith(DOMAIN + ":"))
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unmoor", default="unmoor")
    options = parser.parse_args()
    counts = compared()
    kernels = {each.op_name for each in get_all_opkernel_def() if each.domain == DOMAIN and each.provider == "CPUExecutionProvider"}
    missing = []
    for op in sorted(operators(options.unmoor) | set(counts)):
        print(f"{op:38} {counts[op] if op in kernels else 'ONNX Runtime has no CPU kernel'}")
        if op in kernels and counts[op] < FEWEST:
            missing.append(op)
    for op in missing:
        print(f"{op}: {counts[op]} cases, fewer than {FEWEST}")
    return 1 if missing or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
