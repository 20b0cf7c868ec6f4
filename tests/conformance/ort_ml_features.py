"""Cases of what prepares features: selection, scaling, encoders, maps, texts."""
import numpy as np
from onnx import TensorProto, helper

from ort_ml_model import DOUBLE, F32, F64, FLOAT, I32, I64, INT64, NUMBERS, STRING, as_proto, features, map_type, rounded, tensor


def simple_cases(cases, rng):
    for dtype in (F32, F64, I64, I32):
        x = features(rng, dtype, 3, 5)
        out = tensor(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        cases.add("ArrayFeatureExtractor", dtype.__name__, [x, np.array([0, 3, 3], I64)], [out], {})
        cases.add("ArrayFeatureExtractor", f"vector_{dtype.__name__}", [x[0], np.array([[4, 1]], I64)], [out], {})
        cases.add("ArrayFeatureExtractor", f"cube_{dtype.__name__}", [features(rng, dtype, 2, 3, 4), np.array([2], I64)], [out], {})
        for norm in ("MAX", "L1", "L2"):
            cases.add("Normalizer", f"{norm}_{dtype.__name__}", [x], [FLOAT], {"norm": norm})
        cases.add("Normalizer", f"zeros_{dtype.__name__}", [np.zeros((2, 3), dtype)], [FLOAT], {"norm": "L2"})
        cases.add("Normalizer", f"row_{dtype.__name__}", [x[1]], [FLOAT], {"norm": "L1"})
        cases.add("Scaler", f"each_{dtype.__name__}", [x], [FLOAT], {"offset": rounded(rng.normal(size=5)), "scale": rounded(rng.normal(size=5))})
        cases.add("Scaler", f"one_{dtype.__name__}", [x], [FLOAT], {"offset": [0.5], "scale": [-2.0]})
        cases.add("Scaler", f"row_{dtype.__name__}", [x[0]], [FLOAT], {"offset": [1.0, 2, 3, 4, 5], "scale": [1.0, 2, 3, 4, 5]})
        cases.add("Scaler", f"offset_{dtype.__name__}", [x], [FLOAT], {"offset": [1.0]}, expected=[(x - F64(1)).astype(F32)],
                  departs="offset and scale are optional; ONNX Runtime wants both")
        y = features(rng, dtype, 3, 2)
        cases.add("FeatureVectorizer", dtype.__name__, [x, y], [FLOAT], {"inputdimensions": [5, 2]})
        cases.add("FeatureVectorizer", f"cut_and_padded_{dtype.__name__}", [x, y], [FLOAT], {"inputdimensions": [3, 4]})
        cases.add("FeatureVectorizer", f"rows_{dtype.__name__}", [x[0], y[0]], [FLOAT], {"inputdimensions": [5, 2]})
    for threshold in (0.0, 1.0, -0.5, float("inf")):
        cases.add("Binarizer", f"{threshold}", [features(rng, F32, 4, 3)], [FLOAT], {"threshold": threshold})
    cases.add("Binarizer", "nan", [np.array([np.nan, np.inf, -np.inf, 0, 2], F32)], [FLOAT], {"threshold": 0.0},
              expected=[np.array([0, 1, 0, 0, 1], F32)], departs="NaN is above nothing; ONNX Runtime refuses it")
    for shape in ((), (1,), (0, 3), (2, 3, 4)):
        cases.add("Binarizer", f"rank_{len(shape)}", [features(rng, F32, *shape)], [FLOAT], {"threshold": 0.25})
    for dtype in (F64, I64, I32):
        x = features(rng, dtype, 3, 4)
        cases.add("Binarizer", dtype.__name__, [x], [tensor(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))], {"threshold": 1.0},
                  expected=[(x > 1).astype(dtype)], departs="ONNX Runtime has the operator for float32 only")
    text = np.array([["a", "b", "c"], ["d", "e", "f"]], dtype=object)
    cases.add("ArrayFeatureExtractor", "text", [text, np.array([2, 0], I64)], [STRING], {})


