"""Memberships: the label's probability to be among the k best, for each k, without a matrix of ranks.

`loss_defaults.py` names a module of this folder for each method. It holds `label_log_memberships`, with the
arguments of the function here.
"""

from importlib import import_module

from torch import Tensor

from ...loss_defaults import MEMBERSHIP, modules_of
from ...loss_options import LossOptions

_MODULES = {name: import_module(f".{module}", __package__) for name, module in modules_of(MEMBERSHIP).items()}


def label_log_memberships(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of P(the first candidate is among the k' best), for k' = 1..k.

    Args:
        scores: (B, m) candidates, the label's score first and the others in descending order, minus infinity where a
            class is masked; the label is not.
        k: number of ranks, 1..m.
        options: the method and its options.

    Returns:
        (B, k) logarithms of probabilities, 0 where no more than k' candidates are not masked.
    """
    found: Tensor = _MODULES[options.method].label_log_memberships(scores, k, options)
    return found
