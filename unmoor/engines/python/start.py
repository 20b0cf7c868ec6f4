"""Starts the conversation with Unmoor in the user's Python. Standard output becomes the error stream: engines print."""
import ctypes
import fcntl
import json
import linecache
import os
import signal
import struct
import sys
import types

FRAME = struct.Struct("<IIQ")
MAGIC = 0x454D4E55
PIPE_BYTES = 1 << 20


class Channel:
    """Messages to and from Unmoor: a JSON object and bytes that it points into."""

    def __init__(self):
        self.source, self.sink = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)
        for pipe in (self.source, self.sink):
            try:
                fcntl.fcntl(pipe, 1031, PIPE_BYTES)  # F_SETPIPE_SZ: fewer switches between the two.
            except OSError:
                pass  # It works at any size.

    def _read(self, size):
        data = bytearray(size)
        view, at = memoryview(data), 0
        while at < size:
            got = os.readv(self.source, [view[at:]])
            if got == 0:
                os._exit(0)  # Unmoor has gone.
            at += got
        return data

    def _write(self, data):
        view = memoryview(data).cast("B")
        while len(view):
            view = view[os.write(self.sink, view):]

    def receive(self):
        magic, head, payload = FRAME.unpack(self._read(FRAME.size))
        if magic != MAGIC:
            raise SystemExit("Unmoor sent something that is no message")
        return json.loads(self._read(head).decode()), self._read(payload)

    def send(self, head, parts=()):
        text = json.dumps(head, ensure_ascii=False).encode(errors="replace")  # A lone surrogate, as in file names, is no UTF-8.
        self._write(FRAME.pack(MAGIC, len(text), sum(part.nbytes for part in parts)) + text)
        for part in parts:
            if part.nbytes:
                self._write(part)


def die_with(parent):
    """The system kills this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def add_modules(sources):
    for name, source in sources:
        file = f"unmoor/{name}.py"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # For tracebacks.
        module = sys.modules["unmoor_" + name] = types.ModuleType("unmoor_" + name)
        module.__file__ = file
    for name, source in sources:
        exec(compile(source, f"unmoor/{name}.py", "exec"), sys.modules["unmoor_" + name].__dict__)


def start():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Unmoor ends this process when the user ends Unmoor.
    if sys.version_info < (3, 9):
        raise SystemExit(f"this is Python {sys.version.split()[0]}; engines need 3.9 or later")
    channel = Channel()
    channel._write(b"UNMOOR-PYTHON-" + b"READY\n")
    head, _ = channel.receive()
    die_with(head["parent"])
    add_modules(head["modules"])
    sys.modules["unmoor_serve"].serve(channel)


start()
