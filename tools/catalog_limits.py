"""Limits that vendors state in words, as conditions that a program can check. What has no such form stays a text.

A limit names what is allowed: {"attribute": name, "is": [texts]} or "not" or "all", "required" if it may not be left out; {"rank": [least, most]}
of input 0; {"constant": [inputs]}, or "from 0" and "from 1" for all of them and all but the first; {"static": true} for shapes; {"absent_output": i};
{"input": i, "dtypes": [names]} or "not_dtypes"; or {"text": words} where only a person can tell."""

REDUCED = {"dilations all 1": {"attribute": "dilations", "all": "1"}, "no antialias": {"attribute": "antialias", "is": ["0"]},
           "no cubic": {"attribute": "mode", "not": ["cubic"]}, "select_last_index must be 0": {"attribute": "select_last_index", "is": ["0"]},
           "layout 0": {"attribute": "layout", "is": ["0"]}, "input_forget 0": {"attribute": "input_forget", "is": ["0"]},
           "storage_order 0": {"attribute": "storage_order", "is": ["0"]}, "training_mode 0": {"attribute": "training_mode", "is": ["0"]},
           "inference only": {"attribute": "training_mode", "is": ["0"]},
           "CRD mode only": {"attribute": "mode", "is": ["CRD"], "required": True}, "sorted must be 1": {"attribute": "sorted", "is": ["1"]},
           "no auto_pad SAME": {"attribute": "auto_pad", "not": ["SAME_UPPER", "SAME_LOWER"]},
           "no SAME padding": {"attribute": "auto_pad", "not": ["SAME_UPPER", "SAME_LOWER"]},
           "no tf_crop_and_resize": {"attribute": "coordinate_transformation_mode", "not": ["tf_crop_and_resize"]},
           "no reduction": {"attribute": "reduction", "is": ["none"]}, "no indices output": {"absent_output": 1}, "first output only": {"absent_output": 1},
           "2-D only": {"rank": [4, 4]}, "4-D input only": {"rank": [4, 4]}, "1-D/2-D only": {"rank": [3, 4]}, "2-D/3-D only": {"rank": [4, 5]},
           "int8/uint8 input only": {"input": 0, "dtypes": ["int8", "uint8"]},
           "no int8/uint8": {"input": 0, "not_dtypes": ["int8", "uint8"]}}
CONSTANT = {"bias constant": [2], "weight constant": [1], "input B constant": [1], "axes must be an initializer": [1], "axes constant": [1],
            "axes initializer": [1], "axes input constant-foldable": [1], "axis must be a build-time constant": [1], "k constant-foldable": [1],
            "repeats constant-foldable": [1], "depth must be constant-foldable": [1], "depth known at build time": [1],
            "input must be constant-foldable": [0], "split sizes constant-foldable": [1], "parameter inputs constant": "from 1",
            "all inputs constant-foldable": "from 0", "starts/ends/axes/steps constant-foldable": "from 1",
            "shape input must be constant-foldable": "shape", "shape constant-foldable": "shape", "pads (and value) constant-foldable": "from 1"}
# Where these are other inputs than with most operators. Parameters of quantised operators are scales and zero points, not the second operand.
CONSTANT_OF = {("QLinearConv", "weight constant"): [3], ("QLinearConv", "bias constant"): [8],
               ("QLinearConv", "parameter inputs constant"): [1, 2, 4, 5, 6, 7], ("QLinearMatMul", "parameter inputs constant"): [1, 2, 4, 5, 6, 7],
               ("QLinearAdd", "parameter inputs constant"): [1, 2, 4, 5, 6, 7], ("QLinearAveragePool", "parameter inputs constant"): [1, 2, 3, 4],
               ("QLinearSigmoid", "parameter inputs constant"): [1, 2, 3, 4], ("Slice", "axes initializer"): [3]}
# These say that the provider never takes the node, whatever the list says.
NEVER = ("listed under the misspelt name",)


def limit_of(phrase, op):
    if phrase in REDUCED:
        return REDUCED[phrase]
    if phrase in CONSTANT:
        which = CONSTANT_OF.get((op, phrase), CONSTANT[phrase])
        if which == "shape":
            which = [0] if op == "ConstantOfShape" else [1]
        return {"constant": which}
    if phrase in ("static shape", "static input shape"):
        return {"static": True}
    return {"text": phrase}


def is_never(entry):
    return str(entry.get("constraints", "")).startswith(NEVER)


def limits_of(entry):
    """The limits of one entry, each once. One on an input or attribute that a version of the operator lacks cannot be broken there."""
    found = []
    text = entry.get("constraints")
    if not text or is_never(entry):
        return []
    for phrase in str(text).split("; "):
        limit = limit_of(phrase, entry["op"])
        if limit not in found:
            found.append(limit)
    return found


# Refused at run time on ONNX's own operator cases, whatever the kernel registry says; source 1 of the file.
MEASURED = {"LSTM": [{"attribute": "layout", "is": ["0"], "source": 1}], "GRU": [{"attribute": "layout", "is": ["0"], "source": 1}],
            "RNN": [{"attribute": "layout", "is": ["0"], "source": 1}]}


def measured_limits(name):
    return MEASURED.get(name, [])


# No kernel, and mostly not run as a function either, though ONNX defines it as one.
MEASURED_REFUSALS = {"Swish": {"since": 24, "state": "unsupported", "why": "no kernel; of ONNX's cases with it one ran as a function, the others were refused", "no_function": True, "source": 1}}
