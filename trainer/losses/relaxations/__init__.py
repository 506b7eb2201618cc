"""Relaxed permutations: the label's column, and whole matrices.

`loss_defaults.py` names a module of this folder for each relaxation. It holds `log_permutation`, and, where the label's
column alone costs less than the matrix, `label_log_ranks`, with the arguments of the functions here.
"""

from importlib import import_module

import torch
from torch import Tensor

from ...loss_defaults import RELAXATION, modules_of
from ...loss_options import LossOptions
from .masked import finite_count

_MODULES = {name: import_module(f".{module}", __package__) for name, module in modules_of(RELAXATION).items()}
_MATRIX = {name: module.log_permutation for name, module in _MODULES.items()}
_COLUMN = {name: module.label_log_ranks for name, module in _MODULES.items() if hasattr(module, "label_log_ranks")}


def label_log_ranks(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of P[r, 0] for r = 1..k: at which ranks the relaxation sees the first candidate.

    Args:
        scores: (B, m) candidates, the label's score first and the others in descending order.
        k: number of ranks, 1..m.
        options: the relaxation and its options.

    Returns:
        (B, k) logarithms of probabilities.
    """
    if options.method in _COLUMN:
        ranks: Tensor = _COLUMN[options.method](scores, k, options)
        return ranks
    taken = torch.arange(k, device=scores.device) < finite_count(scores)[1]
    return log_permutation(scores, k, options)[:, :, 0].where(taken, -torch.inf)


def log_permutation(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """The logarithm of the first k rows of P, (B, k, m), for scores (B, m)."""
    matrix: Tensor = _MATRIX[options.method](scores, k, options)
    return matrix
