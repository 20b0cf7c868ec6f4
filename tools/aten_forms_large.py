"""The larger operators of tools/aten_forms.py: convolutions, pools, normalisations, recurrent networks, attention, quantisation."""
import torch
import torch.nn.functional as F

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE_POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def padded(a, x, rank, value=0.0):
    """The input padded as ONNX says, unless both ends are alike: then the pads, for the call itself."""
    pads = a.get("pads", [0] * 2 * rank)
    if a.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise ValueError("no form: give pads")
    if pads[:rank] == pads[rank:]:
        return x, pads[:rank]
    return F.pad(x, [size for axis in reversed(range(rank)) for size in (pads[axis], pads[rank + axis])], value=value), [0] * rank


def conv(a, n, x, w, b=None):
    rank = x.dim() - 2
    x, pads = padded(a, x, rank)
    return CONV[rank](x, w, b, a.get("strides", [1] * rank), pads, a.get("dilations", [1] * rank), a.get("group", 1))


def conv_transpose(a, n, x, w, b=None):
    rank = x.dim() - 2
    pads = a.get("pads", [0] * 2 * rank)
    if "output_shape" in a or "auto_pad" in a or pads[:rank] != pads[rank:]:
        raise ValueError("no form")
    return CONV_TRANSPOSE[rank](x, w, b, a.get("strides", [1] * rank), pads[:rank], a.get("output_padding", [0] * rank), a.get("group", 1), a.get("dilations", [1] * rank))


def max_pool(a, n, x):
    rank = x.dim() - 2
    if n > 1:
        raise ValueError("no form: indices count otherwise")
    x, pads = padded(a, x, rank, float("-inf"))
    return MAX_POOL[rank](x, a["kernel_shape"], a.get("strides", [1] * rank), pads, a.get("dilations", [1] * rank), bool(a.get("ceil_mode", 0)))


def average_pool(a, n, x):
    rank = x.dim() - 2
    pads = a.get("pads", [0] * 2 * rank)
    if "auto_pad" in a or "dilations" in a or pads[:rank] != pads[rank:]:
        raise ValueError("no form")
    return AVERAGE_POOL[rank](x, a["kernel_shape"], a.get("strides", [1] * rank), pads[:rank], bool(a.get("ceil_mode", 0)), bool(a.get("count_include_pad", 0)))


def batch_normalization(a, n, x, scale, bias, mean, variance):
    if n > 1:
        raise ValueError("no form: training")
    return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, a.get("epsilon", 1e-5))


def layer_normalization(a, n, x, scale, bias=None):
    axis = a.get("axis", -1) % x.dim()
    result = torch.native_layer_norm(x, list(x.shape[axis:]), scale, bias, a.get("epsilon", 1e-5))
    return result if n > 1 else result[0]


def group_normalization(a, n, x, scale, bias):
    return F.group_norm(x, a["num_groups"], scale, bias, a.get("epsilon", 1e-5))


def instance_normalization(a, n, x, scale, bias):
    return F.instance_norm(x, None, None, scale, bias, True, 0.0, a.get("epsilon", 1e-5))


def rms_normalization(a, n, x, scale):
    axis = a.get("axis", -1) % x.dim()
    dims = list(range(axis, x.dim()))
    return x * torch.rsqrt((x * x).mean(dims, keepdim=True) + a.get("epsilon", 1e-5)) * scale


def lp_normalization(a, n, x):
    axis = a.get("axis", -1)
    norm = x.abs().sum(axis, keepdim=True) if a.get("p", 2) == 1 else (x * x).sum(axis, keepdim=True).sqrt()
    return x / norm


