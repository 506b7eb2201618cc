"""What a batch's logits are held against: its labels in their three forms, and the weights of ranks and classes."""

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

_FLOATING = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Targets(NamedTuple):
    """What the logits (B, C) of a batch are held against.

    Attributes:
        labels: (B,), (B, L) integers, or (B, C) floating.
        p_k: (K,), or (C, K) with one distribution for each class; None where `sample_p_k` stands in its place.
        sample_p_k: (K,), or (B, K) with one distribution for each row.
        weight: (C,) class weights.
        class_counts: (C,) rows of training of each class, for the method that reads them.
    """

    labels: Tensor
    p_k: Tensor | None = None
    sample_p_k: Tensor | None = None
    weight: Tensor | None = None
    class_counts: Tensor | None = None

    def with_labels(self, labels: Tensor, times: int = 1) -> "Targets":
        """The same for single labels (B * times,) of rows that are each repeated so often, without class weights."""
        sample_p_k = self.sample_p_k
        if sample_p_k is not None and sample_p_k.ndim == 2 and times > 1:
            sample_p_k = sample_p_k.repeat_interleave(times, dim=0)
        return Targets(labels, self.p_k, sample_p_k, None, self.class_counts)

    def rows(self, start: int, stop: int) -> "Targets":
        """Those of the rows from `start` up to `stop`."""
        own = self.sample_p_k if self.sample_p_k is None or self.sample_p_k.ndim == 1 else self.sample_p_k[start:stop]
        return self._replace(labels=self.labels[start:stop], sample_p_k=own)


def over_k(targets: Targets) -> Tensor:
    """The distribution over k, `p_k` or `sample_p_k`; a function because torch 2.10 compiles no property of a tuple."""
    return cast(Tensor, targets.p_k if targets.sample_p_k is None else targets.sample_p_k)


def check_dense(name: str, tensor: Tensor) -> None:
    """Raise TypeError unless `tensor` holds a value at every place."""
    if tensor.is_nested or tensor.layout is not torch.strided:
        found = "a nested tensor" if tensor.is_nested else f"a tensor of layout {tensor.layout}"
        raise TypeError(f"{name}: found {found}, expected a dense one")


def check_floating(name: str, tensor: Any) -> None:
    """Raise TypeError unless `tensor` is a dense floating tensor of 16 bits or more."""
    if not isinstance(tensor, Tensor) or tensor.dtype not in _FLOATING:
        found = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise TypeError(f"{name}: found {found}, expected a tensor of a floating type of 16, 32 or 64 bits")
    check_dense(name, tensor)


def check_logits(logits: Tensor) -> None:
    """Raise unless `logits` is floating and of shape (B, C) with at least one class."""
    check_floating("logits", logits)
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise ValueError(f"logits have shape {tuple(logits.shape)}, expected (B, C) with at least one class")


def check_class_weight(name: str, weight: Tensor | None, num_classes: int, device: torch.device) -> None:
    """Raise unless `weight` is None, or a `check_weights` that fits C classes and logits on `device`."""
    if weight is None:
        return
    if isinstance(weight, Tensor) and weight.device != device:
        raise ValueError(f"{name} is on {weight.device} and logits on {device}, expected one device")
    check_weights(name, weight)
    if weight.shape != (num_classes,):
        raise ValueError(f"{name} has shape {tuple(weight.shape)}, expected ({num_classes},)")


def check_weights(name: str, weight: Tensor) -> None:
    """Raise unless class weights are floating, finite, not negative, and not all 0.

    Below 0 the loss of a class falls without end, and where all are 0 their mean is that of nothing. Values on an
    accelerator are not looked at, since that would wait for the device.
    """
    check_floating(name, weight)
    if weight.device.type != "cpu" or torch.compiler.is_compiling():
        return
    sound = sound_shares(weight)
    if not sound.all():
        place = tuple((~sound).nonzero()[0].tolist())
        raise ValueError(
            f"{name}: {weight[place].item():g} found for class {place[-1] if place else 0}, expected finite weights of "
            "0 or more"
        )
    if not weight.any():
        raise ValueError(f"{name}: all 0 found, expected a weight above 0 for one class at least")


