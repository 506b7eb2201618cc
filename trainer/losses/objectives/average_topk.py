"""Average top-k (Fan, Lyu, Ying, Hu: Learning with Average Top-k Loss, NeurIPS 2017), of cross-entropy.

Its k counts rows, not classes: the mean of the losses of the k rows of a batch that cost most. Here stands what a row
costs by itself, the same for every k' of classes; `hardest_rows` then chooses among the rows.
"""

from torch import Tensor

from ...loss_options import LossOptions
from .comp_sum import cross_entropy


def label_losses(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Losses (B, k), the same for every k."""
    return cross_entropy(scores).expand(-1, k)
