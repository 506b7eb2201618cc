"""Heads: feature (N, D) to logits (N, C), alone or many in a bank."""

from .affine import affine, keep_rounded
from .cosine import Cosine
from .head import Head
from .linear import Linear
from .mlp import MLP
from .norm_linear import NormLinear
from .storage import HEADS, build_head, load_head, save_head

__all__ = [
    "HEADS",
    "MLP",
    "Cosine",
    "Head",
    "Linear",
    "NormLinear",
    "affine",
    "build_head",
    "keep_rounded",
    "load_head",
    "save_head",
]
