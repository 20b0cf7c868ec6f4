"""Cases of BeamSearch, GreedySearch and Sampling: small decoders whose next token depends on every input they have."""

import itertools

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ort_compare import Case

I32, F32 = TensorProto.INT32, TensorProto.FLOAT
VOCABULARY, HEADS, SIZE, LAYERS = 13, 2, 3, 2
WIDTH = HEADS * SIZE
PAD, END = 0, 1


class Body:
    """Collects nodes of a graph."""

    def __init__(self, name, seed):
        self.name, self.random = name, np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, value, dtype=None):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weights(self, *shape):
        return self.constant(self.random.standard_normal(shape).astype(np.float32))

    def node(self, op, *inputs, out=None, **attributes):
        out = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def ints(self, *values):
        return self.constant(values, np.int64)

    def real(self, x):
        return self.node("Cast", x, to=F32)

    def heads(self, x):
        """[rows, tokens, width] as [rows, heads, tokens, size]."""
        return self.node("Transpose", self.node("Reshape", x, self.ints(0, 0, HEADS, SIZE)), perm=[0, 2, 1, 3])

    def context(self, values, mask):
        """What [rows, heads, tokens, size] says, later tokens counting more, masked ones not: [rows, 1, width]."""
        weight = self.node("CumSum", mask, self.constant(1, np.int64))
        weight = self.node("Mul", self.node("Mul", weight, mask), self.constant(0.1, np.float32))
        weight = self.node("Unsqueeze", weight, self.ints(1, 3))
        total = self.node("ReduceSum", self.node("Mul", values, weight), self.ints(2), keepdims=1)
        return self.node("Reshape", self.node("Transpose", total, perm=[0, 2, 1, 3]), self.ints(0, 1, WIDTH))

    def logits(self, x, out="logits"):
        # The sine keeps logits small. What it is of stays small too, so that roundings of float32 do not show.
        y = self.node("MatMul", self.node("Sin", x), self.weights(WIDTH, VOCABULARY))
        return self.node("Mul", y, self.constant(1.5, np.float32), out=out)

    def graph(self, inputs, outputs):
        info = lambda group: [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in group]
        return helper.make_graph(self.nodes, self.name, info(inputs), info(outputs), self.constants)


def plain_decoder(seed, name="decoder"):
    body = Body(name, seed)
    x = body.node("Gather", body.weights(VOCABULARY, WIDTH), "input_ids")
    x = body.node("Add", x, body.node("Gather", body.weights(64, WIDTH), "position_ids"))
    mask = body.real("attention_mask")
    for layer in range(LAYERS):
        key, value = (
            body.node("Unsqueeze", body.heads(body.node("MatMul", x, body.weights(WIDTH, WIDTH))), body.ints(0)) for _ in range(2)
        )
        present = body.node("Concat", f"past_{layer}", body.node("Concat", key, value, axis=0), axis=3, out=f"present_{layer}")
        for i in (0, 1):
            x = body.node("Add", x, body.context(body.node("Gather", present, body.constant(i, np.int64), axis=0), mask))
    body.logits(x)
    state = lambda name: (name, F32, [2, "batch", HEADS, f"{name}_length", SIZE])
    tokens = [(n, I32, ["batch", "tokens"]) for n in ("input_ids", "position_ids")] + [("attention_mask", I32, ["batch", "all_tokens"])]
    return body.graph(
        tokens + [state(f"past_{i}") for i in range(LAYERS)],
        [("logits", F32, ["batch", "tokens", VOCABULARY])] + [state(f"present_{i}") for i in range(LAYERS)],
    )


def states(kind, where):
    return [
        (f"{kind}_{part}_{where}_{i}", F32, ["batch", HEADS, f"{where}_length", SIZE]) for i in range(LAYERS) for part in ("key", "value")
    ]


