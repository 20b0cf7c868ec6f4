"""What the comparison says about measured times. A speed-up is a peer's time by Unmoor's: over 1, Unmoor is faster."""
import math
import statistics

import numpy as np


def relative_error(got, want):
    """Relative L2 error of what is finite; infinite where the shapes differ, or NaN or infinities stand in other places."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        return float("inf")
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return float("inf")
    return float(np.linalg.norm((got - want)[finite]) / max(np.linalg.norm(want[finite]), 1e-30))


def median_range(values):
    """Median, and the order statistics that hold the true one in 95 of 100 cases (binomial, normal approximation)."""
    values = sorted(values)
    half = 1.96 * len(values) ** 0.5 / 2
    low = max(0, int(len(values) / 2 - half))
    high = min(len(values) - 1, int(len(values) / 2 + half))
    return statistics.median(values), values[low], values[high]


def speedup(peer, unmoor):
    """Of times taken in the same rounds."""
    median, low, high = median_range([b / a for a, b in zip(unmoor, peer)])
    return {"median": median, "low": low, "high": high}


def add_speedups(row, peers, what="times"):
    """Fills in, from the engines' times: a speed-up over each peer, the better peer (the one that is harder to beat), and processor time's."""
    engines = row["engines"]
    row["speedups"] = {name: speedup(engines[name][what], engines["unmoor"][what]) for name in peers if what in engines.get(name, {})}
    row["better_peer"] = min(row["speedups"], key=lambda name: row["speedups"][name]["median"], default=None)
    if row["better_peer"] and row["threads"] == 1:
        row["cpu_speedup"] = speedup(engines[row["better_peer"]]["cpu"], engines["unmoor"]["cpu"])
    for engine in engines.values():
        if "times" in engine:
            engine["ms"], engine["cpu_ms"] = statistics.median(engine["times"]), statistics.median(engine["cpu"])


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def mean_speedup(rows, what="times", resamples=1000):
    """The geometric mean over models of the speed-up over the better peer. Its 95 % range is that of the mean when rounds are drawn anew."""
    generator = np.random.default_rng(1)
    ratios = [np.divide(row["engines"][row["better_peer"]][what], row["engines"]["unmoor"][what]) for row in rows]
    drawn = np.zeros(resamples)
    for each in ratios:
        drawn += np.log(np.median(each[generator.integers(0, len(each), (resamples, len(each)))], axis=1))
    low, high = np.exp(np.percentile(drawn / len(ratios), [2.5, 97.5]))
    return {"mean": geometric_mean([float(np.median(each)) for each in ratios]), "low": float(low), "high": float(high), "models": len(rows)}
