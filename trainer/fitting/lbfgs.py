"""LBFGS over the whole training split at once."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ...core.distributed import Processes
from ..train_config import TrainConfig
from .device_rows import DeviceRows
from .head_bank import Bank

_BLOCK = 16384


class Lbfgs:
    """Epochs of up to 20 iterations of `torch.optim.LBFGS` with a strong-Wolfe line search, for a single head."""

    def __init__(self, bank: Bank, rows: DeviceRows, config: TrainConfig, processes: Processes) -> None:
        self.bank, self.rows, self.config, self.processes = bank, rows, config, processes
        self.images = len(rows.labels)
        self.losses: list[Tensor] = []  # of every call of the closure in an epoch, without the penalty
        self.optimizer = torch.optim.LBFGS(bank.parameters, lr=config.step_size, line_search_fn="strong_wolfe")

    def run(self, epoch: int, advance: Callable[[int], None]) -> Tensor:
        """See `Epochs.run`; the loss is that of the weights before the epoch, without the penalty."""
        self.losses.clear()
        self.optimizer.step(self._closure)
        advance(self.images)
        share = 1 / self.processes.count  # the closure summed it over the processes already
        return self.losses[0].float().reshape(1) * self.images * share

    def _closure(self) -> Tensor:
        """The penalised mean loss, and its gradient in the parameters."""
        self.optimizer.zero_grad()
        total = torch.zeros((), dtype=torch.float64, device=self.processes.device)
        for features, labels in self.rows.blocks(_BLOCK, self.processes.rank, self.processes.count):
            [losses] = self.bank.losses(self.bank.logits(features.float()), labels)
            loss = losses.double().sum() / self.images
            loss.backward()
            total += loss.detach()
        self.processes.sum(total, *(parameter.grad for parameter in self.bank.parameters if parameter.grad is not None))
        self.losses.append(total.clone())
        if self.config.weight_decay:
            squares = torch.stack([parameter.square().sum() for parameter in self.bank.parameters])
            penalty = squares.sum() * self.config.weight_decay / 2
            penalty.backward()
            total += penalty.detach()
        return total

    def state(self) -> dict[str, Tensor]:
        """See `Epochs.state`."""
        return {name: parameter.detach() for name, parameter in self.bank.head.named_parameters()}

    def save(self) -> Mapping[str, Any]:
        """See `Epochs.save`."""
        return {"parameters": self.state(), "optimizer": self.optimizer.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Epochs.restore`."""
        for name, parameter in self.state().items():
            parameter.copy_(state["parameters"][name])
        self.optimizer.load_state_dict(state["optimizer"])

    def release(self) -> None:
        """See `Epochs.release`: nothing is captured here."""