def check_class_counts(counts: Tensor, num_classes: int, device: torch.device) -> None:
    """Raise unless `counts` are numbers (C,), finite and of 0 or more, on `device`.

    Values on an accelerator are not looked at, since that would wait for the device.
    """
    if not isinstance(counts, Tensor) or counts.dtype not in (*_FLOATING, *_INTEGERS):
        found = counts.dtype if isinstance(counts, Tensor) else type(counts).__name__
        raise TypeError(f"class_counts: found {found}, expected a tensor of numbers")
    check_dense("class_counts", counts)
    if counts.shape != (num_classes,):
        raise ValueError(f"class_counts has shape {tuple(counts.shape)}, expected ({num_classes},)")
    if counts.device != device:
        raise ValueError(f"class_counts is on {counts.device} and logits on {device}, expected one device")
    if counts.device.type == "cpu" and not torch.compiler.is_compiling() and not sound_shares(counts).all():
        place = int((~sound_shares(counts)).nonzero()[0])
        raise ValueError(f"class_counts: {counts[place].item():g} found for class {place}, expected 0 or more rows")


def is_soft(labels: Tensor) -> bool:
    """Whether labels are soft targets, floating of shape (B, C)."""
    return labels.dtype in _FLOATING and labels.ndim == 2


def check_labels(labels: Tensor, rows: int, num_classes: int, device: torch.device, ignore_index: int) -> None:
    """Check shape, type, device and, where that needs no wait for a device, range.

    Args:
        labels: (B,) or (B, L) integers, or soft targets (B, C) floating.
        rows: B.
        num_classes: C.
        device: where the logits are.
        ignore_index: the label that is left out.

    Raises:
        TypeError: labels of a type other than integers (or floating, for soft targets).
        ValueError: wrong shape, another device than the logits', or a soft target that is negative, NaN or infinite.
        IndexError: a label outside 0..C-1 that is not `ignore_index`.
    """
    if not isinstance(labels, Tensor):
        raise TypeError(f"labels: found {type(labels).__name__}, expected a tensor of integers or soft targets")
    if labels.device == device:
        check_dense("labels", labels)
    if labels.dtype not in _INTEGERS and not is_soft(labels):
        raise TypeError(
            f"labels are {labels.dtype} of shape {tuple(labels.shape)}, expected integers (B,) or (B, L), "
            "or floating soft targets (B, C)"
        )
    if labels.ndim not in (1, 2) or labels.shape[0] != rows or (is_soft(labels) and labels.shape[1] != num_classes):
        raise ValueError(
            f"labels have shape {tuple(labels.shape)} for logits of shape {(rows, num_classes)}, "
            f"expected ({rows},), ({rows}, L) or, for soft targets, {(rows, num_classes)}"
        )
    if labels.device != device:
        raise ValueError(f"labels are on {labels.device} and logits on {device}, expected one device")
    if labels.device.type == "cpu" and not torch.compiler.is_compiling():
        if is_soft(labels):
            _check_shares(labels)
        else:
            _check_range(labels, num_classes, ignore_index)


def sound_shares(labels: Tensor) -> Tensor:
    """Which soft targets (B, C), or weights, are finite and not negative."""
    return (labels >= 0) & (labels < torch.inf)


def _check_shares(labels: Tensor) -> None:
    sound = sound_shares(labels)
    if not sound.all():
        row, column = (~sound).nonzero()[0].tolist()
        raise ValueError(
            f"labels hold {labels[row, column].item():g} for class {column} in row {row}, expected soft targets that "
            "are finite and not negative"
        )


def _check_range(labels: Tensor, num_classes: int, ignore_index: int) -> None:
    labels = labels.long()
    if not labels.numel():
        return
    lowest, highest = labels.aminmax()
    if lowest >= 0 and highest < num_classes:
        return
    outside = ((labels < 0) | (labels >= num_classes)) & (labels != ignore_index)
    if outside.any():
        row = outside.nonzero()[0]
        raise IndexError(
            f"label {labels[tuple(row)].item()} in row {row[0].item()} is out of range, expected 0..{num_classes - 1} "
            f"or ignore_index {ignore_index} (labels span {labels.min().item()}..{labels.max().item()})"
        )
