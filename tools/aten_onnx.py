"""ATen calls and the ONNX operators that do the same, for tools/trace_parts.py: what tracing ONNX's operator cases does not tell one by one, from the
definitions of both. "A+B" needs both, "A|B" is one or the other, by the arguments of the call."""

SAME = {
    "conv1d conv1d.padding conv2d conv2d.padding conv3d conv3d.padding": "Conv",
    "conv_transpose1d conv_transpose2d.input conv_transpose3d.input": "ConvTranspose",
    "_convolution _convolution.deprecated": "Conv|ConvTranspose",
    "mm bmm mv dot matmul": "MatMul", "addmm": "Gemm", "baddbmm addmv addbmm": "MatMul+Add", "linear": "MatMul+Add", "einsum": "Einsum",
    "t transpose.int numpy_T swapaxes movedim.int movedim.intlist": "Transpose", "reshape _unsafe_view view_as _reshape_alias unflatten.int": "Reshape",
    "flatten.using_ints": "Reshape",
    "clone detach alias lift_fresh lift_fresh_copy contiguous copy dropout feature_dropout alpha_dropout": "Identity",
    "to.dtype to.dtype_layout to.device to.other type_as": "Cast", "expand_as broadcast_to": "Expand",
    "select.int": "Gather", "slice.Tensor narrow": "Slice", "split.Tensor split_with_sizes chunk unbind.int tensor_split.sections": "Split",
    "squeeze.dim squeeze": "Squeeze", "stack": "Unsqueeze+Concat", "concat": "Concat", "tile repeat_interleave.self_int": "Tile",
    "batch_norm native_batch_norm _native_batch_norm_legit_no_training _batch_norm_impl_index": "BatchNormalization",
    "layer_norm": "LayerNormalization", "group_norm": "GroupNormalization", "instance_norm": "InstanceNormalization", "softmax.int _safe_softmax": "Softmax",
    "log_softmax.int": "LogSoftmax",
    "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices max_pool1d_with_indices": "MaxPool",
    "avg_pool1d avg_pool2d avg_pool3d": "AveragePool",
    "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d": "GlobalAveragePool|AveragePool",
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d": "GlobalMaxPool|MaxPool",
    "argmax": "ArgMax", "argmin": "ArgMin", "sum sum.dim_IntList": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin",
    "max.dim": "ReduceMax+ArgMax", "min.dim": "ReduceMin+ArgMin", "prod": "ReduceProd", "any any.dim any.dims": "ReduceMax", "all all.dim all.dims": "ReduceMin",
    "linalg_vector_norm norm.ScalarOpt_dim": "ReduceL2", "var.correction": "ReduceMean+Sub+Mul", "std.correction": "ReduceMean+Sub+Mul+Sqrt",
    "index_select embedding": "Gather", "gather": "GatherElements", "index.Tensor": "GatherND", "scatter.src scatter.value scatter_add": "ScatterElements",
    "index_put": "ScatterND", "masked_fill.Scalar masked_fill.Tensor where.ScalarOther where.ScalarSelf where.Scalar": "Where", "nonzero": "NonZero",
    "add.Scalar": "Add", "sub.Scalar rsub.Scalar rsub.Tensor": "Sub", "mul.Scalar square": "Mul", "div.Tensor div.Scalar": "Div",
    "div.Tensor_mode div.Scalar_mode floor_divide": "Div+Floor", "remainder.Scalar remainder.Tensor fmod.Tensor fmod.Scalar": "Mod",
    "pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar": "Pow", "rsqrt": "Sqrt+Reciprocal", "log1p": "Add+Log", "expm1": "Exp+Sub", "log2 log10": "Log+Div",
    "exp2": "Pow", "maximum max.other": "Max", "minimum min.other": "Min", "clamp clamp_min clamp_max hardtanh relu6": "Clip", "addcmul": "Mul+Add", "addcdiv": "Div+Add",
    "lerp.Scalar lerp.Tensor": "Sub+Mul+Add", "eq.Scalar": "Equal", "ne.Scalar ne.Tensor": "Equal+Not", "lt.Scalar": "Less", "le.Scalar": "LessOrEqual",
    "gt.Scalar": "Greater", "ge.Scalar": "GreaterOrEqual", "silu": "Sigmoid+Mul", "hardsigmoid": "HardSigmoid", "log_sigmoid log_sigmoid_forward": "Sigmoid+Log",
    "glu": "Split+Sigmoid+Mul", "prelu _prelu_kernel": "PRelu", "selu": "Selu", "zeros ones empty.memory_format full_like zeros_like ones_like empty_like new_zeros new_ones new_full": "ConstantOfShape",
    "arange arange.start arange.start_step": "Range", "cumsum": "CumSum", "tril triu": "Trilu", "sort sort.stable": "TopK", "flip": "Slice", "roll": "Slice+Concat",
    "constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d": "Pad",
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_nearest2d.vec upsample_bilinear2d upsample_bilinear2d.vec upsample_linear1d "
    "upsample_trilinear3d upsample_bicubic2d upsample_bicubic2d.vec _upsample_nearest_exact2d": "Resize",
    "pixel_shuffle": "DepthToSpace", "pixel_unshuffle": "SpaceToDepth", "grid_sampler_2d grid_sampler grid_sampler_3d": "GridSample", "col2im": "Col2Im",
    "scaled_dot_product_attention _scaled_dot_product_fused_attention_overrideable": "MatMul+Mul+Add+Softmax",
    "rand rand_like": "RandomUniform", "randn randn_like": "RandomNormal", "bernoulli": "Bernoulli", "multinomial": "Multinomial", "_local_scalar_dense item": "Identity",
}


def entries():
    """Call -> alternatives, each the operators that are needed together."""
    control = {"higher_order::cond": [["If"]], "higher_order::while_loop": [["Loop"]], "higher_order::scan": [["Scan"]]}
    return control | {f"aten::{name}": [each.split("+") for each in same.split("|")] for names, same in SAME.items() for name in names.split()}
