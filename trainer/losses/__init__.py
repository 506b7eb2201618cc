"""Losses that optimise top-k accuracy, as drop-in replacements for cross-entropy."""

from ..loss_defaults import DISTRIBUTIONS, METHODS, RELAXATIONS, default_inverse_temperature
from ..loss_options import LossOptions
from .kernels_or_torch import implementation
from .linear import linear_topk_cross_entropy
from .relaxed_topk import relaxed_topk
from .smooth_topk_module import SmoothTopKLoss
from .topk_cross_entropy import TopKCrossEntropy, topk_cross_entropy
from .topk_hinge_and_entropy import TopKEntropyLoss, TopKHingeLoss, TruncatedTopKEntropyLoss

__all__ = [
    "DISTRIBUTIONS",
    "METHODS",
    "RELAXATIONS",
    "LossOptions",
    "SmoothTopKLoss",
    "TopKCrossEntropy",
    "TopKEntropyLoss",
    "TopKHingeLoss",
    "TruncatedTopKEntropyLoss",
    "default_inverse_temperature",
    "implementation",
    "linear_topk_cross_entropy",
    "relaxed_topk",
    "topk_cross_entropy",
]
