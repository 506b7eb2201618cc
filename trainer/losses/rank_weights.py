"""The distribution over k (`p_k`): its validation, and the weights that it gives to ranks."""

from collections.abc import Sequence
from numbers import Real

import torch
from torch import Tensor

from ...core.printable import shown
from ..loss_options import LossOptions
from .targets import check_dense

PK = Sequence[float] | Sequence[Sequence[float]] | Tensor

_CONSTANTS: dict[tuple[tuple[float, ...], torch.device], Tensor] = {}


def as_p_k(p_k: PK, name: str = "p_k") -> Tensor:
    """Validate a distribution over k.

    Args:
        p_k: (K,) or (rows, K), each row non-negative with sum 1, which 16 bits may round (the sum is then made 1).
            Values on an accelerator are not looked at, since that would wait for the device.
        name: the argument's name in messages.

    Returns:
        A detached floating tensor of the same shape, on the device of `p_k` (CPU for sequences).

    Raises:
        ValueError: not numbers, wrong shape, empty, negative, or a sum other than 1.
        TypeError: a sparse tensor.
    """
    if isinstance(p_k, Tensor):
        check_dense(name, p_k)
    try:
        values = p_k.detach() if isinstance(p_k, Tensor) else torch.as_tensor(p_k, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name}: {shown(p_k)} found, expected numbers (K,) or (rows, K)") from None
    if values.ndim not in (1, 2) or values.shape[-1] == 0:
        raise ValueError(f"{name}: shape {tuple(values.shape)} found, expected (K,) or (rows, K) with K of at least 1")
    if values.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_values(values.reshape(-1, values.shape[-1]), name)
    if values.dtype in (torch.bfloat16, torch.float16):
        values = values.float()
        return values / values.sum(dim=-1, keepdim=True)
    return values if values.is_floating_point() else values.to(torch.float32)


def p_k_on(p_k: PK, device: torch.device) -> Tensor:
    """`as_p_k` on `device`; checked and copied once if a list of numbers, so that later calls do not wait."""
    if isinstance(p_k, Tensor) and p_k.device.type == "meta" != device.type:
        raise ValueError(f"p_k is on meta, without values, and logits on {device}; expected one device")
    if not isinstance(p_k, (list, tuple)) or not all(isinstance(share, Real) for share in p_k):
        return as_p_k(p_k).to(device)
    values = tuple(p_k)
    if torch.compiler.is_compiling():
        return torch.tensor(values, dtype=torch.float64, device=device)
    if (values, device) not in _CONSTANTS:
        _CONSTANTS[values, device] = as_p_k(values).to(device)
    return _CONSTANTS[values, device]


def resolve_p_k(p_k: PK | None, options: LossOptions, device: torch.device) -> Tensor:
    """`p_k` checked against the options and placed on `device`; None becomes the method's default."""
    if p_k is None:
        p_k = [0.5, 0.0, 0.0, 0.0, 0.5] if options.relaxed else [1.0]
    tensor = p_k_on(p_k, device)
    if not options.relaxed and tensor.shape[-1] != 1:
        raise ValueError(f"p_k: {tensor.shape[-1]} entries found, but method 'softmax' knows top-1 only; expected [1]")
    check_length(tensor.shape[-1], options.m if options.relaxed else None, None)
    return tensor


def as_sample_p_k(p_k: PK, device: torch.device) -> Tensor:
    """`as_p_k` of one distribution a row, for logits on `device`; raises ValueError for a tensor elsewhere."""
    if isinstance(p_k, Tensor) and p_k.device != device:
        raise ValueError(f"sample_p_k is on {p_k.device} and logits on {device}, expected one device")
    return as_p_k(p_k, "sample_p_k").to(device)


def _check_values(rows: Tensor, name: str) -> None:
    tolerance = max(1e-4, torch.finfo(rows.dtype).eps) if rows.is_floating_point() else 0
    rows = rows.double()
    lowest = rows.min(dim=1).values
    sums = rows.sum(dim=1)
    for i in range(len(rows)):
        where = f"{name}:" if len(rows) == 1 else f"{name}: row {i}"
        if not lowest[i] >= 0:
            raise ValueError(f"{where} holds {lowest[i].item():g}, expected non-negative weights")
        if not abs(sums[i] - 1) <= tolerance:
            raise ValueError(f"{where} sums to {sums[i].item():.6g}, expected 1")


def check_length(k: int, m: int | None, num_classes: int | None, name: str = "p_k") -> None:
    """Raise ValueError when `name` has more entries than there are candidates or classes."""
    if num_classes is not None and k > num_classes:
        raise ValueError(f"{name}: {k} entries found for {num_classes} classes, expected at most {num_classes}")
    if m is not None and k > m:
        raise ValueError(f"{name}: {k} entries found, but m is {m}; expected m of at least {k}")


def log_membership_weights(p_k: Tensor, without_top1: bool) -> Tensor:
    """The logarithm of p_k (..., K), of whose first share is left out where it goes to the softmax."""
    return torch.cat([p_k[..., :1] * (not without_top1), p_k[..., 1:]], dim=-1).log()


def log_rank_weights(p_k: Tensor, without_top1: bool) -> Tensor:
    """The logarithm of w_r = sum over k >= r of p_k, the weight of rank r.

    Args:
        p_k: (..., K).
        without_top1: leave the share of k = 1 out (it goes to the softmax).

    Returns:
        (..., K), minus infinity where no k asks for that rank.
    """
    weights = p_k.flip(-1).cumsum(-1).flip(-1)
    if without_top1:
        rest = p_k[..., 1:].sum(-1, keepdim=True)
        weights = torch.cat([rest, weights[..., 1:]], dim=-1)
    return weights.log()
