"""The scores of chosen heads on a split, and whether two of them differ by more than chance."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ...core.distributed import Processes
from ...metrics.paired import holm, paired_counts
from ...models.heads import Head
from ..fitting.device_rows import place
from ..fitting.head_bank import Bank
from ..fitting.scoring import label_ranks_of, scores_of_ranks
from ..resolved_settings import selection_weights
from ..scores import SplitScores
from ..train_config import TrainConfig
from .sweep_record import PairedTest


def score(
    head: Head, config: TrainConfig, features: Tensor, labels: Tensor, class_counts: Tensor | None = None
) -> tuple[SplitScores, Tensor]:
    """Score a head on rows.

    Args:
        head: A single head.
        config: Its settings.
        features: ``(N, D)``.
        labels: ``(N,)`` int64.
        class_counts: ``(C,)`` rows of training of each class, for a loss that reads them.

    Returns:
        The scores, and the ranks ``(N,)`` of the labels, from 0.
    """
    device = torch.device(config.device)
    bank = Bank(head, [config], device, class_counts)
    rows = place(features, labels, device, None)
    ranks, losses = label_ranks_of(bank, dict(bank.head.named_parameters()), rows, Processes(device))
    scores = scores_of_ranks(ranks[0], float(losses[0]), selection_weights(config, head.num_classes), head.num_classes)
    return scores, ranks[0].cpu()


def paired_tests(ranks: Tensor, others: Tensor, classes: int) -> dict[str, PairedTest]:
    """`paired_counts` for top-1, and for top-5 where there are more than five classes."""
    return {
        f"top{k}": PairedTest(**vars(paired_counts(ranks.numpy(), others.numpy(), k))) for k in (1, 5) if k < classes
    }


def adjusted(tests: Sequence[dict[str, PairedTest]]) -> list[dict[str, PairedTest]]:
    """Add ``p_holm``, p by Holm over all measures of all groups: one is wrongly below 0.05 in 5 % of sweeps."""
    flat = [test for one in tests for test in one.values()]
    p_holm = iter(holm(np.array([test.p for test in flat])).tolist())
    return [{name: replace(test, p_holm=next(p_holm)) for name, test in one.items()} for one in tests]
