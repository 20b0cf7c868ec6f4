"""The speed-ups as an SVG: a line a model, a dot a number of threads, with its range. Plain shapes, legible on light and on dark."""
import html
import math

LEFT, WIDTH, LINE, TOP, RIGHT = 170, 800, 26, 64, 30
TICKS = (0.25, 0.33, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3, 4, 6, 8, 12, 16)
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .grid { stroke: #d0d7de } .one { stroke: #57606a; stroke-width: 1.5 } .quiet { fill: #57606a; font-size: 12px }
  .a { fill: #0969da; stroke: #0969da } .b { fill: #bc4c00; stroke: #bc4c00 } .range { stroke-width: 2 }
  text.a, text.b { stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .grid { stroke: #30363d } .one { stroke: #8b949e } .quiet { fill: #8b949e }
    .a { fill: #58a6ff; stroke: #58a6ff } .b { fill: #ffa657; stroke: #ffa657 }
  }
"""


class Scale:
    """Ratios to pixels, by their logarithm; it holds all of them, and 1."""

    def __init__(self, ratios):
        low, high = min([*ratios, 0.9]), max([*ratios, 1.5])
        self.low, self.high = math.log(low * 0.95), math.log(high * 1.05)

    def at(self, ratio):
        return LEFT + (math.log(ratio) - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)

    def ticks(self):
        return [tick for tick in TICKS if self.low <= math.log(tick) <= self.high]


def mark(scale, kind, y, value, middle):
    """A dot with its range; a diamond for a mean."""
    x, low, high = scale.at(middle), scale.at(value["low"]), scale.at(value["high"])
    shape = f'<circle cx="{x:.1f}" cy="{y}" r="4"/>' if "median" in value else f'<path d="M{x - 6:.1f} {y}l6 -6l6 6l-6 6z"/>'
    return (f'<g class="{kind}"><title>{middle:.2f} ({value["low"]:.2f} – {value["high"]:.2f})</title>'
            f'<path class="range" d="M{low:.1f} {y}H{high:.1f}"/>{shape}</g>')


def lines_of(result):
    """Name, and for each number of threads what to mark; models by their best speed-up, then the means."""
    by_name = {}
    for row in result["rows"]:
        if row.get("better_peer"):
            by_name.setdefault(row["model"], {})[row["threads"]] = row["speedups"][row["better_peer"]]
    lines = sorted(by_name.items(), key=lambda item: -next(iter(item[1].values()))["median"])
    return [*lines, ("geometric mean", {int(threads): mean for threads, mean in result["means"].items()})]


def short(name):
    return name.removesuffix("-dynamo").removesuffix("-torchscript")


def draw(result):
    lines = lines_of(result)
    values = [value for _, marks in lines for value in marks.values()]
    scale = Scale([bound for value in values for bound in (value["low"], value["high"])])
    threads = sorted({number for _, marks in lines for number in marks})
    kinds = dict(zip(threads, "ab"))
    height = TOP + LINE * len(lines) + 12
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
             "<title>Speed-up of Unmoor over the better of its peers, by model</title>", f"<style>{STYLE}</style>",
             f'<text x="8" y="20">Better peer\'s time / Unmoor\'s: right of 1, Unmoor is faster. Lines are 95 % ranges.</text>']
    for number, kind in kinds.items():
        x = LEFT + 110 * threads.index(number)
        parts.append(f'<text class="{kind}" x="{x}" y="40">● {number} thread{"s" if number > 1 else ""}</text>')
    for tick in scale.ticks():
        x = scale.at(tick)
        parts.append(f'<path class="{"one" if tick == 1 else "grid"}" d="M{x:.1f} {TOP - 4}V{height - 8}"/>'
                     f'<text class="quiet" x="{x:.1f}" y="{TOP - 9}" text-anchor="middle">{tick:g}</text>')
    for index, (name, marks) in enumerate(lines):
        y = TOP + LINE * index + LINE // 2
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{html.escape(short(name))}</text>')
        for number, value in marks.items():
            offset = (threads.index(number) - (len(threads) - 1) / 2) * 9
            parts.append(mark(scale, kinds[number], y + offset, value, value.get("median", value.get("mean"))))
    return "\n".join([*parts, "</svg>"]) + "\n"


def write(result, path):
    path.write_text(draw(result), encoding="utf-8")
