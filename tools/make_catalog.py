#!/usr/bin/env python3
"""Writes data/catalog from a folder of collected facts about platforms.

  tools/make_catalog.py FOLDER [OUTPUT]

Users do not need it: its output is part of the tree. docs/catalog.md says what the files hold."""
import json
import pathlib
import sys

import catalog_onnx
import catalog_torch
from catalog_files import write


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    facts = pathlib.Path(sys.argv[1])
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else pathlib.Path(__file__).resolve().parent.parent / "data" / "catalog"
    output.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, header, ops in [*catalog_onnx.platforms(facts), *catalog_torch.platforms(facts)]:
        write(output / f"{name}.json", header, ops)
        made[name] = len(ops)
    total = sum((output / f"{name}.json").stat().st_size for name in made)
    print(f"wrote {len(made)} files, {total / 1e6:.2f} MB, into {output}")
    print(json.dumps(made))


if __name__ == "__main__":
    main()
