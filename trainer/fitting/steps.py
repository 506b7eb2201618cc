"""The training step: features to logits, losses, gradients and the update, replayed as a CUDA graph on a card."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...core.distributed import Processes
from ..train_config import TrainConfig
from .head_bank import Bank
from .optimizers import Optimizer
from .row_order import Window, epoch_generator

if TYPE_CHECKING:
    from .wide_linear import WideLinear


class Steps:
    """Runs windows of steps.

    Args:
        bank: What is trained.
        optimizer: How.
        config: Settings that the heads share.
        processes: Who else works on the same batches.
        root_mean_square: Of the training features, the unit of the noise.
        wide: What takes the steps of this bank in another way, if anything does.

    Attributes:
        loss: ``(H,)`` sums of the losses over the rows of the epoch so far, on the device.
        averages: Exponential moving averages of the parameters, which start from 0; empty without averaging.
        taken: Steps since training began.
    """

    def __init__(
        self,
        bank: Bank,
        optimizer: Optimizer,
        config: TrainConfig,
        processes: Processes,
        root_mean_square: float,
        wide: "WideLinear | None",
    ) -> None:
        self.wide = wide
        self.bank, self.optimizer, self.config, self.processes = bank, optimizer, config, processes
        self.noise = config.noise * root_mean_square
        self.loss = torch.zeros(bank.size, device=processes.device)
        self.averages = [torch.zeros_like(p) for p in bank.parameters] if config.averaging else []
        self.taken = 0
        self._random = epoch_generator(config.seed, 0, processes.device)
        self._graphs: dict[object, torch.cuda.CUDAGraph | None] = {}
        self._pool = torch.cuda.graph_pool_handle() if processes.device.type == "cuda" else None

    def begin(self, epoch: int) -> None:
        """Start an epoch."""
        self.loss.zero_()
        seed = epoch_generator(self.config.seed, epoch, torch.device("cpu")).initial_seed()
        self._random.manual_seed(seed)

    def run(self, window: Window, features: Tensor, labels: Tensor) -> None:
        """Take the steps of a window.

        On a CUDA device steps of a shape run as they are at first, are captured the second time, and replayed then.
        """
        self.optimizer.start(window.first_step, len(window.sizes))
        self.taken = window.first_step + len(window.sizes)
        key = (features.data_ptr(), window.sizes, window.totals)
        if self._pool is None or key not in self._graphs:
            self._graphs[key] = None
            self._steps(window, features, labels)
            return
        graph = self._graphs[key] or self._captured(window, features, labels)
        self._graphs[key] = graph
        graph.replay()

    def release(self) -> None:
        """Forget the captured graphs."""
        self._graphs.clear()

    def _captured(self, window: Window, features: Tensor, labels: Tensor) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._random)
        # Another thread may pin memory meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            self._steps(window, features, labels)
        return graph

    def _steps(self, window: Window, features: Tensor, labels: Tensor) -> None:
        losses = [
            self._step(rows, targets, total, position)
            for position, (rows, targets, total) in enumerate(
                zip(features.split(window.sizes), labels.split(window.sizes), window.totals, strict=True)
            )
        ]
        self.loss += torch.cat([torch.cat(group, dim=1).sum(1) for group in zip(*losses, strict=True)])

    def _step(self, features: Tensor, labels: Tensor, total: int, position: int) -> Sequence[Tensor]:
        """One step on this process's share of ``total`` rows; its losses by group, ``(G, N)`` each."""
        inputs = self._augmented(features if features.is_cuda else features.float())
        if self.wide is None:
            losses = self._update(inputs, labels, position, total)
        else:
            losses = self.wide.step(inputs, labels, position, total)
        for average, parameter in zip(self.averages, self.bank.parameters, strict=False):
            average.lerp_(parameter.detach(), 1 - self.config.averaging)
        return losses

    def _update(self, inputs: Tensor, labels: Tensor, position: int, total: int) -> Sequence[Tensor]:
        logits = self.bank.logits(inputs)
        # Half precision holds a sum of gradients better than their mean over many rows.
        upstream = 1.0 if inputs.dtype == torch.float16 else 1 / total
        slope, losses = self.bank.gradient(logits, labels, upstream)
        gradients = torch.autograd.grad(logits, self.bank.parameters, slope)
        self.processes.sum(*gradients)
        self.optimizer.step(self._by_head(gradients), position, 1 / (total * upstream))
        return losses

    def _augmented(self, features: Tensor) -> Tensor:
        """Features with dropout and noise."""
        if self.config.dropout:
            kept = 1 - self.config.dropout
            features = features * torch.empty_like(features).bernoulli_(kept, generator=self._random) / kept
        if self.noise:
            features = features + self.noise * torch.empty_like(features).normal_(generator=self._random)
        return features

    def _by_head(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Gradients with the bank's axis first."""
        return [g.view(p.shape) for g, p in zip(gradients, self.optimizer.parameters, strict=True)]
