"""What to do where memory does not do for so many inputs at once."""

import gc
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def lacks_memory(error: BaseException | None) -> bool:
    """Whether memory was what lacked, of the computer or of a GPU, as this error or one that it stands for says."""
    if error is None:
        return False
    text = str(error).lower()
    known = isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text
    return known or lacks_memory(error.__cause__)


def halving(batch_size: int, attempt: Callable[[int], T]) -> tuple[T, int]:
    """Try with smaller and smaller batches while memory is what lacks.

    Args:
        batch_size: The first number of inputs.
        attempt: From a number of inputs to what is wanted.

    Returns:
        That, and the number of inputs that memory did for.

    Raises:
        Exception: What ``attempt`` raised with one input, or for another reason.
    """
    while True:
        try:
            return attempt(batch_size), batch_size
        except Exception as error:  # onnxruntime has classes of its own, and others are wrapped in ours
            if not lacks_memory(error) or batch_size == 1:
                raise
        batch_size //= 2
        _give_back()


def memory_note(batch_size: int, asked: int) -> list[str]:
    """What a row says where memory did for fewer inputs than were asked for."""
    return [f"memory did for {batch_size} images a batch"] * (batch_size < asked)


def _give_back() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
