"""Losses and accuracies of a bank on a split."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.func import functional_call

from ...core.distributed import Processes
from ..scores import SplitScores
from .device_rows import DeviceRows
from .head_bank import Bank
from .label_ranks import label_ranks

# Logits that are held at once.
_LOGITS = 2**25
_ROWS = 16384


@torch.inference_mode()
def label_ranks_of(
    bank: Bank, state: Mapping[str, Tensor], rows: DeviceRows, processes: Processes
) -> tuple[Tensor, Tensor]:
    """Score every row of a split in float32; each process takes its share.

    Args:
        bank: The heads.
        state: Their parameters, by name, in place of the bank's own.
        rows: The split.
        processes: Who shares the work.

    Returns:
        Rank of the label ``(H, N)`` int64, see `label_ranks`, and mean losses ``(H,)``, both on the device.
    """
    total = len(rows.labels)
    ranks, losses = [], torch.zeros(bank.size, dtype=torch.float64, device=processes.device)
    classes = bank.head.num_classes
    size = min(_ROWS, max(_LOGITS // (bank.size * classes), 64))
    for features, labels in rows.blocks(size, processes.rank, processes.count):
        logits = functional_call(bank.head, dict(state), (features.float(),)).view(bank.size, len(labels), -1)
        ranks.append(label_ranks(logits.flatten(0, 1), labels.repeat(bank.size)).view(bank.size, -1))
        losses += torch.cat([found.double().sum(1) for found in bank.losses(logits, labels)])
    shares = torch.cat(ranks, dim=1) if ranks else rows.labels.new_empty(bank.size, 0)
    processes.sum(losses)
    return processes.gather(shares, total), losses / total


def hit_counts(ranks: Tensor, weights: Sequence[float] = ()) -> Tensor:
    """How many ranks ``(..., N)`` are below 1, 2, ..., K: ``(..., K)`` int64.

    K is what `split_scores` needs with ``weights``.
    """
    return torch.stack([(ranks < k).sum(-1) for k in range(1, max(len(weights), 5) + 1)], dim=-1)


def split_scores(hits: Sequence[float], n: int, loss: float, weights: Sequence[float], num_classes: int) -> SplitScores:
    """The scores of one head.

    Args:
        hits: How many rows have their label among the top 1, 2, ...: see `hit_counts`.
        n: How many rows there are.
        loss: Mean loss.
        weights: Of top-1, top-2, ... in the score.
        num_classes: C; with fewer than five there is no ``top5``.
    """
    shares = [count / n for count in hits]
    score = sum(weight * share for weight, share in zip(weights, shares, strict=False))
    return SplitScores(n, loss, shares[0], shares[4] if num_classes >= 5 else None, score)


def scores_of_ranks(ranks: Tensor, loss: float, weights: Sequence[float], num_classes: int) -> SplitScores:
    """`split_scores` of the ``(N,)`` ranks of the labels, from 0."""
    return split_scores(hit_counts(ranks, weights).tolist(), len(ranks), loss, weights, num_classes)


@contextmanager
def tf32(device: torch.device) -> Iterator[None]:
    """Let float32 products on a CUDA device round their inputs to TF32: for training, not for what is reported."""
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    if device.type == "cuda":
        matmul.fp32_precision = "tf32"
    try:
        yield
    finally:
        matmul.fp32_precision = before
