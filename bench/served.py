"""Engines that stay ready in processes of their own, and are asked in turn.

An engine speaks lines: first `ready {facts}`; then `run N` is answered with N times in milliseconds as a JSON list. Peers also answer
`outputs FILE`, which writes what they compute, with `done`.
"""
import json
import pathlib
import statistics
import subprocess
import time


class EngineError(SystemExit):
    """An engine that cannot do what was asked. Uncaught, it ends the program with its reason."""


class Served:
    def __init__(self, name, command, quiet=False):
        self.name = name
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        stderr=subprocess.PIPE if quiet else None)
        line = self.line()
        self.ready_seconds = time.monotonic() - self.started  # From the start of the process to its first result.
        if not line.startswith("ready "):
            self.kill()
            raise EngineError(f"{name}: said '{line.strip()}', not 'ready {{…}}'; the command was: {' '.join(command)}")
        self.facts = json.loads(line[len("ready "):])

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            said = self.process.communicate()[1]  # Also closes the pipes.
            reason = f": {said.strip().splitlines()[-1]}" if said and said.strip() else ""
            raise EngineError(f"{self.name} ended with exit status {self.process.returncode}{reason}")
        return line

    def ask(self, words):
        try:
            print(words, file=self.process.stdin)
        except BrokenPipeError:
            pass  # The line that does not come tells why.
        return self.line()

    def run(self, count):
        times = json.loads(self.ask(f"run {count}"))
        if len(times) < count:
            raise EngineError(f"{self.name}: {len(times)} times, not {count}")
        return times

    def write_outputs(self, path):
        if self.ask(f"outputs {path}").strip() != "done":
            raise EngineError(f"{self.name} does not write outputs")

    def cpu_seconds(self):
        """Processor time of all threads so far, to the nanosecond. The clock of another process is named as in clock_getcpuclockid(3)."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def peak_bytes(self):
        """The most memory that was resident at once."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))

    def settle(self, limit=0.5):
        """Waits until its threads spin no more, so that they do not take the next one's time. Gives up after `limit` seconds."""
        for _ in range(int(limit / 0.01)):
            before = self.cpu_seconds()
            time.sleep(0.01)
            if self.cpu_seconds() - before < 0.001:
                return

    def quit(self):
        if self.process.poll() is None:
            try:
                print("quit", file=self.process.stdin)
                self.process.stdin.close()
                self.process.wait(timeout=30)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                self.process.kill()
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


def turn_counts(engines, seconds):
    """Runs that fill an engine's turn of about `seconds`, and what one run takes, in seconds. Warms all of them up."""
    counts, costs = {}, {}
    for engine in engines:
        costs[engine] = max(statistics.median(engine.run(3)) / 1e3, 1e-6)
        counts[engine] = max(1, min(2000, int(seconds / costs[engine])))
        engine.settle()
    return counts, costs


def rounds_for(budget, seconds, least=7, most=31):
    """Rounds that fit into the budget. Seven are the fewest whose extremes hold the median in 95 of 100 cases."""
    return max(least, min(most, int(budget / seconds)))


def measure(engines, budget, turn=0.15):
    """Asks all engines in turn for about `budget` seconds. By name: the median milliseconds of each round, and processor milliseconds a run."""
    counts, costs = turn_counts(engines, turn)
    rounds = rounds_for(budget, sum(counts[each] * costs[each] for each in engines))
    result = {engine.name: {"times": [], "cpu": []} for engine in engines}
    for number in range(rounds):
        first = number % len(engines)
        order = engines[first:] + engines[:first]
        for engine in order if number // len(engines) % 2 == 0 else reversed(order):  # Everyone follows everyone.
            before = engine.cpu_seconds()
            times = engine.run(counts[engine])
            spent = engine.cpu_seconds() - before
            result[engine.name]["times"].append(statistics.median(times))
            result[engine.name]["cpu"].append(spent * 1e3 / counts[engine])
            engine.settle()
    return result
