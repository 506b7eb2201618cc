"""A linear head and its loss in one, over chunks of rows, so that no (B, C) tensor ever exists."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .rank_weights import PK, as_p_k
from .reduction import row_weights
from .settings import Settings
from .weighted_loss import check_reduction, resolve_p_k, weighted_loss

_CHUNK_ELEMENTS = 2**25
_LEAST_CHUNKS = 8
_LEAST_ROWS = 16

ChunkLoss = Callable[[Tensor, int, int], Tensor]


def linear_topk_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    p_k: PK | None = None,
    sample_p_k: PK | None = None,
    class_weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
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
        ignore_index: as in `topk_cross_entropy`.
        reduction: as in `topk_cross_entropy`.
        label_smoothing: as in `topk_cross_entropy`.
        chunk_rows: rows whose logits exist at a time; None takes at most 2^25 logits and at most an eighth of the rows.
        **options: `method`, `m`, `inverse_temperature` and the other fields of `Settings`.

    Returns:
        A scalar, or (B,) for reduction `none`.

    Raises:
        ValueError: shapes that do not fit, and whatever `topk_cross_entropy` raises.
    """
    settings = Settings(**options)
    check_reduction(reduction, label_smoothing)
    rows, classes = _check_shapes(features, weight, bias, labels)
    if sample_p_k is None:
        weights = resolve_p_k(p_k, settings, features.device)
    else:
        weights = as_p_k(sample_p_k, "sample_p_k").to(features.device)

    def chunk_loss(logits: Tensor, start: int, stop: int, how: str = "sum") -> Tensor:
        return weighted_loss(
            logits,
            labels[start:stop],
            weights if sample_p_k is None else weights[start:stop],
            settings,
            per_sample=sample_p_k is not None,
            weight=class_weight,
            ignore_index=ignore_index,
            reduction=how,
            label_smoothing=label_smoothing,
            inplace=True,
        )

    if torch.is_autocast_enabled(features.device.type):
        dtype = torch.get_autocast_dtype(features.device.type)
        features, weight, bias = features.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    step = chunk_rows or max(min(_CHUNK_ELEMENTS // classes, -(-rows // _LEAST_CHUNKS)), _LEAST_ROWS)
    if reduction == "none":
        return _rows_of_losses(features, weight, bias, chunk_loss, step)
    total: Tensor = _ChunkedLoss.apply(features, weight, bias, chunk_loss, step)
    if reduction == "sum":
        return total
    count = row_weights(labels, class_weight, ignore_index, classes).sum()
    return total / count.where(count > 0, 1.0)


def _check_shapes(features: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> tuple[int, int]:
    if features.ndim != 2 or weight.ndim != 2 or features.shape[1] != weight.shape[1]:
        raise ValueError(
            f"features have shape {tuple(features.shape)} and weight {tuple(weight.shape)}, expected (B, D) and (C, D)"
        )
    if bias is not None and bias.shape != (len(weight),):
        raise ValueError(f"bias has shape {tuple(bias.shape)}, expected ({len(weight)},)")
    if labels.ndim == 0 or len(labels) != len(features):
        raise ValueError(f"labels have shape {tuple(labels.shape)} for {len(features)} rows of features")
    return len(features), len(weight)


def _rows_of_losses(features: Tensor, weight: Tensor, bias: Tensor | None, loss: Any, step: int) -> Tensor:
    def chunk(x: Tensor, weight: Tensor, bias: Tensor | None, start: int) -> Tensor:
        rows: Tensor = loss(torch.nn.functional.linear(x, weight, bias), start, start + len(x), "none")
        return rows

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
                total += loss(logits, start, start + len(rows))
                continue
            total += _chunk_gradients(logits, rows, weight, start, loss, grads)
        ctx.grads = grads
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
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
        value = loss(logits, start, start + len(rows))
        (by_logits,) = torch.autograd.grad(value, logits)
    by_features, by_weight, by_bias = grads
    if by_features is not None:
        torch.mm(by_logits, weight, out=by_features[start : start + len(rows)])
    if by_weight is not None:
        by_weight.addmm_(by_logits.t(), rows)
    if by_bias is not None:
        by_bias += by_logits.sum(dim=0)
    return value.detach()
