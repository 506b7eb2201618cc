"""DFTopK (Zhu et al.: Differentiable Fast Top-K Selection for Large-Scale Recommendation, 2025).

The membership of a score s in the top k is sigmoid((s - theta) / alpha), theta the middle of the k-th and the next
highest score. The gradient goes through theta too, to those two scores: the formula, differentiated as it stands.
"""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from ...loss_options import LossOptions
from ..relaxations.masked import finite_count


def label_log_memberships(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of the label's membership in the top k', (B, k) for k' = 1..k.

    Of equal scores the label's comes last: it keeps its whole gradient, whatever the order of the others.
    """
    every = torch.arange(1, k + 1, device=scores.device) >= finite_count(scores)[1]
    above = scores[:, :1] - _highest(scores, k + 1)
    middle = (above[:, :-1] + above[:, 1:]) * (0.5 * options.beta(scores.shape[-1]))
    return logsigmoid(middle.where(~every, 0.0)).where(~every, 0.0)


def _highest(scores: Tensor, n: int) -> Tensor:
    """The n highest scores of a row in descending order (B, n), minus infinity where there are no more.

    All but the first stand in order, so that each place is the first's, or one of two neighbours'.
    """
    label, others = scores[:, :1], pad(scores[:, 1 : n + 1], (0, max(n + 1 - scores.shape[-1], 0)), value=-torch.inf)
    before = pad(others[:, :-1], (1, 0), value=torch.inf)
    return torch.where(label > before, before, torch.where(label > others, label, others))
