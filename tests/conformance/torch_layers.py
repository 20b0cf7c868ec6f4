"""Answers of PyTorch: convolutions, pools, normalisations, products, losses, resampling."""
import math

import numpy as np
import torch
import torch.nn.functional as F

USUAL_EPSILON, TINY_EPSILON = float(np.float32(1e-5)), float(np.float32(1e-12))  # Attributes are float32.
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


def listed(call, name, otherwise):
    return list(call(name) or otherwise)


def same_pads(call, sizes, kernel, strides, dilations):
    """Padding before and after each axis, from `pads` or `auto_pad`."""
    mode = call("auto_pad", "NOTSET")
    count = len(sizes)
    if mode == "NOTSET":
        pads = listed(call, "pads", [0] * 2 * count)
        return list(zip(pads[:count], pads[count:]))
    if mode == "VALID":
        return [(0, 0)] * count
    pairs = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations):
        need = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        small, large = need // 2, need - need // 2
        pairs.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return pairs


def padded(x, pairs, value=0):
    return F.pad(x, [each for pair in reversed(pairs) for each in pair], value=value)


def channels_first(call, x):
    return x.movedim(-1, 1) if call("layout") == "NHWC" else x


def channels_back(call, x):
    return x.movedim(1, -1) if call("layout") == "NHWC" else x


def convolved(call, x, weight, bias):
    count = weight.dim() - 2
    kernel = list(weight.shape[2:])
    strides, dilations = listed(call, "strides", [1] * count), listed(call, "dilations", [1] * count)
    x = padded(x, same_pads(call, x.shape[2:], kernel, strides, dilations))
    return CONV[count](x, weight, bias, stride=strides, dilation=dilations, groups=call("group", 1))


def conv(call):
    return channels_back(call, convolved(call, channels_first(call, call[0]), call[1], call[2]))


def conv_integer(call):
    x, weight = call[0].double(), call[1].double()
    x = x if call[2] is None else x - call[2].double()
    if call[3] is not None:
        weight = weight - call[3].double().reshape(-1, *[1] * (weight.dim() - 1))
    return convolved(call, x, weight, None).to(torch.int32)


