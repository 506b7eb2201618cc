"""The operators that a file which torch runs may hold, by name.

Made from two sources: what torch 2.14 itself tags as core or pointwise (`torch.Tag`) and neither random, mutable nor
of unset memory; and what 68 exports of timm's and torchvision's families and of every head, input format and resize
held, as ``.pt2`` and as TorchScript, with the operators that stand beside those in `torch.nn.functional`. None of them
opens a file, prints, draws random numbers, or calls Python. All overloads of a name are of one kind in this.
"""

import re

ATEN = frozenset(
    """
Bool Float FloatImplicit Int IntImplicit ScalarImplicit __and__ __getitem__ __lshift__ __not__ __or__ __rshift__
__xor__ _adaptive_avg_pool2d _adaptive_avg_pool3d _assert_tensor_metadata _conv_depthwise2d _convolution _log_softmax
_native_batch_norm_legit _native_batch_norm_legit_no_training _softmax _to_copy _upsample_bicubic2d_aa
_upsample_bilinear2d_aa abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d add add_ addcdiv
addcmul addmm affine_grid_generator alias amax amin aminmax angle any arange argmax argmin asin asinh atan atan2 atanh
avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bilinear bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor bmm bucketize cat cdist ceil celu channel_shuffle chunk clamp clamp_ clamp_max
clamp_min clamp_min_ clip clone col2im column_stack complex concat concatenate conj_physical constant_pad_nd
contiguous conv1d conv2d conv3d conv_transpose2d convolution copy copy_ copysign cos cosh cosine_similarity cross
cumprod cumsum deg2rad detach detach_ diagonal digamma dim div div_ dot dropout dstack einsum elu elu_ embedding eq
erf erfc erfinv exp exp2 exp_ expand expand_as expm1 fft_fft2 fft_ifft2 fft_irfft fft_irfft2 fft_rfft fft_rfft2 fill
fill_ flatten flip float floor floor_divide floor_divide_ fmax fmin fmod fold frac frexp frobenius_norm full full_like
gather gcd ge gelu gelu_ glu grid_sampler grid_sampler_2d group_norm gt hardshrink hardsigmoid hardsigmoid_ hardswish
hardswish_ hardtanh hardtanh_ heaviside hstack hypot i0 igamma igammac im2col imag index index_copy index_fill
index_put index_put_ index_select instance_norm is_floating_point isclose isfinite isinf isnan isneginf isposinf item
layer_norm lcm ldexp le leaky_relu leaky_relu_ lerp lgamma lift_fresh lift_fresh_copy linalg_norm linalg_vector_norm
linear linspace local_response_norm log log10 log1p log2 log_sigmoid log_softmax logaddexp logaddexp2 logical_and
logical_not logical_or logical_xor logit logsumexp lp_pool2d lt mT masked_fill masked_fill_ masked_scatter matmul max
max_pool1d max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d maximum mean median
meshgrid min minimum mish mish_ mm moveaxis movedim mul mul_ mvlgamma nan_to_num narrow native_channel_shuffle
native_group_norm native_layer_norm ne neg new_full new_ones new_zeros nextafter norm numel one_hot ones ones_like
outer pad pairwise_distance permute pixel_shuffle pixel_unshuffle polar polygamma positive pow pow_ prelu prod rad2deg
ravel real reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 relu6_ relu_ remainder renorm
repeat repeat_interleave replication_pad2d replication_pad3d reshape reshape_as rms_norm roll rot90 round rsqrt rsub
scalar_tensor scaled_dot_product_attention scatter scatter_ scatter_add scatter_reduce searchsorted select
select_scatter selu sgn sigmoid sigmoid_ sign signbit silu silu_ sin sinc sinh size slice slice_scatter softmax
softmin softplus softshrink sort split split_with_sizes sqrt sqrt_ square squeeze squeeze_ stack std std_mean stride
sub sub_ sum swapaxes swapdims sym_numel sym_size sym_storage_offset sym_stride t take_along_dim tan tanh tanh_ tensor
tensor_split threshold tile to topk transpose transpose_ tril tril_ triu triu_ true_divide trunc type type_as unbind
unflatten unfold unsqueeze unsqueeze_ upsample_bicubic2d upsample_bilinear2d upsample_nearest2d var var_mean view
view_as view_as_complex view_as_real vstack where xlogy zero_ zeros zeros_like
""".split()  # noqa: SIM905 - a line a name would be a long file
)

PRIM = frozenset(
    [
        "prim::Constant",
        "prim::ListConstruct",
        "prim::ListUnpack",
        "prim::NumToTensor",
        "prim::TupleConstruct",
        "prim::TupleIndex",
        "prim::TupleUnpack",
        "prim::device",
        "prim::dtype",
        "prim::max",
        "prim::min",
    ]
)

_SYMBOLIC = frozenset(
    [
        "_operator.abs",
        "_operator.add",
        "_operator.floordiv",
        "_operator.getitem",
        "_operator.mod",
        "_operator.mul",
        "_operator.neg",
        "_operator.sub",
        "torch.sym_int",
        "torch.sym_max",
        "torch.sym_min",
    ]
)
_OVERLOAD = re.compile(r"torch\.ops\.aten\.(\w+)\.\w+", re.ASCII)


def is_operator(target: str) -> bool:
    """Whether a call in an exported program is one of `ATEN`, or arithmetic on sizes."""
    found = _OVERLOAD.fullmatch(target)
    return target in _SYMBOLIC or (found is not None and found[1] in ATEN)
