"""Heads by name, and the file that holds one."""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open

from ...core.errors import InputError
from ...core.files import new_file, parse_json, regular_file
from .cosine import Cosine
from .head import Head
from .linear import Linear
from .mlp import MLP
from .norm_linear import NormLinear

METADATA = "headsmith.head"
HEADS: dict[str, type[Head]] = {kind.kind: kind for kind in (Linear, NormLinear, Cosine, MLP)}


def build_head(
    kind: str, in_features: int, num_classes: int, *, bank: int | None = None, seed: int = 0, **options: Any
) -> Head:
    """A fresh head, or a bank of equal ones.

    Args:
        kind: One of `HEADS`.
        in_features: D, the width of a feature.
        num_classes: C, the number of logits.
        bank: H, for a bank of heads; ``None`` for a single one.
        seed: Fixes what starts at random.
        **options: ``norm`` for ``norm_linear``, ``hidden`` for ``mlp``.

    Raises:
        InputError: An unknown kind, or an option that it does not have or take.
    """
    if kind not in HEADS:
        raise InputError(f"--head: {kind!r} is not known; expected one of {', '.join(HEADS)}")
    try:
        head = HEADS[kind](in_features, num_classes, bank=bank, **options)
    except TypeError as error:
        raise InputError(f"--head {kind}: options {options} do not fit it ({error})") from None
    head.reset(seed)
    return head


def save_head(head: Head, path: str | Path) -> None:
    """Write a single head as safetensors, its kind, sizes and options in the file's metadata, atomically."""
    if head.bank is not None:
        raise ValueError("a bank of heads is not saved: save its members")
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in head.state_dict().items()}
    shape = {"kind": head.kind, "in_features": head.in_features, "num_classes": head.num_classes}
    # One key: safetensors writes several in an order of its own, and equal heads must be equal files.
    metadata = {METADATA: json.dumps(shape | {"options": head.options})}
    with new_file(path) as temporary:
        temporary.write_bytes(safetensors.torch.save(tensors, metadata))  # its save_file hides a full disk's OSError


def load_head(path: str | Path) -> Head:
    """Read a head that `save_head` wrote, in evaluation mode.

    Raises:
        InputError: The file is missing, damaged, of another format, or its tensors do not fit its kind.
    """
    if not Path(path).exists():
        raise InputError(f"{path}: not found; a run folder holds head.safetensors once `headsmith train` ended")
    regular_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        tensors = safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: damaged or not safetensors ({error})") from None
    if METADATA not in metadata:
        raise InputError(f"{path}: metadata {sorted(metadata)}, expected {METADATA!r}; not a head of headsmith's")
    try:
        shape = parse_json(metadata[METADATA])
        options = shape.pop("options", {})
        head = build_head(**shape, **options)
    except (ValueError, TypeError, AttributeError, RecursionError, RuntimeError, MemoryError) as error:
        raise InputError(f"{path}: {METADATA}: no description of a head ({error}); train again") from None
    try:
        head.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"{path}: tensors do not fit a {head.kind} head ({error})") from None
    return head.eval()
