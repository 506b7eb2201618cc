"""What the objectives read of a row: how far the other candidates' scores are above the label's."""

import torch
from torch import Tensor
from torch.nn.functional import pad

# In place of minus infinity: no probability, and a gradient that is a number.
MASKED = -1e30


def label_gaps(scores: Tensor) -> Tensor:
    """The other candidates' scores minus the label's, in descending order.

    Args:
        scores: (B, m) candidates, the label's first and the others in descending order, minus infinity where masked.

    Returns:
        (B, m - 1), at least -1e30, which a masked class has.
    """
    return (scores[:, 1:] - scores[:, :1]).clamp_min(MASKED)


def log_tails(gaps: Tensor) -> Tensor:
    """The log-sum-exp of each gap and those after it; (B, n) for gaps (B, n)."""
    return gaps.flip(1).logcumsumexp(dim=1).flip(1)


def filled(losses: Tensor, k: int) -> Tensor:
    """Losses (B, k), 0 for the ranks that ``losses`` (B, at most k) has none for."""
    return pad(losses, (0, k - losses.shape[1]))


def up_to(k: int, like: Tensor) -> Tensor:
    """The numbers 1..k as a tensor (k,) of the type and on the device of ``like``."""
    return torch.arange(1, k + 1, dtype=like.dtype, device=like.device)
