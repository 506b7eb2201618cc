"""Which rows every step takes: the same for any number of processes, and known from seed and epoch alone."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Window:
    """A few steps' rows, loaded together.

    Attributes:
        rows: ``(R,)`` int64 indices into the training split, those of this process, step after step; pinned where there
            is CUDA.
        sizes: How many of them each step takes.
        totals: Rows of each step over all processes.
        first_step: Index of the first of these steps since training began.
    """

    rows: Tensor
    sizes: tuple[int, ...]
    totals: tuple[int, ...]
    first_step: int


def row_order(labels: Tensor, seed: int, epoch: int, *, balanced: bool) -> Tensor:
    """The rows of an epoch, ``(N,)`` int64 on the CPU.

    Args:
        labels: ``(N,)`` int64 on the CPU.
        seed: The run's seed.
        epoch: Its epoch, from 1.
        balanced: Draw with replacement, every class that has rows equally often, instead of each row once.
    """
    generator = epoch_generator(seed, epoch, torch.device("cpu"))
    if not balanced:
        return torch.randperm(len(labels), generator=generator)
    by_class = labels.argsort(stable=True)
    counts = labels.bincount()
    present = counts.nonzero().flatten()
    drawn = present[torch.randint(len(present), (len(labels),), generator=generator)]
    within = torch.rand(len(labels), generator=generator, dtype=torch.float64) * counts[drawn]
    return by_class[(counts.cumsum(0) - counts)[drawn] + within.long()]


def epoch_generator(seed: int, epoch: int, device: torch.device) -> torch.Generator:
    """A generator for one epoch, so that an epoch needs nothing from those before it."""
    state = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state >> np.uint64(1)))


def windows(order: Tensor, batch_size: int, steps: int, first_step: int, rank: int, ranks: int) -> list[Window]:
    """Cut an epoch into windows of ``steps`` steps of ``batch_size`` rows; the last one may be smaller.

    Args:
        order: ``(N,)`` int64 on the CPU.
        batch_size: Rows a step, over all processes.
        steps: Steps a window.
        first_step: Index of the epoch's first step.
        rank: This process; it takes every ``ranks``-th row of a batch, from the ``rank``-th on.
        ranks: How many processes there are.
    """
    batches = order.split(batch_size)
    shares = [batch[rank::ranks] for batch in batches]
    rows = order if ranks == 1 else torch.cat(shares)
    if torch.cuda.is_available():
        rows = rows.pin_memory()
    found, start = [], 0
    for first in range(0, len(batches), steps):
        sizes = tuple(len(share) for share in shares[first : first + steps])
        totals = tuple(len(batch) for batch in batches[first : first + steps])
        found.append(Window(rows[start : start + sum(sizes)], sizes, totals, first_step + first))
        start += sum(sizes)
    return found
