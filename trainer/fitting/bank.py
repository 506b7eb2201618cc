"""Heads side by side on the same rows: one module with a bank axis, one loss for each group of equal losses."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from ...models.heads import Head
from ..config import TrainConfig
from ..criterion import KEYWORDS, criterion
from ..losses import TopKCrossEntropy


class Bank:
    """A module of H heads, and their losses.

    Args:
        head: With a bank axis, or a single head.
        configs: The settings of every head; neighbours with equal losses share one call.
        device: Where both are to be.
    """

    def __init__(self, head: Head, configs: Sequence[TrainConfig], device: torch.device) -> None:
        self.head, self.size = head.to(device), len(configs)
        self._upstream: dict[float, Tensor] = {}
        self._criteria: list[tuple[slice, TopKCrossEntropy]] = []
        first = 0
        for _, equal in groupby(configs, key=loss_key):
            group = list(equal)
            loss = criterion(group[0], inplace=device.type == "cuda").to(device)
            self._criteria.append((slice(first, first + len(group)), loss))
            first += len(group)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What is trained, each with the bank's axis first unless the bank is a single head."""
        return [parameter for parameter in self.head.parameters() if parameter.requires_grad]

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
        for heads, loss in self._criteria:
            yield _losses(loss, logits[heads], labels)

    def gradient(self, logits: Tensor, labels: Tensor, upstream: float) -> tuple[Tensor, list[Tensor]]:
        """The gradient of ``upstream`` times the sum of all losses by the logits, and those losses.

        Args:
            logits: ``(H, N, C)`` that nobody needs afterwards: the gradient may overwrite them.
            labels: ``(N,)`` int64.
            upstream: The factor.
        """
        if upstream not in self._upstream:
            self._upstream[upstream] = torch.tensor(upstream, device=logits.device)
        factor = self._upstream[upstream]
        gradient, found = logits.detach(), []
        for heads, loss in self._criteria:
            group = gradient[heads].requires_grad_()
            losses = _losses(loss, group, labels)
            [slope] = torch.autograd.grad(losses, group, factor.expand_as(losses))
            if len(self._criteria) == 1:
                gradient = slope
            elif slope.data_ptr() != group.data_ptr():
                gradient[heads] = slope
            found.append(losses.detach())
        return gradient, found


def _losses(loss: TopKCrossEntropy, logits: Tensor, labels: Tensor) -> Tensor:
    heads, rows, classes = logits.shape
    found: Tensor = loss(logits.reshape(heads * rows, classes), labels if heads == 1 else labels.repeat(heads))
    return found.view(heads, rows)


def loss_key(config: TrainConfig) -> tuple[object, ...]:
    """What heads must share to share one call of the loss."""
    return tuple(getattr(config, name) for name in KEYWORDS)
