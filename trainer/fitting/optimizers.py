"""The update of a bank's parameters, every head with its own learning rate and weight decay."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from ..train_config import TrainConfig

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Optimizer:
    """Adam (Kingma and Ba, 2015), AdamW (Loshchilov and Hutter, 2019) or SGD with momentum, as `torch.optim` has them.

    Args:
        parameters: Float32 tensors with a first axis of H heads.
        configs: The settings of every head.
        factors: What every step of the run multiplies the learning rates by; see `schedule`.

    Attributes:
        state: The moments, ``first`` and, but for SGD, ``second``: one tensor for each parameter, zeros at first.
    """

    def __init__(self, parameters: Sequence[Tensor], configs: Sequence[TrainConfig], factors: Sequence[float]) -> None:
        self.kind, self.momentum = configs[0].optimizer, configs[0].momentum
        self.parameters, self.factors, self.first_step = list(parameters), factors, 0
        self.rates = [config.step_size for config in configs]
        self.decays = [config.weight_decay for config in configs]
        moments = ("first",) if self.kind == "sgd" else ("first", "second")
        self.state = {name: [torch.zeros_like(parameter) for parameter in parameters] for name in moments}

    def start(self, first_step: int, count: int) -> None:
        """Say that ``count`` steps come, of which the first is the run's ``first_step``-th (from 0)."""
        self.first_step = first_step

    def step(self, gradients: Sequence[Tensor], position: int, scale: float) -> None:
        """Take one step.

        Args:
            gradients: One for each parameter.
            position: Index of the step among those that `start` announced.
            scale: What to multiply the gradients by.
        """
        step = self.first_step + position
        # The fused updates read memory as it lies, and the gradients of a bank's weights lie transposed.
        gradients = [gradient.contiguous() if scale == 1 else (gradient * scale).contiguous() for gradient in gradients]
        for head, (rate, decay) in enumerate(zip(self.rates, self.decays, strict=True)):
            own = [[tensor[head] for tensor in tensors] for tensors in (self.parameters, gradients)]
            moments = [[tensor[head] for tensor in tensors] for tensors in self.state.values()]
            if self.kind == "sgd":
                self._sgd(*own, *moments, rate=rate * self.factors[step], decay=decay)
            else:
                self._adam(*own, *moments, step=step, rate=rate * self.factors[step], decay=decay)

    def _adam(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        first: list[Tensor],
        second: list[Tensor],
        *,
        step: int,
        rate: float,
        decay: float,
    ) -> None:
        adam(
            parameters,
            gradients,
            first,
            second,
            max_exp_avg_sqs=[],
            state_steps=[torch.tensor(float(step)) for _ in parameters],
            fused=True,
            decoupled_weight_decay=self.kind == "adamw",
            amsgrad=False,
            beta1=BETA1,
            beta2=BETA2,
            lr=rate,
            weight_decay=decay,
            eps=EPSILON,
            maximize=False,
        )

    def _sgd(
        self, parameters: list[Tensor], gradients: list[Tensor], first: list[Tensor], *, rate: float, decay: float
    ) -> None:
        sgd(
            parameters,
            gradients,
            list(first) if self.momentum else [None for _ in first],
            fused=True,
            weight_decay=decay,
            momentum=self.momentum,
            lr=rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )


def schedule(config: TrainConfig, steps_per_epoch: int) -> list[float]:
    """What every step's learning rate is multiplied by: a linear rise from 0, then constant or half a cosine to 0.

    The cosine is that of Loshchilov and Hutter (SGDR, 2017) without restarts.
    """
    total, rising = config.epochs * steps_per_epoch, round(config.warmup * steps_per_epoch)
    rise = [(step + 1) / (rising + 1) for step in range(min(rising, total))]
    rest = total - len(rise)
    if config.schedule == "constant":
        return rise + [1.0] * rest
    angle = torch.arange(rest, dtype=torch.float64) * (torch.pi / max(rest, 1))
    return rise + (0.5 + 0.5 * angle.cos()).tolist()
