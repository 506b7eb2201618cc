"""A gradient that is the sum of the shares of all processes."""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from ...core.distributed import Processes


class Gradient(Protocol):
    """A gradient of which every process computes a share, step after step.

    Attributes:
        own: ``(n,)`` float32 on the device: this process's share, to be written between `begin` and `finish`.
    """

    own: Tensor

    def begin(self) -> None:
        """Wait until nobody reads the share of the step before any more."""

    def finish(self) -> Sequence[Tensor]:
        """What to add up ``(n,)``, in the same order in every process; it lasts until the next `begin`."""


def gradient_of(processes: Processes, size: int) -> Gradient:
    """The gradient of ``size`` values that these processes share.

    Two processes with a card each on one machine read each other's share from where it is: as many bytes as a sum by
    NCCL sends, which the update that follows needs not read again. More processes would read more than NCCL sends.
    """
    if processes.count == processes.local == 2:
        own, other = processes.rank, 1 - processes.rank
        if torch.cuda.can_device_access_peer(own, other):
            return _Read(processes, size)
    return _Reduced(processes, size)


class _Reduced:
    """Summed by the processes' connection; alone, as it is."""

    def __init__(self, processes: Processes, size: int) -> None:
        self._processes = processes
        self.own = torch.empty(size, device=processes.device)

    def begin(self) -> None:
        pass

    def finish(self) -> Sequence[Tensor]:
        self._processes.sum(self.own)
        return [self.own]


class _Read:
    """In memory that the other process's card reads too."""

    def __init__(self, processes: Processes, size: int) -> None:
        from torch.distributed import _symmetric_memory as symmetric_memory

        self.own = symmetric_memory.empty(size, dtype=torch.float32, device=processes.device)
        self._shared = symmetric_memory.rendezvous(self.own, dist.group.WORLD)  # type: ignore[arg-type]  # joined: not None
        self._all = [self._shared.get_buffer(rank, (size,), torch.float32) for rank in range(processes.count)]

    def begin(self) -> None:
        self._shared.barrier(channel=0)

    def finish(self) -> Sequence[Tensor]:
        self._shared.barrier(channel=1)
        return self._all
