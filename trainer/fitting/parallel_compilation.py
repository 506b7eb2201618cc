"""Calls that wait for compilers, side by side: Triton lets other threads run while it compiles."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")


def side_by_side(calls: Sequence[tuple[str, Callable[[], T]]], device: torch.device) -> list[T]:
    """Call them in threads, those of equal names one after the other, so that what they share is compiled once.

    Args:
        calls: Each a name, and what to call; the tensors they work on are ready on the device's default stream.
        device: On which they work.

    Returns:
        What they returned, in their order.
    """
    queues: dict[str, list[int]] = {}
    for place, (name, _) in enumerate(calls):
        queues.setdefault(name, []).append(place)
    inference = torch.is_inference_mode_enabled()

    def work(places: list[int]) -> list[tuple[int, T]]:
        with torch.inference_mode(inference), torch.cuda.device(device if device.type == "cuda" else -1):
            return [(place, calls[place][1]()) for place in places]

    with ThreadPoolExecutor(max(len(queues), 1)) as threads:
        found = [pair for pairs in threads.map(work, queues.values()) for pair in pairs]
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]
