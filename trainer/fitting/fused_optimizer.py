"""The same update as one Triton kernel a parameter: all heads at once, and fit for a CUDA graph."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..train_config import TrainConfig
from .optimizers import BETA1, BETA2, EPSILON, Optimizer

_BLOCK = 1024


class FusedOptimizer(Optimizer):
    """An `Optimizer` whose steps read what changes from step to step from device memory.

    Attributes:
        rounded: Half-precision copies of the parameters, if there are any, that every update writes too. A copy may
            have more classes than its parameter; those stay as they are.
    """

    def __init__(self, parameters: Sequence[Tensor], configs: Sequence[TrainConfig], factors: Sequence[float]) -> None:
        super().__init__(parameters, configs, factors)
        device = self.parameters[0].device
        self.rounded: list[Tensor] = []
        self._rates = torch.tensor(self.rates, device=device)
        self._decays = torch.tensor(self.decays, device=device)
        self._table = _table(self.kind, factors).to(device)
        self._coming = torch.empty(0, 3, device=device)

    def start(self, first_step: int, count: int) -> None:
        """Copy the steps' row of the table to where their kernels read it."""
        if len(self._coming) < count:
            self._coming = torch.empty(count, 3, device=self._table.device)
        self._coming[:count].copy_(self._table[first_step : first_step + count])

    def step(self, gradients: Sequence[Tensor], position: int, scale: float) -> None:
        """See `Optimizer.step`."""
        for index, gradient in enumerate(gradients):
            self.step_one(index, [gradient.contiguous()], position, scale)

    def step_one(self, index: int, gradients: Sequence[Tensor], position: int, scale: float) -> None:
        """Take one step of one parameter.

        Args:
            index: Which one.
            gradients: One or two tensors whose sum is its gradient, each head's part of them contiguous.
            position: See `Optimizer.step`.
            scale: See there.
        """
        parameter = self.parameters[index]
        moments = [state[index] for state in self.state.values()]
        copy = self.rounded[index] if self.rounded else parameter
        count = parameter[0].numel()
        _update[(triton.cdiv(count, _BLOCK), len(parameter))](
            parameter,
            gradients[0],
            gradients[-1],
            gradients[0].stride(0),
            moments[0],
            moments[-1],
            copy,
            copy.stride(0),
            self._rates,
            self._decays,
            self._coming[position],
            count,
            scale,
            self.momentum,
            BETA1,
            BETA2,
            EPSILON,
            KIND=self.kind,
            PAIR=len(gradients) == 2,
            ROUNDED=bool(self.rounded),
            BLOCK=_BLOCK,
            num_warps=4,
        )


def _table(kind: str, factors: Sequence[float]) -> Tensor:
    """For every step: the rate's factor; the same over Adam's first bias correction; the root of 1 / the second."""
    factor = torch.tensor(factors, dtype=torch.float64)
    taken = torch.arange(1, len(factor) + 1, dtype=torch.float64)
    first, second = 1 - BETA1**taken, 1 - BETA2**taken
    return torch.stack([factor, factor / first, second.rsqrt()], dim=1).float()


@triton.jit
def _update(
    parameter_ptr,
    gradient_ptr,
    other_ptr,
    gradient_stride,
    first_ptr,
    second_ptr,
    rounded_ptr,
    rounded_stride,
    rates_ptr,
    decays_ptr,
    step_ptr,
    count,
    scale,
    momentum,
    beta1,
    beta2,
    epsilon,
    KIND: tl.constexpr,
    PAIR: tl.constexpr,
    ROUNDED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    at = head * count + place
    rate = tl.load(rates_ptr + head)
    decay = tl.load(decays_ptr + head)
    parameter = tl.load(parameter_ptr + at, mask=inside)
    gradient = tl.load(gradient_ptr + head * gradient_stride + place, mask=inside).to(tl.float32)
    if PAIR:
        gradient += tl.load(other_ptr + head * gradient_stride + place, mask=inside)
    gradient *= scale
    first = tl.load(first_ptr + at, mask=inside)
    if KIND == "adamw":
        parameter *= 1 - rate * tl.load(step_ptr) * decay
    else:
        gradient += decay * parameter
    if KIND == "sgd":
        first = momentum * first + gradient
        parameter -= rate * tl.load(step_ptr) * first
    else:
        first += (1 - beta1) * (gradient - first)
        second = tl.load(second_ptr + at, mask=inside)
        second = beta2 * second + (1 - beta2) * gradient * gradient
        root = tl.sqrt_rn(second) * tl.load(step_ptr + 2) + epsilon
        parameter -= rate * tl.load(step_ptr + 1) * (first / root)
        tl.store(second_ptr + at, second, mask=inside)
    tl.store(first_ptr + at, first, mask=inside)
    tl.store(parameter_ptr + at, parameter, mask=inside)
    if ROUNDED:
        copy = rounded_ptr + head * rounded_stride + place
        tl.store(copy, parameter.to(rounded_ptr.dtype.element_ty), mask=inside)
