"""The scores of chosen heads on a split, and whether two of them differ by more than chance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.distributed import Processes
from ...metrics.paired import holm, paired_counts
from ...models.heads import Head
from ..config import TrainConfig
from ..criterion import selection_weights
from ..fitting.device_rows import place
from ..fitting.head_bank import Bank
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


def paired_tests(ranks: Tensor, others: Tensor, classes: int) -> dict[str, Counts]:
    """`paired_counts` for top-1, and for top-5 where there are more than five classes."""
    return {f"top{k}": paired_counts(ranks.numpy(), others.numpy(), k) for k in (1, 5) if k < classes}


def adjusted(tests: Sequence[dict[str, Counts]]) -> list[dict[str, Counts]]:
    """Add ``p_holm``, p by Holm over all measures of all contenders: one is wrongly below 0.05 in 5 % of sweeps."""
    flat = [test for one in tests for test in one.values()]
    p_holm = iter(holm(np.array([test["p"] for test in flat])).tolist())
    return [{name: test | {"p_holm": next(p_holm)} for name, test in one.items()} for one in tests]
