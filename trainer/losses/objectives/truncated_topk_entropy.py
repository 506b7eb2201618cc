"""Truncated top-k entropy (Lapin, Hein, Schiele, CVPR 2016): the k - 1 highest scores of other classes do not count.

log(1 + the sum of exp(s_j - s_y) over the other classes but for the k - 1 highest); k = 1 is cross-entropy.
"""

from torch import Tensor
from torch.nn.functional import softplus

from ...loss_options import LossOptions
from .gaps import filled, label_gaps, log_tails


def label_losses(scores: Tensor, k: int, options: LossOptions | None = None) -> Tensor:
    """Losses (B, k) for k' = 1..k."""
    return filled(softplus(log_tails(label_gaps(scores))[:, :k], threshold=80), k)
