"""A soft sorting network on ROWS rows: the label's one-hot vector pushed through, then the gradient pulled back.

A layer is a row of codes: each wire's partner (itself when idle), plus M where the wire gets the higher score. A
comparator of a wire with itself changes nothing, so that idle wires need no care. `codes` (ROWS, M) points at the first
layer of each row's network, which is that of its scores that are not masked. What the way back needs, the wires'
scores and base-2 log-probabilities before each layer, stays in registers for small networks and goes to scratch
memory for others.

The layers of small networks are unrolled. An int32 then holds the codes of six layers, the first one lowest, because
each load makes the compiler work longer.
"""

# mypy: disable-error-code="assignment, no-untyped-def, no-untyped-call, untyped-decorator, misc"

import numpy as np
import triton
import triton.language as tl

from ...loss_options import LossOptions
from ..relaxations.networks import codes_by_count
from .distributions import log2_cdf_pair, log_cdf_slopes, steepen
from .kernel_config import KernelConfig
from .maths import LN_2, log2_add
from .objective import membership_weights, objective

_UNROLLED_WIDTH = 16
_UNROLLED_LAYERS = 16
UNREACHED = tl.constexpr(-1e30)
CODE_BITS, LAYERS_A_WORD = tl.constexpr(5), tl.constexpr(6)


def config(options: LossOptions, m: int, k: int, width: int, many: bool) -> KernelConfig:
    """See `plan.py`."""
    codes = codes_by_count(options.method, m, k, width)
    layers = codes.shape[1]
    unrolled = width <= _UNROLLED_WIDTH and layers <= _UNROLLED_LAYERS
    rows = 2 if unrolled and many else 1
    return KernelConfig(
        setting=options.art_lambda,
        variant=options.distribution,
        rows=rows,
        layers=layers,
        unrolled=unrolled,
        scratch=0 if unrolled else layers * 2 * width,
        codes=_packed(codes) if unrolled else codes,
        registers=96 if rows == 1 and width <= _UNROLLED_WIDTH and layers <= 12 else 128,
    )


def _packed(codes: np.ndarray) -> np.ndarray:
    """Codes (n, words, 16) of six layers each, from those of single layers (n, layers, 16)."""
    layers = np.arange(codes.shape[1], dtype=np.int32)
    places = layers % LAYERS_A_WORD.value * CODE_BITS.value
    return np.add.reduceat(codes << places[:, None], layers[:: LAYERS_A_WORD.value], axis=1)


@triton.jit
def relax(
    row,
    target,
    memory,
    beta,
    setting,
    VARIANT: tl.constexpr,
    MODE: tl.constexpr,
    FLOORED: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
    RANKS: tl.constexpr,
    LAYERS: tl.constexpr,
):
    """See `plan.py`."""
    scores, _, count, lane = row
    _, top1, log_softmax, floor, p_k_ptrs, K = target
    scratch_ptr, codes_ptr, layers, rows, m = memory
    scratch = scratch_ptr + rows[:, None] * (layers * 2 * M)
    used = tl.maximum(count, 1)[:, None]
    if LAYERS > 0:
        layers = (LAYERS + LAYERS_A_WORD - 1) // LAYERS_A_WORD
    codes = codes_ptr + (m - used) * (layers * M) + lane[None, :]
    weights = _wire_weights(p_k_ptrs, lane[None, :], used, K, 0 if MODE == "sort" else 1, RANKS)
    if LAYERS > 0:
        codes = _unpacked(codes, LAYERS, M)
        logs, saved_scores, saved_logs = _small(scores, lane, codes, beta, setting, VARIANT, LAYERS, ROWS, M)
    else:
        logs = _large(scores, lane, scratch, codes, layers, beta, setting, VARIANT, ROWS, M)
    loss, by_rank, by_softmax = objective(logs, weights, top1, log_softmax, floor, MODE, FLOORED)
    if LAYERS > 0:
        gradient = _small_back(by_rank, lane, codes, saved_scores, saved_logs, beta, setting, VARIANT, LAYERS, ROWS, M)
    else:
        gradient = _large_back(by_rank, lane, scratch, codes, layers, beta, setting, VARIANT, ROWS, M)
    return loss, gradient, by_softmax


@triton.jit
def _wire_weights(p_k_ptrs, lane, used, K, FIRST: tl.constexpr, RANKS: tl.constexpr):
    """What `rank_weights` gives for each wire's rank, (ROWS, M), with one load."""
    shares = membership_weights(p_k_ptrs, lane, K, FIRST)
    rank = used - 1 - lane
    weights = tl.zeros_like(shares)
    for k in tl.static_range(FIRST, RANKS):
        share = tl.gather(shares, tl.full(shares.shape, k, tl.int32), 1)
        weights += tl.where((rank <= k) & (rank >= 0), share, 0.0)
    return weights


@triton.jit
def _one_hot_logs(lane, ROWS: tl.constexpr, M: tl.constexpr):
    return tl.broadcast_to(tl.where(lane == 0, 0.0, UNREACHED)[None, :], (ROWS, M))


@triton.jit
def _of_partners(values, code):
    return tl.gather(values, code & (values.shape[1] - 1), 1)


@triton.jit
def _gets_higher(code):
    return (code & code.shape[1]) != 0