def imputer_cases(cases, rng):
    for i in range(4):
        x = features(rng, F32, 5, 3)
        x = np.where(rng.random(x.shape) < 0.3, x.dtype.type(np.nan), x)
        each = {"imputed_value_floats": rounded(rng.normal(size=3))}
        cases.add("Imputer", f"nan_{i}", [x], [FLOAT], {"replaced_value_float": float("nan"), **each})
        cases.add("Imputer", f"nan_by_one_{i}", [x], [FLOAT], {"replaced_value_float": float("nan"), "imputed_value_floats": [9.0]})
        whole = rng.integers(-2, 3, size=(5, 3))
        cases.add("Imputer", f"int64_{i}", [whole.astype(I64)], [INT64], {"imputed_value_int64s": [7, 8, 9], "replaced_value_int64": i - 2})
        cases.add("Imputer", f"int32_{i}", [whole.astype(I32)], [tensor(TensorProto.INT32)],
                  {"imputed_value_int64s": [7], "replaced_value_int64": i - 2},
                  expected=[np.where(whole == i - 2, 7, whole).astype(I32)], departs="ONNX Runtime has no int32 here")
        cases.add("Imputer", f"float64_{i}", [x.astype(F64)], [DOUBLE], {"imputed_value_floats": [0.5], "replaced_value_float": float("nan")},
                  expected=[np.where(np.isnan(x), 0.5, x).astype(F64)], departs="ONNX Runtime has no float64 here")
    cases.add("Imputer", "zero", [np.array([[0, -0.0, 1]], F32)], [FLOAT], {"imputed_value_floats": [5.0]})


