"""Heads: feature (N, D) to logits (N, C), and the file that holds one."""

import json
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from .errors import InputError
from .files import new_file


class Linear(nn.Module):
    """The affine head ``features @ weight.T + bias``, started from zeros.

    Args:
        in_features: D, the width of a feature.
        num_classes: C, the number of logits.
    """

    kind = "linear"

    def __init__(self, in_features: int, num_classes: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.num_classes = num_classes
        self.weight = nn.Parameter(torch.zeros(num_classes, in_features))
        self.bias = nn.Parameter(torch.zeros(num_classes))

    def forward(self, features: Tensor) -> Tensor:
        """Logits ``(N, C)`` of features ``(N, D)``, in the features' dtype."""
        return nn.functional.linear(features, self.weight, self.bias)


METADATA = "headsmith.head"
HEADS = {Linear.kind: Linear}


def build_head(kind: str, in_features: int, num_classes: int) -> Linear:
    """A fresh head of a kind.

    Raises:
        InputError: An unknown kind.
    """
    if kind not in HEADS:
        raise InputError(f"--head: {kind!r} is not known; expected one of {', '.join(HEADS)}")
    return HEADS[kind](in_features, num_classes)


def save_head(head: Linear, path: str | Path) -> None:
    """Write a head as safetensors, its kind and sizes in the file's metadata, atomically."""
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in head.state_dict().items()}
    shape = {"kind": head.kind, "in_features": head.in_features, "num_classes": head.num_classes}
    with new_file(path) as temporary:
        # One key: safetensors writes several in an order of its own, and equal heads must be equal files.
        safetensors.torch.save_file(tensors, temporary, {METADATA: json.dumps(shape)})


def load_head(path: str | Path) -> Linear:
    """Read a head that `save_head` wrote, in evaluation mode.

    Raises:
        InputError: The file is missing, damaged, of another format, or its tensors do not fit its kind.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: not found; a run folder holds head.safetensors once `headsmith train` ended")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        tensors = safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: damaged or not safetensors ({error})") from None
    if METADATA not in metadata:
        raise InputError(f"{path}: metadata {sorted(metadata)}, expected {METADATA!r}; not a head of headsmith's")
    head = build_head(**json.loads(metadata[METADATA]))
    try:
        head.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"{path}: tensors do not fit a {head.kind} head ({error})") from None
    return head.eval()
