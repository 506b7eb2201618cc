"""A soft sorting network on ROWS rows: the label's one-hot vector pushed through, then the gradient pulled back.

A layer is a row of codes: each wire's partner (itself when idle), plus 256 where the wire gets the higher score. A
comparator of a wire with itself changes nothing, so that idle wires need no care. `codes` (ROWS, M) points at the first
layer of each row's network, which is that of its scores that are not masked. What the way back needs, the wires'
scores and base-2 log-probabilities before each layer, stays in registers for small networks and goes to scratch
memory for others.
"""

# mypy: disable-error-code="assignment, no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from ...loss_options import LossOptions
from ..relaxations.networks import codes_by_count
from .distributions import log2_cdf_pair, log_cdf_slopes, steepen
from .maths import LN_2, log2_add
from .needs import Needs
from .objective import objective, rank_weights

_UNROLLED_WIDTH = 16
_UNROLLED_LAYERS = 16
UNREACHED = tl.constexpr(-1e30)


def needs(options: LossOptions, m: int, k: int, width: int, many: bool) -> Needs:
    """See `plan.py`."""
    codes = codes_by_count(options.method, m, k, width)
    layers = codes.shape[1]
    unrolled = width <= _UNROLLED_WIDTH and layers <= _UNROLLED_LAYERS
    rows = 2 if unrolled and many else 1
    return Needs(
        setting=options.art_lambda,
        variant=options.distribution,
        rows=rows,
        layers=layers,
        unrolled=unrolled,
        scratch=0 if unrolled else layers * 2 * width,
        codes=codes,
        registers=96 if rows == 1 and width <= _UNROLLED_WIDTH and layers <= 12 else 128,
    )


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
    scratch_ptr, scratch_stride, codes_ptr, layers, rows, m = memory
    scratch = scratch_ptr + rows[:, None] * scratch_stride
    used = tl.maximum(count, 1)[:, None]
    codes = codes_ptr + (m - used) * (layers * M) + lane[None, :]
    weights = rank_weights(p_k_ptrs, used - 1 - lane[None, :], K, 0 if MODE == "sort" else 1, RANKS)
    if LAYERS > 0:
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
def _one_hot_logs(lane, ROWS: tl.constexpr, M: tl.constexpr):
    return tl.broadcast_to(tl.where(lane == 0, 0.0, UNREACHED)[None, :], (ROWS, M))


@triton.jit
def _oriented(scores, code):
    """The partner's score, and the higher wire's score less the lower wire's, the same at both wires."""
    other = tl.gather(scores, code & 255, 1)
    difference = scores - other
    return other, tl.where(code > 255, difference, -difference)


@triton.jit
def _layer(scores, logs, code, beta, art_lambda, DISTRIBUTION: tl.constexpr):
    other, difference = _oriented(scores, code)
    v, _ = steepen(difference, beta, art_lambda, DISTRIBUTION == "logistic_phi")
    keep, swap = log2_cdf_pair(v, DISTRIBUTION)
    mixed = log2_add(keep + logs, swap + tl.gather(logs, code & 255, 1))
    return scores + tl.exp2(swap) * (other - scores), mixed


@triton.jit
def _layer_back(by_score, by_log, scores, logs, code, beta, art_lambda, DISTRIBUTION: tl.constexpr):
    partner = code & 255
    other, difference = _oriented(scores, code)
    v, slope = steepen(difference, beta, art_lambda, DISTRIBUTION == "logistic_phi")
    log_keep, log_swap = log2_cdf_pair(v, DISTRIBUTION)
    keep, swap = tl.exp2(log_keep), tl.exp2(log_swap)
    keep_slope, swap_slope = log_cdf_slopes(v, keep, swap, DISTRIBUTION)
    lead = log_swap + tl.gather(logs, partner, 1) - log_keep - logs
    own = by_log / (1 + tl.exp2(lead))
    others = by_log / (1 + tl.exp2(-lead)) if DISTRIBUTION == "gaussian" else by_log - own
    by_v = own * keep_slope - others * swap_slope + by_score * (keep * keep_slope * (scores - other))
    by_difference = slope * (by_v + tl.gather(by_v, partner, 1))
    by_score = by_score * keep + tl.gather(by_score * swap, partner, 1)
    by_score += tl.where(code > 255, by_difference, -by_difference)
    return by_score, own + tl.gather(others, partner, 1)


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
        code = tl.load(codes + layer * M)
        scores, logs = _layer(scores, logs, code, beta, art_lambda, DISTRIBUTION)
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
        code = tl.load(codes + layer * M)
        by_score, by_log = _layer_back(
            by_score, by_log, saved_scores[layer], saved_logs[layer], code, beta, art_lambda, DISTRIBUTION
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