def lrn(a, n, x):
    size = a["size"]
    square = F.pad(x * x, [0, 0, 0, 0, (size - 1) // 2, size // 2])
    total = F.avg_pool3d(square.unsqueeze(1), [size, 1, 1], 1).squeeze(1) * size
    return x / (a.get("bias", 1.0) + a.get("alpha", 1e-4) / size * total) ** a.get("beta", 0.75)


def gemm(a, n, x, y, c=None):
    x = x.t() if a.get("transA") else x
    y = y.t() if a.get("transB") else y
    alpha, beta = a.get("alpha", 1.0), a.get("beta", 1.0)
    return torch.addmm(c, x, y, beta=beta, alpha=alpha) if c is not None else torch.mm(x, y) * alpha if alpha != 1 else torch.mm(x, y)


def resize(a, n, x, roi=None, scales=None, sizes=None):
    rank = x.dim() - 2
    mode, where = a.get("mode", "nearest"), a.get("coordinate_transformation_mode", "half_pixel")
    if "axes" in a or a.get("antialias") or a.get("exclude_outside") or a.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise ValueError("no form")
    size = sizes[2:] if sizes else None
    scale = scales[2:] if not sizes else None
    if mode == "nearest":
        return F.interpolate(x, size, scale, "nearest" if where == "asymmetric" and a.get("nearest_mode") == "floor" else "nearest-exact", recompute_scale_factor=None)
    kind = {"linear": {1: "linear", 2: "bilinear", 3: "trilinear"}[rank], "cubic": "bicubic"}[mode]
    return F.interpolate(x, size, scale, kind, align_corners=where == "align_corners")


def lstm(a, n, x, w, r, b=None, lengths=None, h=None, c=None, peephole=None):
    if a.get("layout") or lengths is not None or peephole is not None or "activations" in a or a.get("direction", "forward") != "forward":
        raise ValueError("no form")
    hidden = a["hidden_size"]
    order = torch.tensor([0, 2, 3, 1])  # ONNX has input, output, forget, cell; PyTorch input, forget, cell, output.
    turned = [weight[0].reshape(4, hidden, -1).index_select(0, order).reshape(4 * hidden, -1) for weight in (w, r)]
    bias = b if b is not None else torch.zeros(1, 8 * hidden)
    turned += [half.reshape(4, hidden).index_select(0, order).reshape(-1) for half in bias[0].chunk(2)]
    start = torch.zeros(1, x.shape[1], hidden)
    y, h, c = torch.lstm(x, [h if h is not None else start, c if c is not None else start], turned, True, 1, 0.0, False, False, False)
    return (y.unsqueeze(1), h, c)


def gru(a, n, x, w, r, b=None, lengths=None, h=None):
    """In steps: PyTorch's own GRU is ONNX's with linear_before_reset, and its calls are the same products and functions."""
    if a.get("layout") or lengths is not None or "activations" in a or a.get("direction", "forward") != "forward":
        raise ValueError("no form")
    hidden = a["hidden_size"]
    bias = b[0] if b is not None else torch.zeros(6 * hidden)
    wz, wr, wh = w[0].chunk(3)
    rz, rr, rh = r[0].chunk(3)
    bz, br, bh, cz, cr, ch = bias.chunk(6)
    state = h[0] if h is not None else torch.zeros(x.shape[1], hidden)
    steps = []
    for step in x.unbind(0):
        update = torch.sigmoid(F.linear(step, wz, bz) + F.linear(state, rz, cz))
        reset = torch.sigmoid(F.linear(step, wr, br) + F.linear(state, rr, cr))
        inner = F.linear(reset * state, rh, ch) if not a.get("linear_before_reset") else reset * F.linear(state, rh, ch)
        new = torch.tanh(F.linear(step, wh, bh) + inner)
        state = (1 - update) * new + update * state
        steps.append(state)
    return (torch.stack(steps).unsqueeze(1), state.unsqueeze(0))


def rnn(a, n, x, w, r, b=None, lengths=None, h=None):
    if a.get("layout") or lengths is not None or "activations" in a or a.get("direction", "forward") != "forward":
        raise ValueError("no form")
    hidden = a["hidden_size"]
    bias = b[0] if b is not None else torch.zeros(2 * hidden)
    state = h[0] if h is not None else torch.zeros(x.shape[1], hidden)
    steps = []
    for step in x.unbind(0):
        state = torch.tanh(F.linear(step, w[0], bias[:hidden]) + F.linear(state, r[0], bias[hidden:]))
        steps.append(state)
    return (torch.stack(steps).unsqueeze(1), state.unsqueeze(0))


def attention(a, n, q, k, v, mask=None, *rest):
    """Written out, since what scaled_dot_product_attention calls differs by device."""
    if n > 1 or rest or a.get("softcap") or a.get("is_causal") or "qk_matmul_output_mode" in a:
        raise ValueError("no form")
    shape = q.shape
    if q.dim() == 3:
        heads, kv_heads = a["q_num_heads"], a["kv_num_heads"]
        q = q.reshape(shape[0], shape[1], heads, -1).transpose(1, 2)
        k, v = (each.reshape(each.shape[0], each.shape[1], kv_heads, -1).transpose(1, 2) for each in (k, v))
    if q.shape[1] != k.shape[1]:
        k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
    scores = torch.matmul(q * a.get("scale", q.shape[-1] ** -0.5), k.transpose(-1, -2))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    y = torch.matmul(F.softmax(scores, -1), v)
    return y.transpose(1, 2).reshape(shape[0], shape[1], -1) if len(shape) == 3 else y


def along(x, value, axis):
    """Per-tensor or per-axis scales, as they broadcast."""
    return value if value.dim() == 0 or value.numel() == 1 else value.reshape([-1 if i == axis % x.dim() else 1 for i in range(x.dim())])


def dequantize(a, n, x, scale, zero=None):
    if a.get("block_size"):
        raise ValueError("no form")
    axis = a.get("axis", 1)
    whole = x.to(torch.int32)
    shifted = whole - along(x, zero, axis).to(torch.int32) if zero is not None else whole
    return shifted.to(scale.dtype) * along(x, scale, axis)


def quantize(a, n, x, scale, zero=None):
    if a.get("block_size") or "output_dtype" in a:
        raise ValueError("no form")
    axis, kind = a.get("axis", 1), zero.dtype if zero is not None else torch.uint8
    shift = along(x, zero, axis).to(x.dtype) if zero is not None else 0
    limits = torch.iinfo(kind)
    return torch.clamp(torch.round(x / along(x, scale, axis)) + shift, limits.min, limits.max).to(kind)


def dynamic_quantize(a, n, x):
    low, high = torch.clamp(x.amin(), max=0.0), torch.clamp(x.amax(), min=0.0)
    scale = (high - low) / 255
    zero = torch.clamp(torch.round(-low / scale), 0, 255)
    return (torch.clamp(torch.round(x / scale) + zero, 0, 255).to(torch.uint8), scale, zero.to(torch.uint8))


def matmul_integer(a, n, x, y, xz=None, yz=None):
    """Devices multiply integers by functions of their own; in plain ATen the sums are those of floats, exact below 2^24."""
    x, y = x.float(), y.float()
    x = x - xz.float() if xz is not None else x
    y = y - yz.float() if yz is not None else y
    return torch.matmul(x, y).to(torch.int32)


def conv_integer(a, n, x, w, xz=None, wz=None):
    x = x.float() - (xz.float() if xz is not None else 0)
    return conv(a, n, x, w.float() - (wz.float() if wz is not None else 0)).to(torch.int32)


def stft(a, n, signal, step, window=None, length=None):
    size = length[0] if isinstance(length, list) else length if length is not None else window.shape[0]
    frames = signal.squeeze(-1).unfold(-1, size, step if isinstance(step, int) else step[0])
    frames = frames * window if window is not None else frames
    found = torch.fft.rfft(frames, dim=-1) if a.get("onesided", 1) else torch.fft.fft(frames, dim=-1)
    return torch.view_as_real(found)


def dft(a, n, x, length=None, axis=None):
    axis = (axis if isinstance(axis, int) else axis[0]) if axis is not None else a.get("axis", 1 if "axis" in a else -2)
    if x.shape[-1] == 2:
        value = torch.view_as_complex(x.contiguous())
        axis = axis - 1 if axis < 0 else axis
        found = torch.fft.ifft(value, dim=axis + (1 if axis < -1 else 0)) if a.get("inverse") else torch.fft.fft(value, dim=axis + (1 if axis < -1 else 0))
        return torch.view_as_real(found)
    value = x.squeeze(-1)
    dim = axis + 1 if axis < 0 else axis
    return torch.view_as_real(torch.fft.rfft(value, dim=dim) if a.get("onesided") else torch.fft.fft(value, dim=dim))


def grid_sample(a, n, x, grid):
    mode = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}[a.get("mode", "linear")]
    return F.grid_sample(x, grid, mode, a.get("padding_mode", "zeros"), bool(a.get("align_corners", 0)))


def global_pool(function):
    return lambda a, n, x: function(x, list(range(2, x.dim())), True)


def nll_loss(a, n, x, target, weight=None):
    return F.nll_loss(x, target, weight, ignore_index=a.get("ignore_index", -100), reduction=a.get("reduction", "mean"))


def rotary(a, n, x, cos, sin, positions=None):
    if a.get("interleaved") or a.get("rotary_embedding_dim") or x.dim() != 4:
        raise ValueError("no form")
    if positions is not None:
        cos, sin = F.embedding(positions, cos), F.embedding(positions, sin)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


def space_to_depth(a, x):
    size = a["blocksize"]
    b, c, h, w = x.shape
    return x.reshape(b, c, h // size, size, w // size, size).permute(0, 3, 5, 1, 2, 4).reshape(b, c * size**2, h // size, w // size)


LARGE = {
    "space_to_depth": space_to_depth,
    "nodes": {"Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": max_pool, "AveragePool": average_pool, "BatchNormalization": batch_normalization,
              "LayerNormalization": layer_normalization, "GroupNormalization": group_normalization, "InstanceNormalization": instance_normalization,
              "RMSNormalization": rms_normalization, "LpNormalization": lp_normalization, "LRN": lrn, "Gemm": gemm, "LSTM": lstm, "GRU": gru, "RNN": rnn,
              "Attention": attention, "DequantizeLinear": dequantize, "QuantizeLinear": quantize, "DynamicQuantizeLinear": dynamic_quantize,
              "MatMulInteger": matmul_integer, "ConvInteger": conv_integer, "GridSample": grid_sample, "GlobalAveragePool": global_pool(torch.mean),
              "GlobalMaxPool": global_pool(torch.amax), "NegativeLogLikelihoodLoss": nll_loss, "RotaryEmbedding": rotary},
    "with_lists": {"Resize": (resize, (1, 2, 3)), "STFT": (stft, (1, 3)), "DFT": (dft, (1, 2))},
}
