"""A soft sorting network on the candidates of one row: the label's one-hot vector pushed through, then the gradient pulled back.

A layer is two rows of a table: each wire's partner (itself when idle), and its side (1 gets the higher score, -1 the lower, 0
is idle). The wires' scores and log-probabilities before each layer go to scratch memory, for the way back.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .distributions import log_cdf, log_cdf_slope, steepen

UNREACHED = tl.constexpr(-1e30)


@triton.jit
def _log_add(a, b):
    return tl.maximum(a, b) + tl.log(1 + tl.exp(-tl.abs(a - b)))


@triton.jit
def network_forward(
    scores, lane, scratch, partners, sides, layers, beta, art_lambda, DISTRIBUTION: tl.constexpr, M: tl.constexpr
):
    """Log-probabilities (M,) of the label on each wire after the last layer."""
    logs = tl.where(lane == 0, 0.0, UNREACHED)
    for layer in range(layers):
        tl.store(scratch + layer * 2 * M + lane, scores)
        tl.store(scratch + (layer * 2 + 1) * M + lane, logs)
        partner = tl.load(partners + layer * M + lane)
        side = tl.load(sides + layer * M + lane)
        other_score = tl.gather(scores, partner, 0)
        other_log = tl.gather(logs, partner, 0)
        v, _ = steepen(side * (scores - other_score), beta, art_lambda, DISTRIBUTION == "logistic_phi")
        swap = log_cdf(-v, DISTRIBUTION)
        mixed = _log_add(log_cdf(v, DISTRIBUTION) + logs, swap + other_log)
        logs = tl.where(side == 0, logs, mixed)
        scores = tl.where(side == 0, scores, scores + tl.exp(swap) * (other_score - scores))
    return logs


@triton.jit
def network_backward(
    log_gradient,
    lane,
    scratch,
    partners,
    sides,
    layers,
    beta,
    art_lambda,
    DISTRIBUTION: tl.constexpr,
    M: tl.constexpr,
):
    """Gradient (M,) by the scores on the first layer's wires, from that by the last layer's log-probabilities."""
    score_gradient = tl.zeros((M,), tl.float32)
    tl.debug_barrier()
    for back in range(layers):
        layer = layers - 1 - back
        scores = tl.load(scratch + layer * 2 * M + lane)
        logs = tl.load(scratch + (layer * 2 + 1) * M + lane)
        partner = tl.load(partners + layer * M + lane)
        side = tl.load(sides + layer * M + lane)
        other_score = tl.gather(scores, partner, 0)
        other_log = tl.gather(logs, partner, 0)
        v, slope = steepen(side * (scores - other_score), beta, art_lambda, DISTRIBUTION == "logistic_phi")
        log_keep = log_cdf(v, DISTRIBUTION)
        log_swap = log_cdf(-v, DISTRIBUTION)
        keep, swap = tl.exp(log_keep), tl.exp(log_swap)
        keep_slope = log_cdf_slope(v, DISTRIBUTION)
        from_own = 1 / (1 + tl.exp(log_swap + other_log - log_keep - logs))
        by_v = log_gradient * (from_own * keep_slope - (1 - from_own) * log_cdf_slope(-v, DISTRIBUTION))
        by_v += score_gradient * keep * keep_slope * (scores - other_score)
        by_v += tl.gather(by_v, partner, 0)
        to_other = tl.gather(log_gradient * (1 - from_own), partner, 0)
        mixed = score_gradient * keep + tl.gather(score_gradient * swap, partner, 0)
        score_gradient = tl.where(side == 0, score_gradient, mixed + side * slope * by_v)
        log_gradient = tl.where(side == 0, log_gradient, log_gradient * from_own + to_other)
    return score_gradient
