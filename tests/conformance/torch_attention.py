"""Answers of PyTorch: attention, rotary embedding, recurrent layers."""
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def heads_of(x, count):
    return x if x.dim() == 4 else x.reshape(*x.shape[:2], count, -1).transpose(1, 2)


def mask_of(call, batch, heads, queries, keys, past):
    """What is added to the scores; none where all may look at all."""
    if call[3] is not None and call[3].dtype not in (torch.bool, torch.float64):
        raise ValueError("a mask of integers")
    mask = torch.zeros(batch, heads, queries, keys, dtype=torch.float64)
    if call[3] is not None:
        given = call[3]
        if given.shape[-1] != keys:
            raise ValueError("a short mask")
        mask = mask + (torch.zeros_like(mask).masked_fill(~given, -torch.inf) if given.dtype == torch.bool else given)
    if call("is_causal"):
        mask = mask.masked_fill(~torch.ones(queries, keys).tril(past).bool(), -torch.inf)
    if torch.isneginf(mask).all(-1).any():
        raise ValueError("a row that sees nothing")
    return mask


def attention(call):
    windows = [call(name, -1) for name in ("left_window_size", "right_window_size")]
    if call("softcap") or call[6] is not None or call.wants(3) or windows != [-1, -1]:
        raise ValueError("scaled_dot_product_attention has no such form")
    many, few = call("q_num_heads"), call("kv_num_heads")
    q, k, v = heads_of(call[0], many), heads_of(call[1], few), heads_of(call[2], few)
    past = 0 if call[4] is None else call[4].shape[2]
    k = k if call[4] is None else torch.cat([call[4], k], dim=2)
    v = v if call[5] is None else torch.cat([call[5], v], dim=2)
    mask = mask_of(call, q.shape[0], q.shape[1], q.shape[2], k.shape[2], past)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=call("scale"), enable_gqa=q.shape[1] != k.shape[1])
    y = y if call[0].dim() == 4 else y.transpose(1, 2).reshape(*call[0].shape[:2], -1)
    return y, k, v


def packed_self(call):
    """com.microsoft:PackedAttention: each sequence by itself."""
    projected = call[0] @ call[1] + call[2]
    count = call("num_heads")
    sizes = call("qkv_hidden_sizes") or [projected.shape[1] // 3] * 3
    return packed(call, *torch.split(projected, list(sizes), dim=1), count, call[4], call[5])


def packed_heads(call):
    count = call("num_heads")
    if call[0].dim() == 4:
        q, k, v = (call[0][:, :, i].reshape(call[0].shape[0], -1) for i in range(3))
    else:
        q, k, v = call[0], call[1], call[2]
    if call[3] is not None:
        q, k, v = (x + b for x, b in zip((q, k, v), torch.split(call[3], [q.shape[1], k.shape[1], v.shape[1]])))
    return packed(call, q, k, v, count, call[5], call[6])


def packed(call, q, k, v, count, starts, bias):
    if call("mask_filter_value", -10000.0) > -1000:
        raise ValueError("other sequences show through")
    rows = []
    for i, (start, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist())):
        one = [x[start:end].reshape(1, end - start, count, -1).transpose(1, 2) for x in (q, k, v)]
        shift = None if bias is None else bias.expand(starts.numel() - 1, count, *bias.shape[2:])[i:i + 1, :, : end - start, : end - start]
        y = F.scaled_dot_product_attention(*one, attn_mask=shift, scale=call("scale") or None)
        rows.append(y.transpose(1, 2).reshape(end - start, -1))
    return torch.cat(rows)


def rotary(call):
    """Turns pairs as complex numbers."""
    x, cos, sin = call[0], call[1], call[2]
    heads = call("num_heads")
    x = x if x.dim() == 4 else x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)
    turns = torch.complex(cos, sin)
    turns = (turns if call[3] is None else turns[call[3]])[:, None]
    size = call("rotary_embedding_dim") or x.shape[-1]
    moving, still = x[..., :size], x[..., size:]
    if call("interleaved"):
        y = torch.view_as_real(torch.view_as_complex(moving.reshape(*moving.shape[:-1], -1, 2)) * turns).flatten(-2)
    else:
        turned = torch.complex(*moving.chunk(2, dim=-1)) * turns
        y = torch.cat([turned.real, turned.imag], dim=-1)
    y = torch.cat([y, still], dim=-1)
    return y if call[0].dim() == 4 else y.transpose(1, 2).reshape(call[0].shape)


