"""Objectives that are no relaxation: a loss for each k, whose mean by `p_k` is the loss of a row.

`loss_defaults.py` names a module of this folder for each method. It holds `label_losses`, with the arguments of
`objective_losses`.
"""

from importlib import import_module

from torch import Tensor

from ...loss_defaults import OBJECTIVE, modules_of
from ...loss_options import LossOptions

_MODULES = {name: import_module(f".{module}", __package__) for name, module in modules_of(OBJECTIVE).items()}


def objective_losses(scores: Tensor, k: int, options: LossOptions, margins: Tensor | None = None) -> Tensor:
    """The losses for k' = 1..k.

    Args:
        scores: (B, m) candidates, the label's score first and the others in descending order, minus infinity where a
            class is masked; the label is not.
        k: number of ranks, 1..m.
        options: the method and its options.
        margins: (B,) those of the labels' classes, for the method that reads them.

    Returns:
        (B, k) finite losses, in which a masked class is as if it were not there.
    """
    own = () if margins is None else (margins,)
    found: Tensor = _MODULES[options.method].label_losses(scores, k, options, *own)
    return found
