"""The scores of chosen heads on a split, and whether two of them differ by more than chance."""

from typing import Any

import torch
from scipy.stats import binomtest
from torch import Tensor

from ...models.heads import Head
from ..config import TrainConfig
from ..criterion import selection_weights
from ..fitting.bank import Bank
from ..fitting.processes import Processes
from ..fitting.rows import place
from ..fitting.scoring import accuracies, hit_counts, label_ranks_of

Counts = dict[str, Any]


def score(head: Head, config: TrainConfig, features: Tensor, labels: Tensor) -> tuple[dict[str, Any], Tensor]:
    """Score a head on rows.

    Args:
        head: A single head.
        config: Its settings.
        features: ``(N, D)``.
        labels: ``(N,)`` int64.

    Returns:
        ``n``, ``loss``, ``top1``, ``top5`` (``None`` with fewer than five classes) and ``score``, and the ranks
        ``(N,)`` of the labels, from 0.
    """
    device = torch.device(config.device)
    bank = Bank(head, [config], device)
    rows = place(features, labels, device, None)
    ranks, losses = label_ranks_of(bank, dict(bank.head.named_parameters()), rows, Processes(device))
    weights = selection_weights(config, head.num_classes)
    hits = hit_counts(ranks[0], weights).tolist()
    return accuracies(hits, len(labels), float(losses[0]), weights, head.num_classes), ranks[0].cpu()


def mcnemar(ranks: Tensor, others: Tensor, k: int) -> Counts:
    """McNemar's exact test: do two heads differ in top-k accuracy on the same rows?

    Only the rows count on which one of both is right; without a difference, each is as likely to be the one
    (McNemar 1947, Psychometrika 12).

    Args:
        ranks: ``(N,)`` the label's rank by the first head, from 0.
        others: ``(N,)`` the same by the second.
        k: A row is right when its rank is below k.

    Returns:
        ``only_first`` and ``only_second``, rows that one head alone has right, and the two-sided ``p``.
    """
    first, second = ranks < k, others < k
    ahead, behind = int((first & ~second).sum()), int((second & ~first).sum())
    p = float(binomtest(ahead, ahead + behind, 0.5).pvalue) if ahead + behind else 1.0
    return {"only_first": ahead, "only_second": behind, "p": p}


def paired_tests(ranks: Tensor, others: Tensor, classes: int) -> dict[str, Counts]:
    """`mcnemar` for top-1, and for top-5 where there are more than five classes."""
    return {f"top{k}": mcnemar(ranks, others, k) for k in (1, 5) if k < classes}