def encoder(seed):
    """In the older form: the first step of the decoder is in it."""
    body = Body("encoder", seed)
    mask = body.real("encoder_attention_mask")
    hidden = body.node(
        "Mul",
        body.node("Gather", body.weights(VOCABULARY, WIDTH), "encoder_input_ids"),
        body.node("Unsqueeze", mask, body.ints(2)),
        out="encoder_hidden_states",
    )
    x = body.node("Gather", body.weights(VOCABULARY, WIDTH), "decoder_input_ids")
    one = body.constant(np.ones((1, 1)), np.float32)
    for name, _, _ in states("present", "self"):
        x = body.node("Add", x, body.context(body.node("Identity", body.heads(x), out=name), one))
    for name, _, _ in states("present", "cross"):
        x = body.node(
            "Add",
            x,
            body.context(body.node("Identity", body.heads(body.node("MatMul", hidden, body.weights(WIDTH, WIDTH))), out=name), mask),
        )
    body.logits(x)
    return body.graph(
        [
            ("encoder_input_ids", I32, ["batch", "length"]),
            ("encoder_attention_mask", I32, ["batch", "length"]),
            ("decoder_input_ids", I32, ["batch", 1]),
        ],
        [
            ("logits", F32, ["batch", 1, VOCABULARY]),
            ("encoder_hidden_states", F32, ["batch", "length", WIDTH]),
            *states("present", "self"),
            *states("present", "cross"),
        ],
    )


def encoder_decoder(seed, with_hidden):
    body = Body("decoder", seed)
    mask = body.real("encoder_attention_mask")
    x = body.node("Gather", body.weights(VOCABULARY, WIDTH), "input_ids")
    if with_hidden:
        x = body.node("Add", x, body.node("ReduceSum", "encoder_hidden_states", body.ints(1), keepdims=1))
    for (past, _, _), (present, _, _) in zip(states("past", "self"), states("present", "self")):
        kept = body.node("Concat", past, body.heads(x), axis=2, out=present)
        ones = body.node(
            "Add",
            body.node("Mul", body.node("ReduceSum", kept, body.ints(1, 3), keepdims=0), body.constant(0, np.float32)),
            body.constant(1, np.float32),
        )
        x = body.node("Add", x, body.context(kept, ones))
    for name, _, _ in states("past", "cross"):
        x = body.node("Add", x, body.context(name, mask))
    body.logits(x)
    hidden = [("encoder_hidden_states", F32, ["batch", "length", WIDTH])] if with_hidden else []
    return body.graph(
        [
            ("input_ids", I32, ["batch", 1]),
            ("encoder_attention_mask", I32, ["batch", "length"]),
            *hidden,
            *states("past", "self"),
            *states("past", "cross"),
        ],
        [("logits", F32, ["batch", 1, VOCABULARY]), *states("present", "self")],
    )


def one(value, dtype=np.int32):
    return None if value is None else np.array([value], dtype)


def beam_cases(random):
    # ONNX Runtime's CPU kernel judges whether an item is done by scores of the item before it too: where there are several, none ends here
    # unless the first end is enough.
    prompts = [
        np.array([[3, 4, 5]], np.int32),
        np.array([[PAD, 4, 6], [7, 8, 9]], np.int32),
        random.integers(2, VOCABULARY, (3, 2)).astype(np.int32),
    ]
    forms = [
        {},
        {"length_penalty": 0.5},
        {"length_penalty": 2.0, "early": 1},
        {"repetition": 1.7},
        {"repetition": 0.6, "least": 6},
        {"ngram": 2},
        {"ngram": 1},
        {"mask": 1},
        {"prefix": 1, "ngram": 3},
        {"least": 8, "length_penalty": 1.3},
        {"attention": 1},
        {"early": 1, "longest": 14},
        {"least": 10},
    ]
    for i, (form, (prompt, (beams, returned))) in enumerate(itertools.product(forms, zip(prompts, ((2, 1), (3, 3), (4, 2))))):
        longest = form.get("longest", 10)
        least = longest if len(prompt) > 1 and "early" not in form else form.get("least", 0)
        mask = (random.random(VOCABULARY) < 0.7).astype(np.int32)
        prefix = (random.random((len(prompt), VOCABULARY)) < 0.6).astype(np.int32)
        mask[[2, 3, 4, 5]] = prefix[:, [2, 3, 4, 5]] = 1
        attention = np.ones_like(prompt)
        attention[0, 0] = 0
        yield Case(
            "BeamSearch",
            [
                prompt,
                one(longest),
                one(least),
                one(beams),
                one(returned),
                one(form.get("length_penalty", 1.0), np.float32),
                one(form.get("repetition"), np.float32),
                mask if "mask" in form else None,
                prefix if "prefix" in form else None,
                attention if "attention" in form else None,
            ],
            {
                "decoder": plain_decoder(i % 5),
                "eos_token_id": END,
                "pad_token_id": PAD,
                "early_stopping": form.get("early", 0),
                "no_repeat_ngram_size": form.get("ngram", 0),
            },
            outputs=3 if least == longest else 2,
            tolerance=1e-4,
            steps=0,
            note=str(form),
        )
    for i, hidden in itertools.product(range(9), (0, 1)):
        items = 1 + i % 3
        prompt = random.integers(0, VOCABULARY, (items, 5)).astype(np.int32)
        least = 9 if items > 1 else 4 if i == 3 else 0
        yield Case(
            "BeamSearch",
            [prompt, one(9), one(least), one(1 + i % 4), one(1), one(1.0, np.float32), one(1.3 if i % 2 else None, np.float32)],
            {
                "encoder": encoder(100 + i),
                "decoder": encoder_decoder(i, hidden),
                "eos_token_id": END,
                "pad_token_id": PAD,
                "decoder_start_token_id": 2,
                "model_type": 1,
            },
            outputs=3 if least == 9 else 2,
            tolerance=1e-4,
            steps=0,
            note=f"encoder {i}",
        )