def encoder_cases(cases, rng):
    words = ["cat", "dog", "", "owl"]
    picks = np.array([words[i] if i < 4 else "new" for i in rng.integers(0, 5, size=9)], dtype=object)
    numbers = rng.integers(0, 6, size=(3, 4)).astype(I64)
    floats = np.array([1, 2.5, np.nan, -3, 7], F32)
    add = lambda what, x, out, **attributes: cases.add("LabelEncoder", what, [x], [out], attributes, opset=attributes.pop("opset", 4),
                                                       expected=attributes.pop("expected", None), departs=attributes.pop("departs", None))
    for opset in (2, 4):
        add(f"text_int64_{opset}", picks, INT64, keys_strings=words, values_int64s=[4, 3, 2, 1], default_int64=-7, opset=opset)
        add(f"text_text_{opset}", picks, STRING, keys_strings=words, values_strings=["a", "b", "c", "d"], opset=opset)
        add(f"text_float_{opset}", picks, FLOAT, keys_strings=words, values_floats=[0.5, 1, 2, 3], opset=opset)
        add(f"int64_text_{opset}", numbers, STRING, keys_int64s=[0, 1, 2], values_strings=["x", "y", "z"], default_string="w", opset=opset)
        add(f"int64_int64_{opset}", numbers, INT64, keys_int64s=[0, 1, 2], values_int64s=[9, 8, 7], opset=opset)
        add(f"int64_float_{opset}", numbers, FLOAT, keys_int64s=[0, 1, 2], values_floats=[0.5, 1, 2], default_float=-1.0, opset=opset)
        add(f"float_text_{opset}", floats, STRING, keys_floats=[1.0, 2.5], values_strings=["x", "y"], opset=opset)
        add(f"float_int64_{opset}", floats, INT64, keys_floats=[1.0, 2.5], values_int64s=[5, 6], opset=opset)
        add(f"float_float_{opset}", floats, FLOAT, keys_floats=[float("nan"), 2.5], values_floats=[5.0, 6], opset=opset,
            expected=[np.array([-0.0, 6, 5, -0.0, -0.0], F32)] if opset == 2 else None,
            departs="even NaN can be mapped; in ONNX Runtime only from opset 4 on" if opset == 2 else None)
    for keys, values in (("INT64", "STRING"), ("STRING", "INT64"), ("DOUBLE", "DOUBLE"), ("INT16", "INT16")):
        dtypes = {"INT64": I64, "DOUBLE": F64, "STRING": object, "INT16": np.int16}
        given = np.array(words[:3], dtype=object) if keys == "STRING" else np.array([1, 2, 3], dtypes[keys])
        made = np.array(["x", "y", "z"], dtype=object) if values == "STRING" else np.array([10, 20, 30], dtypes[values])
        default = np.array(["none"], dtype=object) if values == "STRING" else np.array([42], dtypes[values])
        x = picks if keys == "STRING" else np.array([1, 5, 3, 2], dtypes[keys])
        out = tensor(getattr(TensorProto, values))
        lists = {"keys_tensor": as_proto(given), "values_tensor": as_proto(made)}
        places = {key: i for i, key in enumerate(given.tolist())}
        want = lambda other: [np.array([made[places[each]] if each in places else other for each in x.tolist()], made.dtype)]
        runs = (keys, values) != ("INT16", "INT16")
        why = "ONNX Runtime has no kernel for these types" if not runs else None
        add(f"tensor_{keys}_{values}", x, out, **lists, default_tensor=as_proto(default), expected=None if runs else want(default[0]), departs=why)
        plain = "_Unused" if values == "STRING" else -1 if values != "DOUBLE" else -0.0
        add(f"tensor_default_{keys}_{values}", x, out, **lists, expected=None if runs else want(plain), departs=why)
    add("repeated", np.array([1, 2], I64), INT64, keys_int64s=[1, 1], values_int64s=[5, 6], expected=[np.array([6, -1], I64)],
        departs="of a repeated key the last takes precedence; in ONNX Runtime the first")
    add("zeros_2", np.array([0.0, -0.0], F32), INT64, keys_floats=[0.0], values_int64s=[5], opset=2, expected=[np.array([5, -1], I64)],
        departs="before opset 4 keys are compared bit by bit: -0 is not 0")
    for i, classes in enumerate((["a", "b", "c"], words)):
        x = np.array([["a", "b"], ["owl", "?"]], dtype=object)
        want = np.array([[classes.index(each) if each in classes else 9 for each in row] for row in x], I64)
        add(f"classes_text_{i}", x, INT64, classes_strings=classes, default_int64=9, opset=1, expected=None if i == 0 else [want])
        back = np.array([0, 2, 5, -1], I64)
        add(f"classes_int64_{i}", back, STRING, classes_strings=classes, default_string="none", opset=1)
    for i in range(5):
        texts = [f"t{j}" for j in range(i + 1)]
        whole = rng.permutation(20)[: i + 1].tolist()
        lists = {"cats_strings": texts, "cats_int64s": whole}
        x = np.array([f"t{j}" for j in rng.integers(0, i + 2, size=6)], dtype=object).reshape(2, 3)
        cases.add("CategoryMapper", f"text_{i}", [x], [INT64], {**lists, "default_int64": -i})
        back = rng.choice(whole + [99], size=7).astype(I64)
        cases.add("CategoryMapper", f"int64_{i}", [back], [STRING], {**lists, "default_string": "none"})
    for dtype in NUMBERS:
        x = rng.integers(0, 4, size=(2, 3)).astype(dtype)
        for what, given, categories in ((dtype.__name__, x, [2, 0, 3]), (f"all_{dtype.__name__}", x[0], [3, 2, 1, 0])):
            lacks = dtype == I32
            cases.add("OneHotEncoder", what, [given], [FLOAT], {"cats_int64s": categories, "zeros": int(len(categories) < 4)},
                      expected=[(given[..., None] == np.array(categories)).astype(F32)] if lacks else None,
                      departs="ONNX Runtime has no int32 here" if lacks else None)
    cases.add("OneHotEncoder", "text", [picks], [FLOAT], {"cats_strings": words})
    cases.add("OneHotEncoder", "fractions", [np.array([1.9, -0.5, 0.2], F32)], [FLOAT], {"cats_int64s": [0, 1]})
    cases.add("OneHotEncoder", "text_cube", [np.array(words, dtype=object).reshape(2, 1, 2)], [FLOAT], {"cats_strings": words[:2]})


