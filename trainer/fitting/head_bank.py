"""Heads side by side on the same rows: one module with a bank axis, one loss for each group of equal losses."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

import torch
from torch import Tensor

from ...models.heads import Head
from ..criterion import KEYWORDS, criterion
from ..loss_defaults import options_read
from ..losses import TopKCrossEntropy
from ..train_config import TrainConfig
from .parallel_compilation import side_by_side

T = TypeVar("T")


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
        self._called: set[tuple[str, torch.Size]] = set()
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

    def each(self, what: str, shape: torch.Size, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Call what there is to do for every group; side by side the first time, which compiles kernels.

        Args:
            what: Names the kind of call.
            shape: Of the scores.
            calls: One for each group, in order.
        """
        first, device = (what, shape) not in self._called, self.parameters[0].device
        self._called.add((what, shape))
        if first and device.type == "cuda" and len(calls) > 1:
            methods = [loss.options.method for _, loss in self.groups]
            return side_by_side(list(zip(methods, calls, strict=True)), device)
        return [call() for call in calls]

    def losses(self, logits: Tensor, labels: Tensor) -> list[Tensor]:
        """The losses of every row, ``(G, N)`` for each group of G heads, in the order of the heads.

        Args:
            logits: ``(H, N, C)``.
            labels: ``(N,)`` int64.
        """
        calls = [partial(_losses, loss, logits[heads], labels) for heads, loss in self.groups]
        return self.each("losses", logits.shape, calls)

    def gradient(self, logits: Tensor, labels: Tensor, upstream: float) -> tuple[Tensor, list[Tensor]]:
        """The gradient of ``upstream`` times the sum of all losses by the logits, and those losses.

        Args:
            logits: ``(H, N, C)`` that nobody needs afterwards: the gradient may overwrite them.
            labels: ``(N,)`` int64.
            upstream: The factor.
        """
        gradient = logits.detach()
        calls = [
            partial(
                self.slope, loss, gradient[heads].flatten(0, 1), _repeated(labels, heads.stop - heads.start), upstream
            )
            for heads, loss in self.groups
        ]
        found = []
        for (heads, _), (slope, losses) in zip(self.groups, self.each("slope", logits.shape, calls), strict=True):
            group = gradient[heads]
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


def _losses(loss: TopKCrossEntropy, logits: Tensor, labels: Tensor) -> Tensor:
    """The losses ``(G, N)`` of logits ``(G, N, C)``."""
    losses: Tensor = loss(logits.flatten(0, 1), _repeated(labels, len(logits)))
    return losses.view(logits.shape[:2])


def _repeated(labels: Tensor, times: int) -> Tensor:
    """Labels ``(N,)`` for so many heads; those of a single one are not copied."""
    return labels if times == 1 else labels.repeat(times)


def _shared_call(place: int, config: TrainConfig) -> tuple[object, ...]:
    """What neighbours share whose rows go into one call; a loss that chooses among rows has one head's only."""
    return (*loss_key(config), place if "hardest_share" in options_read(config.loss) else None)


def loss_key(config: TrainConfig) -> tuple[object, ...]:
    """What heads must share to share one call of the loss."""
    return tuple(getattr(config, name) for name in KEYWORDS)
