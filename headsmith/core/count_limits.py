"""How many of something may be asked for: below what cannot be held, written down or run at once."""

from .cpus import logical_cpus, most_threads
from .errors import InputError

# Beyond what anybody runs at once, and below what no machine sets aside.
MOST_AT_ONCE = 65_536


def check_at_once(flag: str, count: int) -> None:
    """Raise an `InputError` for a batch of no input, or of more than `MOST_AT_ONCE`."""
    if not 1 <= count <= MOST_AT_ONCE:
        raise InputError(f"{flag}: {count} found, expected at least 1 and at most {MOST_AT_ONCE:,}")


def check_threads(flag: str, count: int) -> None:
    """Raise an `InputError` for no thread or process, or more than `most_threads`."""
    if count < 1:
        raise InputError(f"{flag}: {count} found, expected at least 1")
    if count > (most := most_threads()):
        raise InputError(f"{flag}: {count} found, expected at most {most} on this machine of {logical_cpus()} cores")
