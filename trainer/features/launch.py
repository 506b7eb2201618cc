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
from torch.distributed.rendezvous import rendezvous

from ...core.environment import pick_device
from ...core.errors import InputError

_POLL = 0.1
_calls: Counter[str] = Counter()
T = TypeVar("T")


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

    def told_by_first(self, subject: str, decide: Callable[[], Any]) -> Any:
        """What ``decide`` gives to the first process, a JSON value; the others wait for it and get the same.

        Args:
            subject: What it is about. All processes of a launch must come here equally often with it.
            decide: What the first process does.

        Raises:
            InputError: ``decide`` raised one in the first process.
        """
        if self.world == 1:
            return decide()
        key = f"headsmith/{subject}/{_calls[subject]}"
        _calls[subject] += 1
        if self.rank > 0:
            return _wait_for(key)
        try:
            value = decide()
        except InputError as error:
            _store().set(key, json.dumps({"error": str(error)}))
            raise
        _store().set(key, json.dumps({"value": value}))
        return value

    def first_then_others(self, subject: str, work: Callable[[bool], T]) -> T:
        """Do ``work(True)`` in the first process and then ``work(False)`` in all others, as `told_by_first` does.

        Raises:
            InputError: The first process raised one.
        """
        done: list[T] = []
        self.told_by_first(subject, lambda: done.append(work(True)))
        return done[0] if done else work(False)


@cache
def _store() -> Any:
    store, _, _ = next(rendezvous("env://"))
    return store


def _wait_for(key: str) -> Any:
    store = _store()
    while not store.check([key]):
        time.sleep(_POLL)
    told = json.loads(store.get(key))
    if "error" in told:
        raise InputError(told["error"])
    return told["value"]
