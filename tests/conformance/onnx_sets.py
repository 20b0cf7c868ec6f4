#!/usr/bin/env python3
"""Runs a folder of ONNX's test layout on a device. Every case must be there and pass; only the named ones may be refused.

  onnx_sets.py FOLDER --cases 1884 --on cpu --unmoor build/release/unmoor
  onnx_sets.py FOLDER --cases 1884 --on opencl --may-refuse     what the device has no kernel for may be refused, with a reason
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys


def complaints(result, cases, refused, may_refuse):
    """What is wrong with the result of `conformance --json`."""
    found = [] if len(result["cases"]) == cases else [f"{len(result['cases'])} cases were run, not {cases}"]
    names = set()
    for case in result["cases"]:
        name = pathlib.PurePath(case["case"]).name
        if case["verdict"] == "refused":
            names.add(name)
            if not case["detail"].strip():
                found.append(f"{name}: refused without a reason")
            elif not may_refuse and name not in refused:
                found.append(f"{name}: refused: {case['detail']}")
        elif case["verdict"] != "passed":
            found.append(f"{name}: {case['verdict']}: {case['detail']}")
    return found + [f"{name}: it was to be refused" for name in sorted(set(refused) - names)]


def reason_in(detail, device):
    """The line of a refusal that is the device's."""
    lines = [line.strip() for line in detail.splitlines()] or [""]
    own = (f"{device}: ", device.split(":")[0] + ".")  # The device says no, or one of its kernels.
    return next((line for line in lines if line.startswith(own)), lines[-1])


def summary(result):
    reasons = collections.Counter(reason_in(case["detail"], result["device"]) for case in result["cases"] if case["verdict"] == "refused")
    lines = [f"{times} refused: {reason}" for reason, times in reasons.most_common(30)]
    return "\n".join([*lines, f"{result['device']}: {result['passed']} passed, {result['failed']} failed, {result['refused']} refused"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--cases", type=int, required=True, help="how many there are")
    parser.add_argument("--on", default="cpu", help="device")
    parser.add_argument("--refused", nargs="*", default=[], metavar="CASE", help="these must be refused")
    parser.add_argument("--may-refuse", action="store_true", help="others may be, too")
    parser.add_argument("--unmoor", default="unmoor", help="the command to test")
    options = parser.parse_args()
    command = [options.unmoor, "conformance", "--on", options.on, "--onnx-tests", options.folder, "--json", "--exit-zero"]
    ended = subprocess.run(command, stdout=subprocess.PIPE)
    if ended.returncode != 0:
        return f"exit status {ended.returncode} of: {' '.join(command)}"
    result = json.loads(ended.stdout)
    print(summary(result))
    return "\n".join(complaints(result, options.cases, options.refused, options.may_refuse)) or 0


if __name__ == "__main__":
    sys.exit(main())
