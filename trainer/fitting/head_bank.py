"""Heads side by side on the same rows: one module with a bank axis, one loss for each group of equal losses."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor

from ...models.heads import Head
from ..config import TrainConfig
from ..criterion import KEYWORDS, criterion
from ..loss_methods import options_read
from ..losses import TopKCrossEntropy


class Bank:
    """A module of H heads, and their losses.

    Args:
        head: With a bank axis, or a single head.
        configs: The settings of every head; neighbours with equal losses share one call.
        device: Where both are to be.
        class_counts: ``(C,)`` rows of training of each class, for the losses that read them.

    Attributes:
        head: The module.
        size: H.
        parameters: What is trained, each with the bank's axis first unless the bank is a single head.
        groups: Which heads share a loss, in order, and that loss, row by row.
    """

    def __init__(
        self, head: Head, configs: Sequence[TrainConfig], device: torch.device, class_counts: Tensor | None = None
    ) -> None:
        self.head, self.size = head.to(device), len(configs)
        self.parameters = [parameter for parameter in self.head.parameters() if parameter.requires_grad]
        self.groups: list[tuple[slice, TopKCrossEntropy]] = []
        self._upstream: dict[float, Tensor] = {}
        first = 0
        for _, equal in groupby(enumerate(configs), key=lambda entry: _shared_call(*entry)):
            group = [config for _, config in equal]
            loss = criterion(group[0], inplace=device.type == "cuda", class_counts=class_counts).to(device)
            self.groups.append((slice(first, first + len(group)), loss))
            first += len(group)

    def logits(self, features: Tensor) -> Tensor:
        """Logits ``(H, N, C)`` of features ``(N, D)``."""
        logits: Tensor = self.head(features)
        return logits if logits.ndim == 3 else logits[None]

    def losses(self, logits: Tensor, labels: Tensor) -> Iterator[Tensor]:
        """The losses of every row, ``(G, N)`` for each group of G heads, in the order of the heads.

        Args:
            logits: ``(H, N, C)``.
            labels: ``(N,)`` int64.
        """
        for heads, loss in self.groups:
            group = logits[heads]
            yield loss(group.flatten(0, 1), _repeated(labels, len(group))).view(group.shape[:2])

    def gradient(self, logits: Tensor, labels: Tensor, upstream: float) -> tuple[Tensor, list[Tensor]]:
        """The gradient of ``upstream`` times the sum of all losses by the logits, and those losses.

        Args:
            logits: ``(H, N, C)`` that nobody needs afterwards: the gradient may overwrite them.
            labels: ``(N,)`` int64.
            upstream: The factor.
        """
        gradient, found = logits.detach(), []
        for heads, loss in self.groups:
            group = gradient[heads]
            slope, losses = self.slope(loss, group.flatten(0, 1), _repeated(labels, len(group)), upstream)
            if len(self.groups) == 1:
                gradient = slope.view_as(group)
            elif slope.data_ptr() != group.data_ptr():
                group.copy_(slope.view_as(group))
            found.append(losses.view(group.shape[:2]))
        return gradient, found

    def slope(self, loss: TopKCrossEntropy, logits: Tensor, labels: Tensor, upstream: float) -> tuple[Tensor, Tensor]:
        """The gradient of ``upstream`` times the sum of one group's losses by its logits, and those losses.

        Args:
            loss: The group's.
            logits: ``(R, C)`` that nobody needs afterwards: the gradient may overwrite them.
            labels: ``(R,)`` int64.
            upstream: The factor.
        """
        if upstream not in self._upstream:
            self._upstream[upstream] = torch.tensor(upstream, device=logits.device)
        logits = logits.detach().requires_grad_()
        losses: Tensor = loss(logits, labels)
        [slope] = torch.autograd.grad(losses, logits, self._upstream[upstream].expand_as(losses))
        return slope, losses.detach()


def _repeated(labels: Tensor, times: int) -> Tensor:
    """Labels ``(N,)`` for so many heads; those of a single one are not copied."""
    return labels if times == 1 else labels.repeat(times)


def _shared_call(place: int, config: TrainConfig) -> tuple[object, ...]:
    """What neighbours share whose rows go into one call; a loss that chooses among rows has one head's only."""
    return (*loss_key(config), place if "hardest_share" in options_read(config.loss) else None)


def loss_key(config: TrainConfig) -> tuple[object, ...]:
    """What heads must share to share one call of the loss."""
    return tuple(getattr(config, name) for name in KEYWORDS)
