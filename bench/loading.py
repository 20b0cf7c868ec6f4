"""How long each engine takes from the start of its process to the first result, and how much memory it holds at most."""
import statistics
import sys

import served
import targets

MODELS = ("bert_base", "resnet50")
REPEATS = 5


def once(name, command):
    """A fresh process: seconds and bytes, and apart what Python took to start and to import the peer, which Unmoor has no part of."""
    engine = served.Served(name, command)
    try:
        facts = engine.facts
        imported = facts["imported_at"] - engine.started if "imported_at" in facts else 0.0
        return {"seconds": engine.ready_seconds, "import_seconds": imported, "bytes": engine.peak_bytes(),
                "import_bytes": facts.get("imported_bytes", 0), **{key: facts[key] for key in ("version", "precision") if key in facts}}
    finally:
        engine.quit()


def measure(options, unmoor_command, peer_command):
    """Rows by model and engine, in turn, with the files' pages in memory: a run before is not counted."""
    folders = {path.name.rpartition("-")[0]: path for path in targets.one_export_each(options.folder, options.exporter)}
    rows = []
    for model in MODELS:
        if model not in folders:
            raise SystemExit(f"{options.folder} has no {model}: run bench/export_models.py {model} first")
        options.models = [folders[model]]
        target = next(targets.given(options))
        threads = max(options.threads)
        commands = {"unmoor": unmoor_command(options.unmoor, target, threads),
                    **{name: peer_command(name, target, threads) for name in options.peers}}
        taken = {name: [] for name in commands}
        for repeat in range(REPEATS + 1):
            for name, command in commands.items():
                found = once(name, command)
                if repeat > 0:
                    taken[name].append(found)
        engines = {name: summary(each) for name, each in taken.items()}
        rows.append({"model": target.name, "threads": threads, "engines": engines})
        print(f"{target.name}: " + ", ".join(f"{name} {each['seconds']:.2f} s" for name, each in engines.items()), file=sys.stderr, flush=True)
    return {"rows": rows}


def summary(found):
    result = {key: statistics.median(each[key] for each in found) for key in ("seconds", "import_seconds", "bytes", "import_bytes")}
    result["fastest"], result["slowest"] = min(each["seconds"] for each in found), max(each["seconds"] for each in found)
    return {**result, **{key: found[0][key] for key in ("version", "precision") if key in found[0]}}
