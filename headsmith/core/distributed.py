"""The processes that torchrun started together: their ranks, and what the first of them tells the others."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
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
class Launch:
    """This process among those that torchrun started; alone without torchrun.

    Attributes:
        rank: Its number among all.
        local_rank: Its number among those on this machine.
        local_world: How many there are on this machine.
        world: How many there are.
    """

    rank: int = 0
    local_rank: int = 0
    local_world: int = 1
    world: int = 1

    @classmethod
    def current(cls) -> "Launch":
        """Read what torchrun says in the environment."""
        if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys():
            return cls()
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local = int(os.environ.get("LOCAL_RANK", rank))
        return cls(rank, local, int(os.environ.get("LOCAL_WORLD_SIZE", world)), world)

    def device(self, name: str) -> torch.device:
        """The device called ``name``; of several CUDA devices each process of a launch gets its own in turn."""
        device = pick_device(name)
        if device.type != "cuda" or ":" in name or self.world == 1:
            return device
        return torch.device("cuda", self.local_rank % torch.cuda.device_count())

    def broadcast(self, subject: str, decide: Callable[[], Any]) -> Any:
        """What ``decide`` gives to the first process, a JSON value; the others wait for it and get the same.

        Args:
            subject: What it is about. All processes of a launch must come here equally often with it.
            decide: What the first process does.

        Raises:
            InputError: ``decide`` raised one in the first process.
            FirstEndedError: It raised anything else there, or the first process is gone.
        """
        if self.world == 1:
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
        while store.add(f"{key}/read", 0) < self.world - 1 and time.monotonic() < until:
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