def greedy_cases(random):
    for i, form in enumerate(
        [
            {},
            {"least": 7},
            {"repetition": 1.5},
            {"ngram": 2},
            {"mask": 1},
            {"prefix": 1},
            {"attention": 1},
            {},
            {"repetition": 0.7, "least": 5},
            {"longest": 20},
            {"ngram": 1},
        ]
    ):
        prompt = random.integers(0 if i % 2 else 2, VOCABULARY, (1 + i % 3, 3)).astype(np.int32)
        mask = (random.random(VOCABULARY) < 0.6).astype(np.int32)
        prefix = (random.random((len(prompt), VOCABULARY)) < 0.5).astype(np.int32)
        mask[2] = prefix[:, 2] = 1
        attention = np.ones_like(prompt)
        attention[0, 0] = 0
        yield Case(
            "GreedySearch",
            [
                prompt,
                one(form.get("longest", 10)),
                one(form.get("least", 0)),
                one(form.get("repetition", 1.0), np.float32),
                mask if "mask" in form else None,
                prefix if "prefix" in form else None,
                attention if "attention" in form else None,
            ],
            {"decoder": plain_decoder(i), "eos_token_id": END, "pad_token_id": PAD, "no_repeat_ngram_size": form.get("ngram", 0)},
            steps=0,
            padded=True,
            note=str(form),
        )


def sampling_cases(random):
    # Without presence_mask: ONNX Runtime's CPU kernel takes all penalties from the first token of the first row.
    for i, form in enumerate(
        [
            {"top_p": 0.9},
            {"top_p": 0.6, "temperature": 0.7},
            {"top_p": 0.8, "custom": 1},
            {"top_p": 0.95, "temperature": 1.5, "min_tokens_to_keep": 2},
            {"top_p": 0.5, "min_tokens_to_keep": 4},
            {"top_p": 0.4, "custom": 1},
            {"top_p": 0.7, "filter_value": -50.0},
        ]
        * 2
    ):
        prompt = random.integers(2, VOCABULARY, (1 + i % 3, 3)).astype(np.int32)
        yield Case(
            "Sampling",
            [prompt, one(12), one(0), one(1.2 if i % 4 == 0 else 1.0, np.float32), None, None, None, None, one(i * 7)],
            {"decoder": plain_decoder(i), "eos_token_id": END, "pad_token_id": PAD, "top_p": 0.0, **form},
            steps=0,
            padded=True,
            note=f"seed {i * 7}",
        )


def all_cases():
    random = np.random.default_rng(99)
    yield from greedy_cases(random)
    yield from sampling_cases(random)
    yield from beam_cases(random)
