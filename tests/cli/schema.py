"""The keys of every tool's JSON, as docs/cli.md and design name them, and a check against them. New keys may be added; these may not go.

A schema is a type, a set of allowed texts, a dict of keys, a one-element list (each item), a tuple of alternatives, or None (null)."""

NUMBER = "number"  # A number, or NaN and infinities as texts.
COUNT = "count"    # A whole number, 0 or more.
TEXT = str


def check(value, schema, where="result"):
    """The ways in which a value is not what a schema says."""
    if isinstance(schema, tuple):
        attempts = [check(value, each, where) for each in schema]
        return [] if any(not each for each in attempts) else max(attempts, key=lambda each: -len(each))
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            return [f"{where} is no object: {value!r}"]
        missing = [f"{where}.{key} is missing" for key in schema if key not in value]
        return missing + [problem for key in schema if key in value for problem in check(value[key], schema[key], f"{where}.{key}")]
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f"{where} is no list: {value!r}"]
        return [problem for i, item in enumerate(value) for problem in check(item, schema[0], f"{where}[{i}]")]
    if isinstance(schema, (set, frozenset)):
        return [] if isinstance(value, str) and value in schema else [f"{where} is {value!r}, not one of {sorted(schema)}"]
    if schema is None:
        return [] if value is None else [f"{where} is {value!r}, not null"]
    if schema == NUMBER:
        good = (isinstance(value, (int, float)) and not isinstance(value, bool)) or value in ("nan", "inf", "-inf")
    elif schema == COUNT:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    else:
        good = isinstance(value, schema)
    return [] if good else [f"{where} is {value!r}, not a {schema if isinstance(schema, str) else schema.__name__}"]


DTYPES = {"float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
          "string", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1", "int4", "uint4", "int2", "uint2",
          "complex64", "complex128"}
REASONS = {"no-kernel", "dtype", "rank", "attribute", "layout", "size", "dynamic", "opset", "device-feature", "denied"}
HEAD = {"tool": TEXT, "version": TEXT, "created": TEXT, "command": TEXT, "status": COUNT, "reason": TEXT,
        "environment": {"host": {"processor": TEXT, "cores": COUNT, "memory_bytes": COUNT, "system": TEXT}, "devices": [TEXT],
                        "versions": {"unmoor": TEXT}}}
MODEL = {"model": {"path": TEXT, "fingerprint": TEXT, "inputs": [{"name": TEXT, "dtype": DTYPES, "shape": [(COUNT, TEXT)]}]}}
PLAN = {"devices": [TEXT], "nodes": COUNT, "fallback_nodes": COUNT, "copy_count": COUNT, "copied_bytes": COUNT,
        "placements": [{"node": TEXT, "op": TEXT, "device": TEXT, "kernel": TEXT,
                        "refusals": [{"device": TEXT, "kernel": TEXT, "reason": REASONS, "detail": TEXT}],
                        "later": [{"device": TEXT, "kernel": TEXT, "reason": REASONS | {""}, "detail": TEXT}]}],
        "notes": [TEXT]}
RUN = {"outputs": [{"name": TEXT, "dtype": DTYPES, "shape": [COUNT], "min": NUMBER, "max": NUMBER, "mean": NUMBER, "nan": COUNT, "inf": COUNT}],
       "plan": PLAN}
STATES = {"native", "constrained", "expanded", "fallback", "unsupported", "unknown"}
SCAN = {"platforms": [{"name": TEXT, "version": TEXT, "nodes": COUNT, "effort_days": [NUMBER], "p0": COUNT, "p1": COUNT, "p2": COUNT,
                       "source": {"plan", "catalogue"}, "copied_bytes": NUMBER, "lacking_dtypes": [TEXT],
                       "effort": [{"what": TEXT, "why": TEXT, "first": TEXT, "nodes": COUNT, "low": NUMBER, "high": NUMBER}],
                       **dict.fromkeys(STATES, COUNT)}],
        "nodes": [{"node": TEXT, "op": TEXT, "platform": TEXT, "state": STATES, "reason": REASONS | {""}, "detail": TEXT, "advice": TEXT,
                   "priority": {"P0", "P1", "P2", ""}}]}
METRICS = {**dict.fromkeys(["max_abs", "mean_abs", "max_rel", "mean_rel", "cosine", "rel_l2", "rmse", "nmse", "sqnr_db", "ulp_max", "ulp_mean",
                            "frac_over", "bias", "kl", "frac_over_1e-3"], NUMBER),
           **dict.fromkeys(["excess_e", "excess_p", "shrink", "smooth", "edge", "excess"], (NUMBER, None))}
MISFIT = {"problem": TEXT, "excess_e": None, "excess_p": None}  # Shapes or kinds differ.
VALUE = {"name": TEXT, "node": TEXT, "op": TEXT, "dtype": DTYPES, "single": (METRICS, MISFIT, None), "entire": (METRICS, MISFIT, None),
         "verdict": {"match", "explained", "suspicious", "differ", "undefined", "hidden", "as-baseline"}, "cause": (None, dict),
         "pattern": (None, {"fired": [TEXT], "text": TEXT}), "replay": (None, {"folder": TEXT, "commands": [TEXT]})}
ALIGN = {"verdict": {"match", "explained", "differ"}, "first_divergent": (TEXT, None), "first_nonfinite": (TEXT, None),
         "outputs": [VALUE], "values": [VALUE]}
BENCH = {"runs": [{"runner": TEXT, "threads": COUNT, "batch": COUNT, "load_ms": NUMBER, "prepare_ms": NUMBER, "first_ms": NUMBER,
                   "warm": {"count": COUNT, **dict.fromkeys(["p50", "p90", "p99", "min", "mean", "cv"], NUMBER)}, "peak_bytes": COUNT}],
         "ratios": [{"a": TEXT, "b": TEXT, "median": NUMBER, "low": NUMBER, "high": NUMBER}], "warnings": [TEXT]}
DOCTOR = {"devices": [{"name": TEXT, "backend": TEXT, "state": {"ready", "absent", "broken"}, "reason": TEXT, "check_ms": NUMBER, "versions": dict}],
          "engines": [dict], "pairs": [{"a": TEXT, "b": TEXT, "verdict": {"fits", "does not", "unknown"}, "source": TEXT, "would": TEXT}],
          "libraries": [{"name": TEXT, "paths": [TEXT], "used": TEXT}], "variables": dict,
          "faults": [{"text": TEXT, "remedy": TEXT, "severity": {"high", "medium"}, "source": TEXT}],
          "python": {"interpreter": TEXT, "version": TEXT, "path": TEXT, "problem": TEXT}}
CONFORMANCE = {"device": TEXT, "passed": COUNT, "failed": COUNT, "refused": COUNT, "generic": COUNT,
               "cases": [{"case": TEXT, "verdict": {"passed", "failed", "refused"}, "detail": TEXT}]}
MIGRATE = {"verdict": {"ready", "ready with limits", "blocked"}, "next": [{"text": TEXT, "command": TEXT}], "doctor": DOCTOR, "scan": SCAN,
           "align": ALIGN, "bench": BENCH}

SCHEMAS = {"run": {**HEAD, **MODEL, **RUN}, "scan": {**HEAD, **MODEL, **SCAN}, "align": {**HEAD, **MODEL, **ALIGN},
           "bench": {**HEAD, **MODEL, **BENCH}, "doctor": {**HEAD, **DOCTOR}, "conformance": {**HEAD, **CONFORMANCE},
           "migrate": {**HEAD, **MODEL, **MIGRATE}, "error": HEAD}