GATES = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}  # ONNX's iofc, zrh in PyTorch's order ifgo, rzn.
LAYERS = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}
USUAL = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def reordered(weights, op):
    parts = weights.chunk(len(GATES[op]), dim=0)
    return torch.cat([parts[i] for i in GATES[op]])


def check_form(call):
    named = [each.decode() for each in call("activations") or []]
    count = len(USUAL[call.op])
    relu = call.op == "RNN" and named[:1] == ["Relu"]
    if named and not relu and [named[i:i + count] for i in range(0, len(named), count)] != [USUAL[call.op]] * (len(named) // count):
        raise ValueError("other activations")
    if call.has("clip") or call("input_forget", 0) or (call.op == "LSTM" and call[7] is not None):
        raise ValueError("PyTorch's layer has no such form")
    if call.op == "GRU" and not call("linear_before_reset"):
        raise ValueError("PyTorch resets after the product")
    return "relu" if relu else "tanh"


def layer_of(call, both):
    """PyTorch's layer with the node's weights; a layer of one direction that runs backwards is half of one of two."""
    kind = check_form(call)
    hidden, op = call("hidden_size"), call.op
    options = {"nonlinearity": kind} if op == "RNN" else {}
    layer = LAYERS[op](call[1].shape[2], hidden, bidirectional=both, dtype=torch.float64, **options)
    with torch.no_grad():
        for i, suffix in enumerate(["", "_reverse"][: 2 if both else 1]):
            at = i if call("direction") == "bidirectional" else 0
            getattr(layer, "weight_ih_l0" + suffix).copy_(reordered(call[1][at], op))
            getattr(layer, "weight_hh_l0" + suffix).copy_(reordered(call[2][at], op))
            bias = torch.zeros(2 * call[1].shape[1], dtype=torch.float64) if call[3] is None else call[3][at]
            inner, outer = bias.chunk(2)
            getattr(layer, "bias_ih_l0" + suffix).copy_(reordered(inner, op))
            getattr(layer, "bias_hh_l0" + suffix).copy_(reordered(outer, op))
    return layer


@torch.no_grad()
def recurrent(call):
    x = call[0].transpose(0, 1) if call("layout") else call[0]
    steps, batch = x.shape[:2]
    direction, hidden = call("direction"), call("hidden_size")
    both = direction != "forward"
    layer = layer_of(call, both)
    counts = call[4]

    def initial(i):
        if call[i] is None:
            return torch.zeros(2 if both else 1, batch, hidden, dtype=torch.float64)
        state = call[i].transpose(0, 1) if call("layout") else call[i]
        return state.repeat(2, 1, 1) if direction == "reverse" else state.contiguous()
    state = (initial(5), initial(6)) if call.op == "LSTM" else initial(5)
    if counts is not None:
        if int(counts.min()) < 1:
            raise ValueError("an empty sequence")
        y, last = layer(pack_padded_sequence(x, counts.long(), enforce_sorted=False), state)
        y, _ = pad_packed_sequence(y, total_length=steps)
    else:
        y, last = layer(x, state)
    y = y.reshape(steps, batch, -1, hidden).transpose(1, 2)
    lasts = list(last) if call.op == "LSTM" else [last]
    if direction == "reverse":
        y, lasts = y[:, 1:], [each[1:] for each in lasts]
    if call("layout"):
        y, lasts = y.permute(2, 0, 1, 3), [each.transpose(0, 1) for each in lasts]
    return y, *lasts


def causal_conv(call):
    """A depthwise convolution of what came before and what comes."""
    x, weight, bias, state = call[0], call[1], call[2], call[3]
    kept = weight.shape[-1] - 1
    before = torch.zeros(*x.shape[:2], kept, dtype=x.dtype) if state is None else state
    whole = torch.cat([before, x], dim=-1)
    y = F.conv1d(whole, weight, bias, groups=x.shape[1])
    y = F.silu(y) if call("activation", "none") in ("silu", "swish") else y
    return y, whole[..., whole.shape[-1] - kept:]


ANSWERS = {
    "Attention": attention, "RotaryEmbedding": rotary, "LSTM": recurrent, "GRU": recurrent, "RNN": recurrent,
    "com.microsoft:PackedAttention": packed_self, "com.microsoft:PackedMultiHeadAttention": packed_heads,
    "CausalConvWithState": causal_conv, "SwiGLU": lambda c: c[0] * torch.sigmoid(c("alpha") * c[0]) * c[1],
}
