"""The processes that torchrun started together: their ranks, what the first tells the others, and their sums."""

import atexit
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import DistError
from torch.distributed.rendezvous import rendezvous

from .environment import pick_device
from .errors import HeadsmithError, InputError

# Seconds between two looks, and those that the first process waits at the most until all know of its end.
_POLL, _FAREWELL = 0.1, 5.0
_calls: Counter[str] = Counter()
T = TypeVar("T")


class FirstEndedError(HeadsmithError, RuntimeError):
    """The first of several processes ended, so that the others do too."""

    exit_code = 1


@dataclass(frozen=True)
class Processes:
    """This process among those that torchrun started; alone without torchrun.

    Attributes:
        device: What this one computes on.
        rank: Its number among all; rank 0 writes files and shows progress.
        count: How many there are.
        local: How many of them are on this machine.
    """

    device: torch.device
    rank: int = 0
    count: int = 1
    local: int = 1

    @classmethod
    def launched(cls, device: str) -> Self:
        """What torchrun says in the environment: enough to `broadcast`, without a process group.

        Args:
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``; of several cards each process takes its own in turn.
        """
        picked = pick_device(device)
        if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys():
            return cls(picked)
        rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if picked.type == "cuda" and ":" not in device and count > 1:
            picked = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
        return cls(picked, rank, count, int(os.environ.get("LOCAL_WORLD_SIZE", count)))

    @classmethod
    def joined(cls, device: str) -> Self:
        """Join the process group of those that torchrun started; without torchrun this process is alone.

        They stay joined until Python ends: a store that has seen one group of processes does not connect a second one.
        Processes that the caller's program has joined already are taken as they are.

        Args:
            device: ``auto``, ``cpu`` or ``cuda``; of several cards each process takes the one of its local rank.

        Raises:
            InputError: More processes on this machine than cards.
        """
        picked = pick_device(device)
        if not dist.is_torchelastic_launched():
            return cls(picked)
        cuda, local = picked.type == "cuda", int(os.environ["LOCAL_RANK"])
        if cuda:
            if local >= torch.cuda.device_count():
                raise InputError(
                    f"torchrun: process {local + 1} on this machine, but only {torch.cuda.device_count()} CUDA "
                    "devices; start as many processes as there are devices"
                )
            picked = torch.device("cuda", local)
            torch.cuda.set_device(picked)
        if not dist.is_initialized():
            dist.init_process_group("nccl" if cuda else "gloo", device_id=picked if cuda else None)
            atexit.register(_part)
        return cls(picked, dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_WORLD_SIZE"]))

    def sum(self, *tensors: Tensor) -> None:
        """Add up tensors over the joined processes, in place."""
        if self.count > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)

    def gather(self, values: Tensor, total: int) -> Tensor:
        """Put ``(..., n)`` int64 shares of ``total`` columns together; each process has every `count`-th column."""
        if self.count == 1:
            return values
        whole = values.new_zeros(*values.shape[:-1], total)
        whole[..., self.rank :: self.count] = values
        dist.all_reduce(whole)
        return whole

    def broadcast(self, subject: str, decide: Callable[[], Any]) -> Any:
        """What ``decide`` gives to the first process, a JSON value; the others wait for it and get the same.

        Args:
            subject: What it is about. All of them must come here equally often with it.
            decide: What the first process does.

        Raises:
            InputError: ``decide`` raised one in the first process.
            FirstEndedError: It raised anything else there, or the first process is gone.
        """
        if self.count == 1:
            return decide()
        key = f"headsmith/{subject}/{_calls[subject]}"
        _calls[subject] += 1
        if self.rank > 0:
            return _wait_for(key)
        try:
            value = decide()
            told = json.dumps({"value": value})
        except BaseException as error:  # whatever it is, the others must not wait for what never comes
            self._tell_the_end(key, error)
            raise
        _store().set(key, told)
        return value

    def _tell_the_end(self, key: str, error: BaseException) -> None:
        """Tell the others, and keep the store, which this process may hold, until they have read it."""
        kind = "error" if isinstance(error, InputError) else "ended"
        words = str(error) if kind == "error" else f"{type(error).__name__}: {error}".removesuffix(": ")
        store, until = _store(), time.monotonic() + _FAREWELL
        store.set(key, json.dumps({kind: words}))
        while store.add(f"{key}/read", 0) < self.count - 1 and time.monotonic() < until:
            time.sleep(_POLL)

    def first_then_others(self, subject: str, work: Callable[[bool], T]) -> T:
        """Do ``work(True)`` in the first process and then ``work(False)`` in all others, as `broadcast` does.

        Raises:
            InputError: The first process raised one.
            FirstEndedError: See `broadcast`.
        """
        done: list[T] = []
        self.broadcast(subject, lambda: done.append(work(True)))
        return done[0] if done else work(False)


@cache
def _store() -> Any:
    store, _, _ = next(rendezvous("env://"))
    return store


def _wait_for(key: str) -> Any:
    try:
        store = _store()
        while not store.check([key]):
            time.sleep(_POLL)
        told = json.loads(store.get(key))
        if "value" not in told:
            store.add(f"{key}/read", 1)
    except DistError as error:
        raise FirstEndedError(f"the first process is gone ({str(error).splitlines()[0]})") from None
    if "error" in told:
        raise InputError(told["error"])
    if "ended" in told:
        raise FirstEndedError(f"the first process ended with {told['ended']}")
    return told["value"]


def _part() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