def map_cases(cases, rng):
    for i, count in enumerate((1, 2, 5)):
        for j in range(4):
            keys = rng.permutation(50)[:count].tolist()
            values = rng.normal(size=count).astype(F32)
            floats = {int(key): value for key, value in zip(keys, values)}
            texts = {int(key): str(round(float(value), 3)) for key, value in zip(keys, values)}
            whole = {int(key): str(int(10 * value)) for key, value in zip(keys, values)}
            one = "the text says that the output has one dimension; ONNX Runtime gives it two"
            dense = lambda kind, given: [np.array([kind(given[key]) for key in sorted(given)], None if kind is not str else object)]
            add = lambda what, given, out, expected, **attributes: cases.add("CastMap", f"{what}_{i}{j}", [given], [out], attributes,
                                                                            expected=expected, departs=one)
            if j == 0:
                add("float", floats, FLOAT, dense(F32, floats))
                add("float_text", texts, FLOAT, dense(F32, texts), cast_to="TO_FLOAT")
            elif j == 1:
                add("int64", floats, INT64, dense(lambda each: I64(np.trunc(each)), floats), cast_to="TO_INT64")
                add("int64_text", whole, INT64, dense(I64, whole), cast_to="TO_INT64")
            elif j == 2:
                add("text", texts, STRING, dense(str, texts), cast_to="TO_STRING")
            else:
                sparse = np.zeros(60, F32)
                for key, value in floats.items():
                    sparse[key] = value
                add("sparse", floats, FLOAT, [sparse], map_form="SPARSE", max_map=60)
    only_floats = "ONNX Runtime's Python interface takes maps to float32 only"
    for i in range(3):
        names = [f"k{j}" for j in range(i + 3)]
        numbers = rng.permutation(9)[: i + 3].tolist()
        for dtype in (F32, F64, I64, object):
            for keys, key in ((names, "string_vocabulary"), (numbers, "int64_vocabulary")):
                if keys == names and dtype == object or keys == numbers and dtype == I64:
                    continue  # No such map is allowed.
                values = [f"w{j}" for j in range(i + 2)] if dtype == object else rng.integers(-9, 9, size=i + 2).astype(dtype).tolist()
                given = {name: value if dtype == object else dtype(value) for name, value in zip(keys[:-1], values)}
                out = STRING if dtype == object else tensor(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
                want = np.array([[given.get(name, "" if dtype == object else 0) for name in keys[::-1]]], dtype)
                cases.add("DictVectorizer", f"{key}_{dtype.__name__}_{i}", [given], [out], {key: keys[::-1]},
                          expected=None if dtype == F32 else [want], departs=None if dtype == F32 else only_floats)
    for i in range(6):
        x = rng.random(size=(i, 3)).astype(F32) if i else rng.random(3).astype(F32)
        for labels in ([3, 5, 9], ["x", "y z", "é"]):
            key = "classlabels_int64s" if isinstance(labels[0], int) else "classlabels_strings"
            kind = map_type(TensorProto.INT64 if isinstance(labels[0], int) else TensorProto.STRING, TensorProto.FLOAT)
            out = helper.make_sequence_type_proto(kind)
            cases.add("ZipMap", f"{i}", [x], [out], {key: labels})


def tokenizer_cases(cases, rng):
    """What comes before TfIdfVectorizer in text models."""
    texts = np.array(["Hello World", "I love computer science !", "  a  b ", "", "\u00e9t\u00e9 \u00e0 la carte", "aXbXXc", "one 2 three", "four4five", "abcabc", "XX"],
                     dtype=object)
    ways = [{"separators": each} for each in ([" "], [";", "e"], ["X+", " "], ["[0-9]", "o"], ["x*"], [""])]
    ways += [{"tokenexp": each} for each in ("[a-zA-Z]+", ".", r"\w+|[^\w\s]", "a|ab|abc", "x*")]
    for i, way in enumerate(ways):
        for mark, shortest in ((0, 1), (1, 1), (0, 2)):
            if shortest > 1 and way in ({"separators": [""]}, {"tokenexp": "."}):
                continue
            x = texts.reshape(5, 2) if mark else rng.permutation(texts)
            cases.add("Tokenizer", str(i), [x], [STRING], {"mark": mark, "mincharnum": shortest, "pad_value": "#", **way}, opset=1,
                      domain="com.microsoft")
    for x in (np.array([], dtype=object), np.zeros((2, 0), dtype=object), np.array(["", ""], dtype=object)):
        cases.add("Tokenizer", "empty", [x], [STRING], {"mark": 1, "mincharnum": 1, "pad_value": "#", "separators": [" "]}, opset=1,
                  domain="com.microsoft")


FAMILIES = (simple_cases, imputer_cases, encoder_cases, map_cases, tokenizer_cases)
