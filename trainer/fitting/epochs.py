"""An epoch: by steps over windows of shuffled rows, or as iterations of LBFGS over all of them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from ...core.distributed import Processes
from ...models.heads import NormLinear, build_head, keep_rounded
from ..feature_scale import column_size
from ..initialization import OPTIONS, Initialization
from ..train_config import TrainConfig
from .device_rows import WINDOW_BYTES, DeviceRows
from .head_bank import Bank
from .lbfgs import Lbfgs
from .optimizers import Optimizer, schedule
from .row_order import Window, row_order, windows
from .scoring import tf32
from .steps import Steps

if TYPE_CHECKING:
    from .wide_linear import WideLinear

_MOST_STEPS = 16
# Rows from which on a thread draws the order of the next epoch; that of fewer takes less than to wait for a thread.
_MANY = 2**15


class Epochs(Protocol):
    """What goes through a training split.

    Attributes:
        bank: What is trained.
        images: Rows an epoch.
    """

    bank: Bank
    images: int

    def run(self, epoch: int, advance: Callable[[int], None]) -> Tensor:
        """Go through epoch ``epoch`` (from 1); sums of the losses of this process's rows ``(H,)`` float32."""

    def state(self) -> dict[str, Tensor]:
        """The parameters to score and keep, by name."""

    def save(self) -> Mapping[str, Any]:
        """All that the next epoch needs, as tensors and plain values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `save` gave."""

    def release(self) -> None:
        """Let go of what the processes' connection is bound to: it cannot be closed before."""


def epochs_for(
    rows: DeviceRows,
    labels: Tensor,
    num_classes: int,
    configs: Sequence[TrainConfig],
    start: Initialization,
    processes: Processes,
) -> Epochs:
    """Build the bank, and what trains it.

    Args:
        rows: The training split, placed.
        labels: Its labels ``(N,)``, on the CPU.
        num_classes: C.
        configs: The settings of every head.
        start: What the head starts from.
        processes: Who works on it.
    """
    config = configs[0]
    options = {name: getattr(config, name) for name in OPTIONS.get(config.head, ())}
    members = None if len(configs) == 1 else len(configs)
    head = build_head(config.head, rows.features.shape[1], num_classes, bank=members, seed=config.seed, **options).to(
        processes.device
    )
    if isinstance(head, NormLinear) and head.norm == "standard":
        head.fit_statistics(*_mean_and_std(rows))
    start(head, column_size(rows.features))
    bank = Bank(head, configs, processes.device, torch.bincount(labels, minlength=num_classes))
    if config.optimizer == "lbfgs":
        return Lbfgs(bank, rows, config, processes)
    return StepEpochs(bank, rows, labels, configs, processes)


def _mean_and_std(rows: DeviceRows) -> tuple[Tensor, Tensor]:
    """Of every feature ``(D,)`` over all rows, by the sums of blocks (Chan, Golub, LeVeque 1983)."""
    count, mean, squares = 0, torch.zeros(1), torch.zeros(1)
    for features, _ in rows.blocks(16384):
        block = features.double()
        size, centre = len(block), block.mean(0)
        spread = (block - centre).square().sum(0)
        shift, mean, squares = centre - mean.to(centre), mean.to(centre), squares.to(centre)
        squares = squares + spread + shift.square() * (count * size / (count + size))
        mean = mean + shift * (size / (count + size))
        count += size
    return mean.float(), (squares / count).sqrt().float()


