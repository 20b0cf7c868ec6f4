#!/usr/bin/env python3
"""A fuzzer's corpus as one file, a line of hexadecimal digits for each input.
  corpus.py pack FOLDER FILE      corpus.py unpack FILE FOLDER
"""
import sys
from pathlib import Path


def main(way, source, target):
    if way == "pack":
        inputs = sorted({path.read_bytes() for path in Path(source).iterdir()}, key=lambda each: (len(each), each))
        Path(target).write_text("".join(f"{each.hex()}\n" for each in inputs))
    elif way == "unpack":
        Path(target).mkdir(parents=True, exist_ok=True)
        for number, line in enumerate(Path(source).read_text().splitlines()):
            (Path(target) / f"{number:05}").write_bytes(bytes.fromhex(line))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 4 else sys.exit(__doc__)
