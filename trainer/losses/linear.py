"""A linear head and its loss in one, over chunks of rows, so that no (B, C) tensor ever exists."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ...core.arguments import named
from ..option_checks import number
from .cached_options import changed, loss_options
from .option_signatures import with_options
from .rank_weights import PK, as_sample_p_k, resolve_p_k
from .reduction import row_weights
from .second_derivatives import refuse_second_derivatives
from .targets import Targets, check_floating
from .weighted_loss import check_targets, weighted_loss

_CHUNK_ELEMENTS = 2**25
_LEAST_CHUNKS = 8
_LEAST_ROWS = 16

ChunkLoss = Callable[[Tensor, int], Tensor]


@named
@with_options(without=("inplace",))
def linear_topk_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    p_k: PK | None = None,
    sample_p_k: PK | None = None,
    class_weight: Tensor | None = None,
    class_counts: Tensor | None = None,
    chunk_rows: int | None = None,
    **options: Any,
) -> Tensor:
    """`topk_cross_entropy(features @ weight.T + bias, labels)` without holding the logits.

    For `mean` and `sum` the gradients are computed with the loss, chunk by chunk, and the backward only scales them (it
    runs once); for `none` the backward computes the logits again. A gradient of the weight in 16 bits is rounded once a
    chunk.

    Args:
        features: (B, D) floating.
        weight: (C, D), the linear layer's.
        bias: (C,) or None.
        labels: as in `topk_cross_entropy`.
        p_k: as in `topk_cross_entropy`.
        sample_p_k: as in `topk_cross_entropy`.
        class_weight: (C,), the `weight` of `topk_cross_entropy`.
        class_counts: as in `topk_cross_entropy`.
        chunk_rows: rows whose logits exist at a time; None takes at most 2^25 logits and at most an eighth of the rows.
        **options: see `LossOptions`.

    Returns:
        A scalar, or (B,) for reduction `none`.

    Raises:
        ValueError: shapes, types or devices that do not fit, `class_weight` or `labels` that require a gradient, and
            whatever `topk_cross_entropy` raises.
        TypeError: an unknown keyword, and whatever `topk_cross_entropy` raises.
    """
    chosen = loss_options(**options)
    if chunk_rows is not None:
        number("chunk_rows", chunk_rows, "None or a whole number of at least 1", lambda x: x >= 1, whole=True)
    if chosen.over_rows:
        raise ValueError(
            f"method: {chosen.method!r} found, which chooses among all rows of a batch, and here they come in chunks; "
            "expected topk_cross_entropy for it"
        )
    rows, classes = _check_layer(features, weight, bias)
    if sample_p_k is None:
        targets = Targets(labels, resolve_p_k(p_k, chosen, features.device), None, class_weight, class_counts)
    else:
        sample_p_k = as_sample_p_k(sample_p_k, features.device)
        targets = Targets(labels, None, sample_p_k, class_weight, class_counts)
    check_targets((rows, classes), features.device, targets, chosen, "class_weight")
    for name, tensor in (("class_weight", class_weight), ("labels", labels)):
        if tensor is not None and tensor.requires_grad:
            raise ValueError(f"{name} requires a gradient, which is not computed here; expected {name}.detach()")
    reduction = chosen.reduction
    by_row = reduction == "none" or torch.compiler.is_compiling()
    by_chunk = changed(chosen, reduction="none" if by_row else "sum", inplace=True)

    def chunk_loss(logits: Tensor, start: int) -> Tensor:
        return weighted_loss(logits, targets.rows(start, start + len(logits)), by_chunk)

    if torch.is_autocast_enabled(features.device.type):
        dtype = torch.get_autocast_dtype(features.device.type)
        features, weight, bias = features.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    step = chunk_rows or max(min(_CHUNK_ELEMENTS // classes, -(-rows // _LEAST_CHUNKS)), _LEAST_ROWS)
    if by_row:
        losses = _rows_of_losses(features, weight, bias, chunk_loss, step)
        if reduction == "none":
            return losses
        total = losses.sum()
    else:
        total = _ChunkedLoss.apply(features, weight, bias, chunk_loss, step)
    if reduction == "sum":
        return total
    count = row_weights(labels, class_weight, chosen.ignore_index, classes).sum()
    return total / count.where(count > 0, 1.0)


def _check_layer(features: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[int, int]:
    """B and C, once shapes, types and devices fit each other."""
    layer = {"features": features, "weight": weight} | ({} if bias is None else {"bias": bias})
    check_floating("features", features)
    if features.device.type == "meta":
        raise TypeError("features: found a tensor on meta, without values, expected one on cpu or cuda")
    for name, tensor in layer.items():
        if isinstance(tensor, Tensor) and tensor.device != features.device:
            raise ValueError(f"{name} is on {tensor.device} and features on {features.device}, expected one device")
        check_floating(name, tensor)
    if features.ndim != 2 or weight.ndim != 2 or features.shape[1] != weight.shape[1] or not len(weight):
        raise ValueError(
            f"features have shape {tuple(features.shape)} and weight {tuple(weight.shape)}, expected (B, D) and (C, D)"
        )
    if bias is not None and bias.shape != (len(weight),):
        raise ValueError(f"bias has shape {tuple(bias.shape)}, expected ({len(weight)},)")
    mixed = not torch.is_autocast_enabled(features.device.type)
    for name, tensor in layer.items():
        if mixed and tensor.dtype != features.dtype:
            raise ValueError(f"{name}: found {tensor.dtype}, expected {features.dtype} as the features")
    return len(features), len(weight)


def _rows_of_losses(features: Tensor, weight: Tensor, bias: Tensor | None, loss: ChunkLoss, step: int) -> Tensor:
    def chunk(x: Tensor, weight: Tensor, bias: Tensor | None, start: int) -> Tensor:
        return loss(torch.nn.functional.linear(x, weight, bias), start)

    starts = range(0, max(len(features), 1), step)
    parts = [checkpoint(chunk, features[i : i + step], weight, bias, i, use_reentrant=False) for i in starts]
    return torch.cat(parts)


class _ChunkedLoss(torch.autograd.Function):
    """The sum of the chunks' losses, and the gradients by features, weight and bias."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None, loss: ChunkLoss, step: int) -> Tensor:
        wanted = ctx.needs_input_grad[:3]
        inputs = (features, weight, bias)
        grads = [
            torch.zeros_like(x) if want and x is not None else None for x, want in zip(inputs, wanted, strict=True)
        ]
        total = torch.zeros((), dtype=torch.promote_types(features.dtype, torch.float32), device=features.device)
        for start in range(0, len(features), step):
            rows = features[start : start + step]
            logits = torch.nn.functional.linear(rows, weight, bias)
            if not any(wanted):
                total += loss(logits, start)
                continue
            total += _chunk_gradients(logits, rows, weight, start, loss, grads)
        ctx.grads = grads
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        if ctx.grads is None:
            raise RuntimeError(
                "linear_topk_cross_entropy can run its backward once, because that overwrites its gradients"
            )
        grads, ctx.grads = ctx.grads, None
        return *(grad if grad is None else grad.mul_(upstream) for grad in grads), None, None


def _chunk_gradients(
    logits: Tensor, rows: Tensor, weight: Tensor, start: int, loss: ChunkLoss, grads: list[Tensor | None]
) -> Tensor:
    with torch.enable_grad():
        logits.requires_grad_()
        value = loss(logits, start)
        (by_logits,) = torch.autograd.grad(value, logits)
    by_features, by_weight, by_bias = grads
    if by_features is not None:
        torch.mm(by_logits, weight, out=by_features[start : start + len(rows)])
    if by_weight is not None:
        by_weight.addmm_(by_logits.t(), rows)
    if by_bias is not None:
        by_bias += by_logits.sum(dim=0)
    return value.detach()
