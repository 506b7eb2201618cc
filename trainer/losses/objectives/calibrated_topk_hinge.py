"""The top-k calibrated hinge (Yang, Koyejo: On the Consistency of Top-k Surrogate Losses, ICML 2020).

psi_5 = max(0, 1 + s_[k+1] - s_y), s_[k+1] the (k+1)-th highest score of all, the label's among them.
"""

from torch import Tensor

from ...loss_options import LossOptions
from .gaps import filled, label_gaps


def label_losses(scores: Tensor, k: int, options: LossOptions | None = None) -> Tensor:
    """Losses (B, k) for k' = 1..k."""
    gaps = label_gaps(scores)
    ranks = min(k, gaps.shape[1])
    # Between the k-th and the (k+1)-th of the others, where the label (a gap of 0) takes its place in the order.
    after = filled(gaps[:, 1 : ranks + 1] + 1, ranks)
    kth_of_all = (gaps[:, :ranks] + 1).minimum(after.clamp_min(1))
    return filled(kth_of_all.clamp_min(0), k)
