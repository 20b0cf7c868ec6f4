"""Runs the program under test."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

UNMOOR = os.environ.get("UNMOOR", "unmoor")


class Result:
    """How a run ended. `json` is what it printed, which must be one object and nothing else."""

    def __init__(self, arguments, done):
        self.arguments = arguments
        self.status = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"unmoor {' '.join(self.arguments)}: status {self.status}\n{self.out[-3000:]}\n{self.err[-3000:]}"


def unmoor(*arguments, environment=None, timeout=240, folder=None):
    arguments = [str(each) for each in arguments]
    done = subprocess.run([UNMOOR, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, cwd=folder,
                          env={**os.environ, **(environment or {})})
    return Result(arguments, done)


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_tool(self, *arguments, status=0, **options):
        """The JSON of a run that must end with this status, and say so."""
        result = unmoor(*arguments, "--json", **options)
        self.assertEqual(result.status, status, result)
        found = result.json
        self.assertIsInstance(found, dict)
        self.assertEqual(found["status"], status, result)
        self.assertEqual(found["reason"] == "", status == 0, result)
        return found
