"""Results as Markdown, and in docs/performance.md: each kind of result between its own two marks."""
import pathlib
import re

import picture

TITLES = {"unmoor": "Unmoor", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def versions(result):
    """Of the peers, as they said themselves, with their precision."""
    found = {}
    for row in result["rows"]:
        for name, engine in row.get("engines", {}).items():
            if "version" in engine:
                found[name] = f"{engine['version']} ({engine['precision']})"
    return found


def ranged(value):
    return f"{value['median']:.2f} ({value['low']:.2f} – {value['high']:.2f})"


def milliseconds(engine):
    return f"{engine['ms']:.2f}" if "ms" in engine else "cannot run"


def speed_heading(peers, threads):
    cells = ["model", "Unmoor ms", *(f"{TITLES[name]} ms" for name in peers), *(f"over {TITLES[name]}" for name in peers),
             "over the better (95 %)", *(["by processor time (95 %)"] if threads == 1 else []), "rounds"]
    return ["| " + " | ".join(cells) + " |", "|---" * len(cells) + "|"]


def speed_rows(rows, peers):
    lines = []
    for row in rows:
        speedups = row["speedups"]
        cells = [row["model"], milliseconds(row["engines"]["unmoor"]), *(milliseconds(row["engines"][name]) for name in peers),
                 *(f"{speedups[name]['median']:.2f}" if name in speedups else "–" for name in peers),
                 f"**{ranged(speedups[row['better_peer']])}**" if row["better_peer"] else "–"]
        if row["threads"] == 1:
            cells.append(ranged(row["cpu_speedup"]) if "cpu_speedup" in row else "–")
        lines.append("| " + " | ".join([*cells, str(row["rounds"])]) + " |")
    return lines


def mean_line(mean, what):
    return f"{what}: **{mean['mean']:.2f}** (95 %: {mean['low']:.2f} – {mean['high']:.2f}; {mean['models']} models)."


def complaints(result):
    """What could not be compared, and why."""
    lines = [f"* {row['model']} is not in the tables: {row['failed']}" for row in result["rows"] if "failed" in row]
    failures = {(row["model"], name, engine["failed"]) for row in result["rows"] for name, engine in row.get("engines", {}).items()
                if "failed" in engine}
    lines += [f"* {TITLES[name]} cannot run {model}: {reason}" for model, name, reason in sorted(failures)]
    if result.get("skipped"):
        lines.append(f"* Left out, since the fastest engine takes less than 1 ms: {', '.join(result['skipped'])}.")
    return ["", *lines] if lines else []


def speed(result):
    lines = []
    for threads, mean in result["means"].items():
        rows = [row for row in result["rows"] if row.get("threads") == int(threads)]
        lines += ["", f"{'One thread' if threads == '1' else f'{threads} threads'}. "
                  + mean_line(mean, "Geometric mean of the speed-up over the better peer")]
        if threads == "1":
            lines.append(mean_line(result["cpu_mean"], "The same by processor time"))
        lines += ["", *speed_heading(result["peers"], int(threads)), *speed_rows(rows, result["peers"])]
    return lines + complaints(result)


def load(result):
    lines = ["", "| model | engine | first result after, s | of which Python and imports | peak memory, MB | of which Python and imports |",
             "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        for name, engine in row["engines"].items():
            python = name != "unmoor"
            lines.append(f"| {row['model']} | {TITLES[name]} | {engine['seconds']:.2f} ({engine['fastest']:.2f} – {engine['slowest']:.2f}) | "
                         + (f"{engine['import_seconds']:.2f}" if python else "–") + f" | {engine['bytes'] / 1e6:.0f} | "
                         + (f"{engine['import_bytes'] / 1e6:.0f}" if python else "–") + " |")
    return lines


def machine_line(result):
    machine = result["processor"]
    names = ", ".join(f"{TITLES.get(name, name)} {version}" for name, version in result["versions"].items())
    busy = ", and one process that computes all the time" if result["kind"] == "contended" else ""
    return (f"{machine['name']}, {machine['cores']} cores ({' '.join(machine['features'])}), load {machine['load']} at the start{busy}; "
            f"{names}. Unmoor computes in float32.")


def markdown(result):
    return "\n".join([machine_line(result), *(load(result) if result["kind"] == "load" else speed(result))])


def between_marks(text, kind, body):
    """The text with what stands between the marks of `kind` replaced."""
    begin, end = f"<!-- {kind}: written by bench/compare.py -->", f"<!-- end of {kind} -->"
    if begin not in text or end not in text:
        raise SystemExit(f"docs/performance.md lacks the marks of '{kind}'")
    return re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: f"{begin}\n{body}\n{end}", text, flags=re.DOTALL)


def write(result, docs):
    page = pathlib.Path(docs) / "performance.md"
    body = markdown(result)
    if result["kind"] == "speed":
        picture.write(result, pathlib.Path(docs) / "performance.svg")
        body = "![Speed-up of each model over the better peer](performance.svg)\n\n" + body
    page.write_text(between_marks(page.read_text(encoding="utf-8"), result["kind"], body), encoding="utf-8")
