"""The steps of linear heads on half-precision features, as wide layers."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter

import torch
from torch import Tensor

from ...core.distributed import Processes
from ...models.heads import Linear
from ...models.heads.affine import column_sums
from ..losses import TopKCrossEntropy
from .fused_optimizer import FusedOptimizer
from .gradients import gradient_of
from .head_bank import Bank

# Classes whose half-precision scores fill the 16 bytes to which fast products want rows aligned.
_ALIGNED = 8


class WideLinear:
    """A bank of linear heads as few products of features with the weights of many heads.

    The classes of every head are padded to a multiple of 8 with weights of zero, which stay: a product of 10,450
    classes takes 2.7 times as long as one of 10,456.

    Args:
        bank: Heads for which `fits` is true.
        optimizer: Of their float32 weights and biases.
        processes: Who else works on the same batches.
        dtype: Of the features.
    """

    def __init__(self, bank: Bank, optimizer: FusedOptimizer, processes: Processes, dtype: torch.dtype) -> None:
        self.bank, self.optimizer = bank, optimizer
        self.classes = bank.head.num_classes
        padded = -(-self.classes // _ALIGNED) * _ALIGNED
        self.weight, self.bias = optimizer.rounded = [
            torch.zeros(bank.size, padded, *parameter.shape[2:], dtype=dtype, device=parameter.device)
            for parameter in optimizer.parameters
        ]
        self._gradients = [gradient_of(processes, copy.numel()) for copy in optimizer.rounded]
        self._beside = torch.cuda.Stream(processes.device)
        self._parts = _sharing_products(bank.groups)
        self.refresh()

    @staticmethod
    def fits(bank: Bank, features: Tensor) -> bool:
        """Whether the heads are linear, on half-precision features whose rows are aligned."""
        width = features.shape[1]
        return type(bank.head) is Linear and features.dtype == torch.float16 and width % _ALIGNED == 0

    def refresh(self) -> None:
        """Round the parameters anew, after somebody else changed them."""
        for copy, parameter in zip(self.optimizer.rounded, self.optimizer.parameters, strict=True):
            copy[:, : self.classes] = parameter

    def step(self, features: Tensor, labels: Tensor, position: int, total: int) -> list[Tensor]:
        """Take one step.

        Args:
            features: ``(N, D)`` on the device: this process's share.
            labels: ``(N,)`` int64.
            position: Index of the step among those that the optimiser was told of.
            total: Rows of the step over all processes.

        Returns:
            The losses of this share by group, ``(G, N)`` each.
        """
        slopes, calls = [], []
        for part in self._parts:
            heads = slice(part[0][0].start, part[-1][0].stop)
            scores = torch.addmm(self.bias[heads].flatten(), features, self.weight[heads].flatten(0, 1).T)
            slopes.append(scores)
            by_head = scores.unflatten(1, (-1, self.bias.shape[1]))[..., : self.classes]
            for own, loss in part:
                group = by_head[:, own.start - heads.start : own.stop - heads.start]
                calls.append(partial(self._descend, group, loss, labels))
        found = self.bank.each("slope", features.shape, calls)
        self._update(slopes, features, position, 1 / total)
        return found

    def _descend(self, scores: Tensor, loss: TopKCrossEntropy, labels: Tensor) -> Tensor:
        """Put the slope of one group's losses where its scores ``(N, G, C)`` are; the losses ``(G, N)``."""
        count = scores.shape[1]
        rows = scores.flatten(0, 1)  # a view: a group is alone in its product, or a single head
        # Half precision holds a sum of gradients better than their mean over many rows.
        slope, losses = self.bank.slope(loss, rows, labels if count == 1 else labels.repeat_interleave(count), 1.0)
        if slope.data_ptr() != rows.data_ptr():
            rows.copy_(slope)
        return losses.view(-1, count).T

    def _update(self, slopes: list[Tensor], features: Tensor, position: int, scale: float) -> None:
        """Move the heads against the slopes of their scores, ``(N, G * W)`` a product; biases on a stream beside."""
        here = torch.cuda.current_stream()
        self._beside.wait_stream(here)
        with torch.cuda.stream(self._beside), self._updated(1, position, scale) as bias:
            torch.cat([column_sums(slope) for slope in slopes], out=bias)
        with self._updated(0, position, scale) as weight:
            products = weight.view(-1, features.shape[1]).split([slope.shape[1] for slope in slopes])
            for slope, product in zip(slopes, products, strict=True):
                torch.mm(slope.T, features, out_dtype=torch.float32, out=product)
        here.wait_stream(self._beside)

    @contextmanager
    def _updated(self, index: int, position: int, scale: float) -> Iterator[Tensor]:
        """Where this process's share of one parameter's gradient goes, flat; then its update by the sum of all."""
        gradient = self._gradients[index]
        gradient.begin()
        yield gradient.own
        shape = self.optimizer.rounded[index].shape
        shares = [share.view(shape)[:, : self.classes] for share in gradient.finish()]
        self.optimizer.step_one(index, shares, position, scale)


def _sharing_products(groups: list[tuple[slice, TopKCrossEntropy]]) -> list[list[tuple[slice, TopKCrossEntropy]]]:
    """Groups of several heads, whose rows one call of a loss takes, alone; neighbours of a single head together."""
    sizes = [heads.stop - heads.start for heads, _ in groups]
    keys = [0 if size == 1 else number for number, size in enumerate(sizes, 1)]
    return [[group for _, group in part] for _, part in groupby(zip(keys, groups, strict=True), key=itemgetter(0))]
