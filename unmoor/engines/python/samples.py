"""Samples of a data set that a user's Python file yields: samples(), an iterable of dicts of arrays by name."""
from unmoor_file_engine import load_file
from unmoor_serve import Wrong


class Samples:
    def __init__(self, path):
        module = load_file(path, ("samples",), "a data set has samples(), which yields dicts of arrays by name")
        self.path, self.items, self.count = path, iter(module.samples()), 0

    def next(self):
        """The next sample, or None at the end."""
        try:
            sample = next(self.items)
        except StopIteration:
            return None
        self.count += 1
        if not isinstance(sample, dict) or not all(isinstance(name, str) for name in sample):
            raise Wrong(f"sample {self.count} of '{self.path}' is no dict of arrays by name: {type(sample).__name__}")
        return sample
