"""The tables that commands write into docs/precision.md, each between its own two marks."""
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "precision.md"


def write(marks, text):
    before, rest = PAGE.read_text().split(marks[0])
    PAGE.write_text(f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{rest.split(marks[1])[1]}")
