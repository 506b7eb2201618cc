"""What is said where a batch does not fit the memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...core.errors import InputError
from ...core.memory_shortage import halving, lacks_memory


@contextmanager
def batch_that_fits(size: int, attempt: Callable[[int], None]) -> Iterator[None]:
    """Tell, where a step does not fit the memory, which batch would.

    Args:
        size: Images in a batch.
        attempt: Computes the gradients of a step with so many images, and forgets them.

    Raises:
        InputError: The memory did not suffice.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not lacks_memory(error):
            raise
        raise InputError(_said(size, attempt)) from error


def _said(size: int, attempt: Callable[[int], None]) -> str:
    found = f"--batch-size: {size} images do not fit the memory"
    try:
        _, fits = halving(max(1, size // 2), attempt)
    except (RuntimeError, MemoryError):
        return f"{found}, nor does one; choose a smaller network, or a smaller `image_size`"
    return f"{found}, {fits} would; choose that, or a smaller `image_size`"