@triton.jit
def _oriented(scores, code):
    """The partner's score, and the higher wire's score less the lower wire's, the same at both wires."""
    other = _of_partners(scores, code)
    difference = scores - other
    return other, tl.where(_gets_higher(code), difference, -difference)


@triton.jit
def _layer(scores, logs, code, beta, art_lambda, DISTRIBUTION: tl.constexpr):
    other, difference = _oriented(scores, code)
    v, _ = steepen(difference, beta, art_lambda, DISTRIBUTION == "logistic_phi")
    keep, swap = log2_cdf_pair(v, DISTRIBUTION)
    mixed = log2_add(keep + logs, swap + _of_partners(logs, code))
    return scores + tl.exp2(swap) * (other - scores), mixed


@triton.jit
def _layer_back(by_score, by_log, scores, logs, code, beta, art_lambda, DISTRIBUTION: tl.constexpr):
    other, difference = _oriented(scores, code)
    v, slope = steepen(difference, beta, art_lambda, DISTRIBUTION == "logistic_phi")
    log_keep, log_swap = log2_cdf_pair(v, DISTRIBUTION)
    keep, swap = tl.exp2(log_keep), tl.exp2(log_swap)
    keep_slope, swap_slope = log_cdf_slopes(v, keep, swap, DISTRIBUTION)
    lead = log_swap + _of_partners(logs, code) - log_keep - logs
    own = by_log / (1 + tl.exp2(lead))
    others = by_log / (1 + tl.exp2(-lead)) if DISTRIBUTION == "gaussian" else by_log - own
    by_v = own * keep_slope - others * swap_slope + by_score * (keep * keep_slope * (scores - other))
    by_difference = slope * (by_v + _of_partners(by_v, code))
    by_score = by_score * keep + _of_partners(by_score * swap, code)
    by_score += tl.where(_gets_higher(code), by_difference, -by_difference)
    return by_score, own + _of_partners(others, code)


@triton.jit
def _unpacked(codes, LAYERS: tl.constexpr, M: tl.constexpr):
    """The codes of each layer, with those of later layers above them."""
    unpacked = ()
    for word in tl.static_range((LAYERS + LAYERS_A_WORD - 1) // LAYERS_A_WORD):
        packed = tl.load(codes + word * M)
        for place in tl.static_range(LAYERS_A_WORD):
            unpacked = unpacked + (packed >> place * CODE_BITS,)
    return unpacked


@triton.jit
def _small(
    scores,
    lane,
    codes,
    beta,
    art_lambda,
    DISTRIBUTION: tl.constexpr,
    LAYERS: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
):
    """Forward in registers: the label's log-probabilities (ROWS, M) after the last layer, and all layers' inputs."""
    logs = _one_hot_logs(lane, ROWS, M)
    saved_scores = ()
    saved_logs = ()
    for layer in tl.static_range(LAYERS):
        saved_scores = saved_scores + (scores,)
        saved_logs = saved_logs + (logs,)
        scores, logs = _layer(scores, logs, codes[layer], beta, art_lambda, DISTRIBUTION)
    return logs * LN_2, saved_scores, saved_logs


@triton.jit
def _small_back(
    by_log,
    lane,
    codes,
    saved_scores,
    saved_logs,
    beta,
    art_lambda,
    DISTRIBUTION: tl.constexpr,
    LAYERS: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
):
    """Gradient (ROWS, M) by the scores on the first layer's wires, from that by the last layer's log-probabilities."""
    by_score = tl.zeros((ROWS, M), tl.float32)
    for layer in tl.static_range(LAYERS - 1, -1, -1):
        by_score, by_log = _layer_back(
            by_score,
            by_log,
            saved_scores[layer],
            saved_logs[layer],
            codes[layer],
            beta,
            art_lambda,
            DISTRIBUTION,
        )
    return by_score


@triton.jit
def _large(
    scores,
    lane,
    scratch,
    codes,
    layers,
    beta,
    art_lambda,
    DISTRIBUTION: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
):
    """Forward with scratch memory (ROWS, 1): the label's log-probabilities (ROWS, M) after the last layer."""
    logs = _one_hot_logs(lane, ROWS, M)
    for layer in range(layers):
        tl.store(scratch + layer * 2 * M + lane[None, :], scores)
        tl.store(scratch + (layer * 2 + 1) * M + lane[None, :], logs)
        code = tl.load(codes + layer * M)
        scores, logs = _layer(scores, logs, code, beta, art_lambda, DISTRIBUTION)
    return logs * LN_2


@triton.jit
def _large_back(
    by_log,
    lane,
    scratch,
    codes,
    layers,
    beta,
    art_lambda,
    DISTRIBUTION: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
):
    """Like `_small_back`, from scratch memory."""
    by_score = tl.zeros((ROWS, M), tl.float32)
    tl.debug_barrier()
    for back in range(layers):
        layer = layers - 1 - back
        scores = tl.load(scratch + layer * 2 * M + lane[None, :])
        logs = tl.load(scratch + (layer * 2 + 1) * M + lane[None, :])
        code = tl.load(codes + layer * M)
        by_score, by_log = _layer_back(by_score, by_log, scores, logs, code, beta, art_lambda, DISTRIBUTION)
    return by_score
