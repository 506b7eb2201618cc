"""Top-k entropy (Lapin, Hein, Schiele, CVPR 2016): the conjugate of the softmax loss on the top-k simplex.

With a_j = s_j - s_y in descending order and A_u the sum of exp(a_j) over j > u, the u highest a_j are capped, u the
least with exp(a_(u+1)) <= A_u / (k - u), and the loss is softplus(V) with
V = (a_1 + ... + a_u) / k + (u / k) log k + (1 - u / k) log(A_u k / (k - u)). k = 1 is cross-entropy.
"""

from torch import Tensor
from torch.nn.functional import softplus

from ...loss_options import LossOptions
from .gaps import filled, label_gaps, log_tails, up_to


def label_losses(scores: Tensor, k: int, options: LossOptions | None = None) -> Tensor:
    """Losses (B, k) for k' = 1..k."""
    gaps = label_gaps(scores)
    ranks = min(k, gaps.shape[1])
    ks, capped = up_to(ranks, gaps).unsqueeze(1), up_to(ranks, gaps) - 1
    tails, top = log_tails(gaps)[:, :ranks], gaps[:, :ranks]
    if ranks == 0:
        return filled(tails, k)
    log_left = (ks - capped).clamp_min(1).log()
    fits = top.detach().unsqueeze(1) <= tails.detach().unsqueeze(1) - log_left + 1e-6
    first = fits.int().argmax(dim=2, keepdim=True)
    sums, share = top.cumsum(dim=1) - top, capped / ks
    values = sums.unsqueeze(1) / ks + share * ks.log() + (1 - share) * (tails.unsqueeze(1) + ks.log() - log_left)
    return filled(softplus(values.gather(2, first).squeeze(2), threshold=80), k)
