#!/usr/bin/env python3
"""Writes docs/cli.md from what the program says about itself. `--check` compares instead: status 1 if they differ."""
import argparse
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """# Commands

Made by `tools/make_docs.py` from `unmoor TOOL --help`; do not edit.

Results go to standard output, notes and progress to the error stream. With `--json` standard output is one object and nothing else, at every
exit status, errors included.
"""


def said(program, *arguments):
    return subprocess.run([program, *arguments, "--help"], capture_output=True, text=True, check=True).stdout.rstrip()


def document(program):
    overview = said(program)
    listed = overview.split("Subcommands:\n")[1].split("\n\n")[0]
    tools = [line.split()[0] for line in listed.splitlines() if line[:2] == "  " and line[2:3].strip()]
    parts = [HEAD, f"```\n{overview}\n```\n"]
    for tool in tools:
        text = said(program, tool)
        parts.append(f"## unmoor {tool}\n\n```\n{text[:text.index('Exit status:')].rstrip()}\n```\n")
    return "\n".join(parts)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("program", help="the unmoor program")
    arguments.add_argument("--check", action="store_true")
    options = arguments.parse_args()
    text = document(options.program)
    if not options.check:
        DOCS.write_text(text)
    elif not DOCS.exists() or DOCS.read_text() != text:
        print(f"{DOCS.name} is not what the program says; run tools/make_docs.py {options.program}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