def conv_transpose(call):
    x, weight, count = call[0], call[1], call[1].dim() - 2
    strides, dilations = listed(call, "strides", [1] * count), listed(call, "dilations", [1] * count)
    extra = listed(call, "output_padding", [0] * count)
    full = TRANSPOSED[count](x, weight, None, stride=strides, dilation=dilations, groups=call("group"))
    sizes = [s + e for s, e in zip(full.shape[2:], extra)]
    if call("output_shape"):
        pads = [(size - wanted) for size, wanted in zip(sizes, call("output_shape")[-count:])]
    elif call("auto_pad").startswith("SAME"):
        pads = [size - n * stride for size, n, stride in zip(sizes, x.shape[2:], strides)]
    else:
        pads = None
    if pads is None:
        pairs = same_pads(call, x.shape[2:], weight.shape[2:], strides, dilations)
    elif call("auto_pad") == "SAME_UPPER":
        pairs = [(each // 2, each - each // 2) for each in pads]
    else:
        pairs = [(each - each // 2, each // 2) for each in pads]
    y = padded(full, [(-first, e - last) for (first, last), e in zip(pairs, extra)])
    return y if call[2] is None else y + call[2].reshape(-1, *[1] * count)


def col2im(call):
    pads = listed(call, "pads", [0] * 4)
    if pads[:2] != pads[2:]:
        raise ValueError("F.fold pads both ends alike")
    return F.fold(call[0], call.whole(1), call.whole(2), dilation=listed(call, "dilations", [1, 1]), padding=pads[:2],
                  stride=listed(call, "strides", [1, 1]))


class Windows:
    """Where a pool's windows lie: padding as counted, and the further rows that ceil_mode looks at."""

    def __init__(self, call, x):
        self.kernel = list(call("kernel_shape"))
        count = len(self.kernel)
        self.strides, self.dilations = listed(call, "strides", [1] * count), listed(call, "dilations", [1] * count)
        self.pairs = same_pads(call, x.shape[2:], self.kernel, self.strides, self.dilations)
        self.beyond = []
        for size, (first, last), k, stride, dilation in zip(x.shape[2:], self.pairs, self.kernel, self.strides, self.dilations):
            span = (k - 1) * dilation + 1
            windows = (size + first + last - span) // stride + 1
            if call("ceil_mode", 0) and call("auto_pad", "NOTSET") == "NOTSET":
                windows = -(-(size + first + last - span) // stride) + 1
                if (windows - 1) * stride >= size + first:  # The last window must start inside what it pools or before it.
                    windows -= 1
            self.beyond.append((0, max((windows - 1) * stride + span - (size + first + last), 0)))

    def sums(self, x):
        """Sums over the windows of what is padded already."""
        ones = torch.ones(x.shape[1], 1, *self.kernel, dtype=x.dtype)
        return CONV[len(self.kernel)](padded(x, self.beyond), ones, stride=self.strides, dilation=self.dilations, groups=x.shape[1])


def average_pool(call):
    x = channels_first(call, call[0])
    windows = Windows(call, x)
    ones = torch.ones_like(x[:1, :1])
    counted = padded(ones, windows.pairs, value=1 if call("count_include_pad") else 0)
    return channels_back(call, windows.sums(padded(x, windows.pairs)) / windows.sums(counted))


def lp_pool(call):
    x = channels_first(call, call[0])
    windows = Windows(call, x)
    return channels_back(call, windows.sums(padded(x.abs() ** call("p"), windows.pairs)) ** (1 / call("p")))


def max_pool(call):
    x = channels_first(call, call[0])
    windows = Windows(call, x)
    pairs = [(first, last + more) for (first, last), (_, more) in zip(windows.pairs, windows.beyond)]
    lowest = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    wide = padded(x, pairs, value=lowest)
    values, at = MAX_POOL[len(pairs)](wide.double(), windows.kernel, windows.strides, 0, windows.dilations, return_indices=True)
    if not call.wants(1):
        return channels_back(call, values.to(x.dtype))
    index, scale, places = torch.zeros_like(at), 1, []
    for (first, _), size in zip(reversed(pairs), reversed(wide.shape[2:])):
        places.insert(0, at % size - first)
        at = at // size
    order = range(len(pairs)) if call("storage_order") else reversed(range(len(pairs)))
    for axis in order:
        index += places[axis] * scale
        scale *= x.shape[2 + axis]
    planes = torch.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * len(pairs))
    return values.to(x.dtype), index + planes * math.prod(x.shape[2:])


def space(call):
    first = 1 if call("layout") == "NHWC" else 2
    return tuple(range(first, first + call[0].dim() - 2))


def global_lp(call):
    return torch.linalg.vector_norm(call[0], ord=call("p"), dim=space(call), keepdim=True)


def over_space(function):
    return lambda call: function(call[0], dim=space(call), keepdim=True)


def softmax(call):
    return F.softmax(call[0], dim=call("axis"))


def hardmax(call):
    axis = call("axis")
    return F.one_hot(torch.argmax(call[0], dim=axis), call[0].shape[axis]).movedim(-1, axis).double()


def layer_normalization(call):
    axis = call("axis") % call[0].dim()
    shape = call[0].shape[axis:]
    fit = lambda x: None if x is None else x.expand(shape)
    y = F.layer_norm(call[0], shape, fit(call[1]), fit(call[2]), eps=call("epsilon"))
    dims = tuple(range(axis, call[0].dim()))
    deviation, centre = torch.var_mean(call[0], dim=dims, correction=0, keepdim=True)
    return y, centre, torch.rsqrt(deviation + call("epsilon"))


def rms_normalization(call):
    axis = call("axis") % call[0].dim()
    shape = call[0].shape[axis:]
    return F.rms_norm(call[0], shape, None, eps=call("epsilon")) * call[1]


def batch_normalization(call):
    x, scale, bias, mean, variance = call.inputs
    if not call("training_mode"):
        return F.batch_norm(x, mean, variance, scale, bias, eps=call("epsilon"))
    y = F.batch_norm(x, None, None, scale, bias, training=True, eps=call("epsilon"))
    dims = [0, *range(2, x.dim())]
    keep = call("momentum")
    new_variance, new_mean = torch.var_mean(x, dim=dims, correction=0)
    return y, mean * keep + new_mean * (1 - keep), variance * keep + new_variance * (1 - keep)


def local_response(call):
    x = torch.flip(channels_first(call, call[0]), [1])  # An even size has its longer half behind in ONNX, before in PyTorch.
    y = F.local_response_norm(x, call("size"), alpha=call("alpha"), beta=call("beta"), k=call("bias"))
    return channels_back(call, torch.flip(y, [1]))


def mean_variance(call):
    deviation, mean = torch.var_mean(call[0], dim=call("axes"), correction=0, keepdim=True)
    return (call[0] - mean) / (torch.sqrt(deviation) + 1e-9)


def lp_normalization(call):
    return F.normalize(call[0], p=call("p"), dim=call("axis"), eps=1e-300)


def group_norm_microsoft(call):
    """NHWC or NCHW, with SiLU if asked for; what SkipGroupNorm adds comes first."""
    x, last = call[0], call("channels_last", 1)
    x = x.movedim(-1, 1) if last else x
    skip = None
    if call.op == "SkipGroupNorm":
        shape = call[3].shape if call[3].dim() == x.dim() else (call[3].shape[0], *[1] * (x.dim() - 2), call[3].shape[1])
        skip = call[3].reshape(shape)
        x = x + (skip.movedim(-1, 1) if last else skip)
        x = x if call[4] is None else x + call[4].reshape(-1, *[1] * (x.dim() - 2))
    y = F.group_norm(x, call("groups"), call[1], call[2], eps=call("epsilon", USUAL_EPSILON))
    y = F.silu(y) if call("activation") else y
    return [each.movedim(1, -1) if last else each for each in (y, x)]


def bias_split_gelu(call):
    left, right = (call[0] + call[1]).chunk(2, dim=-1)
    return left * F.gelu(right)


def skip_layer_normalization(call):
    simplified = call.op == "SkipSimplifiedLayerNormalization"
    if simplified and (call.wants(1) or call.wants(2)):
        raise ValueError("it has no mean")
    x = call[0] + call[1].expand(call[0].shape)
    bias = call[3] if simplified else call[4]
    x = x if bias is None else x + bias
    epsilon, shape = call("epsilon", TINY_EPSILON), x.shape[-1:]
    y = F.rms_norm(x, shape, call[2], eps=epsilon) if simplified else F.layer_norm(x, shape, call[2], call[3], eps=epsilon)
    deviation, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return y, mean, torch.rsqrt(deviation + epsilon), x


def gemm(call):
    a = call[0].T if call("transA") else call[0]
    b = call[1].T if call("transB") else call[1]
    if not a.is_floating_point():
        raise ValueError("scaled integers")
    return call("alpha") * (a @ b) if call[2] is None else torch.addmm(call[2], a, b, beta=call("beta"), alpha=call("alpha"))


def matmul_integer(call):
    a, b = call[0].double(), call[1].double()
    if call[2] is not None:
        zero = call[2].double()
        zero = zero.reshape(()) if zero.numel() == 1 else zero
        a = a - (zero.unsqueeze(-1) if zero.dim() == 1 else zero)
    b = b if call[3] is None else b - call[3].double()
    return torch.matmul(a, b).to(torch.int32)


def fused_matmul(call):
    def turned(x, transposed, batched):
        if batched:
            x = x.movedim(0, -2)
        return x.transpose(-1, -2) if transposed and x.dim() > 1 else x
    a = turned(call[0], call("transA", 0), call("transBatchA", 0))
    b = turned(call[1], call("transB", 0), call("transBatchB", 0))
    return call("alpha", 1.0) * torch.matmul(a, b)


def losses(function):
    def of(call):
        ignored = call("ignore_index")
        weight = call[2]
        classes = call[0].shape[1]
        if ignored is not None and 0 <= ignored < classes and weight is None:
            weight = None
        return function(call[0], call[1].long(), weight=weight, reduction=call("reduction"),
                        ignore_index=-100 if ignored is None else ignored)
    return of


def cross_entropy(call):
    return losses(F.cross_entropy)(call), F.log_softmax(call[0], dim=1)


def affine_grid(call):
    return F.affine_grid(call[0], call.whole(1), align_corners=bool(call("align_corners")))


def grid_sample(call):
    modes = {"linear": "bilinear", "cubic": "bicubic"}
    mode = call("mode", "bilinear")
    return F.grid_sample(call[0], call[1], mode=modes.get(mode, mode), padding_mode=call("padding_mode", "zeros"),
                         align_corners=bool(call("align_corners", 0)))


def dropout(call):
    if call[2] is not None and bool(call[2]):
        raise ValueError("what is dropped is chance")
    return call[0], torch.ones_like(call[0]).bool()


INTERPOLATED = {("nearest", 3): "nearest", ("nearest", 4): "nearest", ("nearest", 5): "nearest", ("linear", 3): "linear",
                ("linear", 4): "bilinear", ("linear", 5): "trilinear", ("cubic", 4): "bicubic"}


def resize(call):
    """Where ONNX's coordinates are those of F.interpolate: two leading dimensions stay as they are, aligned corners have whole sizes, and a filter
    against aliasing leaves out what lies outside."""
    x, where = call[0], call("coordinate_transformation_mode")
    if call.has("axes") or call("keep_aspect_ratio_policy") != "stretch" or bool(call("exclude_outside")) != bool(call("antialias")):
        raise ValueError("F.interpolate has no such form")
    mode = INTERPOLATED[call("mode"), x.dim()]
    options = {}
    if mode == "nearest":
        if where == "half_pixel" and call("nearest_mode") == "round_prefer_ceil":
            mode = "nearest-exact"
        elif (where, call("nearest_mode")) != ("asymmetric", "floor"):
            raise ValueError("other neighbours")
    elif where == "align_corners":
        options["align_corners"] = True
    elif where == "half_pixel" and (call("mode") == "linear" or call("cubic_coeff_a") == (-0.5 if call("antialias") else -0.75)):
        options["align_corners"] = False
    else:
        raise ValueError("other coordinates")
    if call("antialias"):
        options["antialias"] = True
    if not x.is_floating_point():
        raise ValueError("F.interpolate rounds integers in its own way")
    if len(call) > 2 and call[2] is not None and call[2].numel():
        if call("antialias") or where == "align_corners" and any(float(size * s) % 1 for size, s in zip(x.shape, call[2])):
            raise ValueError("F.interpolate goes by whole sizes")
        scales = [float(each) for each in call[2]]
        if scales[:2] != [1.0, 1.0]:
            raise ValueError("leading dimensions change")
        return F.interpolate(x, scale_factor=scales[2:], mode=mode, **options)
    sizes = call.whole(3)
    if sizes[:2] != list(x.shape[:2]):
        raise ValueError("leading dimensions change")
    return F.interpolate(x, size=sizes[2:], mode=mode, **options)


ANSWERS = {
    "Conv": conv, "ConvInteger": conv_integer, "ConvTranspose": conv_transpose, "Col2Im": col2im, "AveragePool": average_pool,
    "LpPool": lp_pool, "MaxPool": max_pool, "GlobalAveragePool": over_space(torch.mean), "GlobalMaxPool": over_space(torch.amax),
    "GlobalLpPool": global_lp, "Softmax": softmax, "LogSoftmax": lambda c: F.log_softmax(c[0], dim=c("axis")), "Hardmax": hardmax,
    "LayerNormalization": layer_normalization, "RMSNormalization": rms_normalization, "BatchNormalization": batch_normalization,
    "InstanceNormalization": lambda c: F.instance_norm(c[0], weight=c[1], bias=c[2], eps=c("epsilon")),
    "GroupNormalization": lambda c: F.group_norm(c[0], c("num_groups"), c[1], c[2], eps=c("epsilon")), "LRN": local_response,
    "MeanVarianceNormalization": mean_variance, "LpNormalization": lp_normalization, "com.microsoft:GroupNorm": group_norm_microsoft,
    "com.microsoft:SkipGroupNorm": group_norm_microsoft, "com.microsoft:BiasSplitGelu": bias_split_gelu,
    "com.microsoft:SkipLayerNormalization": skip_layer_normalization,
    "com.microsoft:SkipSimplifiedLayerNormalization": skip_layer_normalization, "Gemm": gemm,
    "MatMul": lambda c: torch.matmul(c[0], c[1]), "MatMulInteger": matmul_integer, "com.microsoft:FusedMatMul": fused_matmul,
    "Einsum": lambda c: torch.einsum(c("equation"), *c.inputs), "Det": lambda c: torch.linalg.det(c[0]),
    "com.microsoft:Inverse": lambda c: torch.linalg.inv(c[0]), "NegativeLogLikelihoodLoss": losses(F.nll_loss),
    "SoftmaxCrossEntropyLoss": cross_entropy, "AffineGrid": affine_grid, "GridSample": grid_sample, "Resize": resize,
    "Dropout": dropout,
}
