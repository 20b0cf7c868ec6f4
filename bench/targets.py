"""Which models are compared, and on which inputs."""
import dataclasses
import pathlib
import statistics
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMALL_MS = 1.0  # Real models under this measure the engines' fixed cost, and Python's.


@dataclasses.dataclass
class Target:
    name: str
    model: pathlib.Path
    inputs: pathlib.Path
    quantised: bool = False


def one_export_each(folder, exporter):
    """The folders of NAME-EXPORTER: of each name the wanted exporter's, or the other's where that one failed."""
    found = {}
    for path in sorted(folder.glob("*/model.onnx")):
        name, _, by = path.parent.name.rpartition("-")
        if name not in found or by == exporter:
            found[name] = path.parent
    return list(found.values())


def given(options):
    """Named models, or all exported ones."""
    paths = options.models or one_export_each(options.folder, options.exporter)
    if not paths:
        raise SystemExit(f"{options.folder} has no models: run bench/export_models.py first")
    for path in paths:
        model = path / "model.onnx" if path.is_dir() else path
        inputs = options.inputs or model.parent / "inputs.npz"
        if not model.exists() or not inputs.exists():
            raise SystemExit(f"{inputs if model.exists() else model} is not there")
        yield Target(model.parent.name if model.name == "model.onnx" else model.stem, model, inputs)


def real(wanted):
    """The models of tools/models.json that have been fetched, or of these the wanted ones, on the inputs that the tests use."""
    sys.path.insert(0, str(ROOT / "tools"))
    import fetch_models
    import model_inputs
    rows = [row for row in fetch_models.load_rows() if (ROOT / "examples" / "models" / f"{row['id']}.onnx").exists()]
    missing = set(wanted) - {row["id"] for row in rows}
    if missing or not rows:
        raise SystemExit(f"examples/models has no {min(missing, default='models')}: run tools/fetch_models.py {min(missing, default='all')} first")
    rows = [row for row in rows if not wanted or row["id"] in wanted]
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            inputs = pathlib.Path(folder) / f"{row['id']}.npz"
            np.savez(inputs, **model_inputs.make_inputs(row))
            yield Target(row["id"], ROOT / "examples" / "models" / f"{row['id']}.onnx", inputs, row.get("quantised", False))


def chosen(options):
    return real([str(name) for name in options.models]) if options.real else given(options)


def is_small(rows):
    """Whether the fastest of the engines takes less than SMALL_MS."""
    times = [statistics.median(each["times"]) for row in rows for each in row.get("engines", {}).values() if "times" in each]
    return bool(times) and min(times) < SMALL_MS
