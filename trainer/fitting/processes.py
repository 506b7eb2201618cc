"""The processes of one training, started by ``torchrun``, or the only one."""

import atexit
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from ...core.environment import pick_device
from ...core.errors import InputError


@dataclass(frozen=True)
class Processes:
    """This process among those of one training.

    Attributes:
        device: What this one computes on.
        rank: Its number, from 0; rank 0 writes files and shows progress.
        count: How many there are.
        local: How many of them are on this machine.
    """

    device: torch.device
    rank: int = 0
    count: int = 1
    local: int = 1

    def sum(self, *tensors: Tensor) -> None:
        """Add up tensors over the processes, in place."""
        if self.count > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)

    def gather(self, values: Tensor, total: int) -> Tensor:
        """Put ``(..., n)`` int64 shares of ``total`` columns together that each process took every `count`-th of."""
        if self.count == 1:
            return values
        whole = values.new_zeros(*values.shape[:-1], total)
        whole[..., self.rank :: self.count] = values
        dist.all_reduce(whole)
        return whole

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.count > 1:
            dist.barrier()


def join(device: str) -> Processes:
    """Join the processes that ``torchrun`` started; without it this process is alone.

    They stay joined until Python ends: a store that has seen one group of processes does not connect a second one.
    Processes that the caller's program has joined already are taken as they are.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``; of several cards each process takes the one of its local rank.

    Raises:
        InputError: More processes on this machine than cards.
    """
    picked = pick_device(device)
    if not dist.is_torchelastic_launched():
        return Processes(picked)
    cuda, local = picked.type == "cuda", int(os.environ["LOCAL_RANK"])
    if cuda:
        if local >= torch.cuda.device_count():
            raise InputError(
                f"torchrun: process {local + 1} on this machine, but only {torch.cuda.device_count()} CUDA devices; "
                "start as many processes as there are devices"
            )
        picked = torch.device("cuda", local)
        torch.cuda.set_device(picked)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if cuda else "gloo", device_id=picked if cuda else None)
        atexit.register(_part)
    return Processes(picked, dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_WORLD_SIZE"]))


def _part() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