class StepEpochs:
    """Epochs of steps on batches."""

    def __init__(
        self, bank: Bank, rows: DeviceRows, labels: Tensor, configs: Sequence[TrainConfig], processes: Processes
    ) -> None:
        self.bank, self.rows, self.labels, self.processes = bank, rows, labels, processes
        self.config, self.images = configs[0], len(labels)
        self.steps_per_epoch = -(-self.images // self.config.batch_size)
        trained = [parameter.detach() for parameter in bank.parameters]
        parameters = trained if bank.head.bank is not None else [parameter[None] for parameter in trained]
        factors = schedule(self.config, self.steps_per_epoch)
        self.optimizer, wide = _optimizer(bank, parameters, configs, factors, rows.features, processes)
        self.steps = Steps(bank, self.optimizer, self.config, processes, _root_mean_square(rows, self.config), wide)
        row_bytes = max(rows.features[:1].numel() * rows.features.element_size(), 1)
        batch = self.config.batch_size // processes.count
        self.window = min(max(WINDOW_BYTES // (row_bytes * max(batch, 1)), 1), _MOST_STEPS)
        self._names = [name for name, parameter in bank.head.named_parameters() if parameter.requires_grad]
        self._planner = ThreadPoolExecutor(1)
        self._plans: dict[int, Future[list[Window]]] = {}

    def run(self, epoch: int, advance: Callable[[int], None]) -> Tensor:
        """See `Epochs.run`."""
        self.steps.begin(epoch)
        with tf32(self.processes.device):
            for window, features, labels in self.rows.windows(self._plan(epoch)):
                self.steps.run(window, features, labels)
                advance(sum(window.totals))
        return self.steps.loss.clone()

    def _plan(self, epoch: int) -> list[Window]:
        """The order of an epoch; of many rows a thread draws the next one meanwhile."""
        waiting = self._plans.pop(epoch, None)
        plan = self._drawn(epoch) if waiting is None else waiting.result()
        if self.images >= _MANY and epoch < self.config.epochs:
            self._plans[epoch + 1] = self._planner.submit(self._drawn, epoch + 1)
        return plan

    def _drawn(self, epoch: int) -> list[Window]:
        order = row_order(self.labels, self.config.seed, epoch, balanced=self.config.balanced)
        first_step = (epoch - 1) * self.steps_per_epoch
        return windows(
            order, self.config.batch_size, self.window, first_step, self.processes.rank, self.processes.count
        )

    def state(self) -> dict[str, Tensor]:
        """See `Epochs.state`; with averaging, the averages, freed of their start from 0."""
        if not self.steps.averages:
            return dict(zip(self._names, (p.detach() for p in self.bank.parameters), strict=True))
        weight = 1 - self.config.averaging**self.steps.taken
        return dict(zip(self._names, (average / weight for average in self.steps.averages), strict=True))

    def save(self) -> Mapping[str, Any]:
        """See `Epochs.save`."""
        return {
            "parameters": self.optimizer.parameters,
            "moments": self.optimizer.state,
            "averages": self.steps.averages,
            "taken": self.steps.taken,
        }

    def release(self) -> None:
        """See `Epochs.release`: NCCL waits for ever for captured graphs with its sums in them."""
        self.steps.release()

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Epochs.restore`."""
        own, found = self.save(), state
        pairs = [*zip(own["parameters"], found["parameters"], strict=True)]
        pairs += [*zip(own["averages"], found["averages"], strict=True)]
        for name, moments in own["moments"].items():
            pairs += [*zip(moments, found["moments"][name], strict=True)]
        for tensor, value in pairs:
            tensor.copy_(value)
        if self.steps.wide is not None:
            self.steps.wide.refresh()
        for parameter in self.bank.parameters:
            if hasattr(parameter, "rounded"):
                parameter.rounded.copy_(parameter)
        self.steps.taken = found["taken"]


def _optimizer(
    bank: Bank,
    parameters: list[Tensor],
    configs: Sequence[TrainConfig],
    factors: list[float],
    features: Tensor,
    processes: Processes,
) -> tuple[Optimizer, "WideLinear | None"]:
    """What updates a bank; and what takes its whole steps, on a card whose heads fit."""
    if processes.device.type == "cpu":
        return Optimizer(parameters, configs, factors), None
    from .fused_optimizer import FusedOptimizer
    from .wide_linear import WideLinear

    optimizer = FusedOptimizer(parameters, configs, factors)
    if WideLinear.fits(bank, features):
        return optimizer, WideLinear(bank, optimizer, processes, features.dtype)
    if features.dtype == torch.float16:
        copies = [keep_rounded(parameter, features.dtype) for parameter in bank.parameters]
        optimizer.rounded = [copy.view(own.shape) for copy, own in zip(copies, parameters, strict=True)]
    return optimizer, None


def _root_mean_square(rows: DeviceRows, config: TrainConfig) -> float:
    """Of all features; not computed unless noise needs it."""
    if not config.noise:
        return 0.0
    squares = [features.double().square().sum() for features, _ in rows.blocks(16384)]
    return float((torch.stack(squares).sum() / rows.features.numel()).sqrt())
