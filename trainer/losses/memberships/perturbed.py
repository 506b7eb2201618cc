"""Perturbed top-k (Berthet et al.: Learning with Differentiable Perturbed Optimizers, NeurIPS 2020).

For top-k it is Cordonnier et al.: Differentiable Patch Selection for Image Recognition, CVPR 2021.

The membership of a label is the probability that it is among the k best when Gaussian noise of deviation sigma is added
to every score. Where `samples` draws are few their count of hits may be 0, and the papers' estimate of the gradient is
noisy. Here only the noise of the other scores is drawn: given the k-th highest of those, the label is above it with a
probability that the normal CDF gives. The mean of these probabilities has the same expectation, is never 0, and its
derivative is that of the estimate.
"""

import math

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..noise import normal_draws
from ..relaxations.distributions import log_cdf
from ..relaxations.masked import finite_count


def label_log_memberships(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of the label's membership in the top k', (B, k) for k' = 1..k.

    The noise belongs to `noise_seed` and to the rank of a candidate: it is the same for all rows and in every call, so
    that equal calls give equal losses, alone, in a bank of heads and in a captured graph.
    """
    size = scores.shape[-1]
    every = torch.arange(1, k + 1, device=scores.device) >= finite_count(scores)[1]
    scaled = scores * options.beta(size)
    noise = normal_draws(options.noise_seed, options.samples, size - 1, scores.device).to(scaled)
    kept = min(k, size - 1)
    limits = (scaled[:, 1:].unsqueeze(1) + noise).topk(kept, dim=-1).values
    limits = torch.nn.functional.pad(limits, (0, k - kept))
    above = (scaled[:, :1].unsqueeze(-1) - limits).where(~every.unsqueeze(1), 0.0)
    log_p = log_cdf("gaussian", above).logsumexp(1) - math.log(options.samples)
    return log_p.where(~every, 0.0)
