"""How much a file may unpack to: a small one must not fill the memory or the disk."""

from ...core.environment import free_memory
from ...core.errors import InputError

# Features and labels as they are computed are packed ten times at the best; all zeros a thousand times and more.
MOST_TIMES, SAFE_BYTES = 100, 1 << 29
WIDEST = 1 << 20
LONGEST_TEXT = 4096
BLOCK_BYTES = 8 << 20  # that are read at a time


def check_unpacked(where: str, unpacked: int, packed: int) -> None:
    """Refuse what is small on disk and large in memory: 100 times its size, and above 512 MiB or half of what is free.

    Args:
        where: The file, for errors.
        unpacked: Bytes of its content.
        packed: Bytes of the file.

    Raises:
        InputError: It names both numbers.
    """
    most = min(SAFE_BYTES, free_memory() // 2)
    if unpacked > most and unpacked > MOST_TIMES * packed:
        raise InputError(
            f"{where}: {packed:,} bytes that unpack to {unpacked:,}, expected at most {MOST_TIMES} times as "
            f"many, or {most:,}; check where it is from, or write it again without compression"
        )


def check_memory(where: str, needed: int) -> None:
    """Refuse what must be in memory as a whole and takes more than half of what is free.

    Raises:
        InputError: It names both numbers.
    """
    if needed > SAFE_BYTES // 2 and needed > (free := free_memory()) // 2:
        raise InputError(
            f"{where}: {needed:,} bytes to be held at once, expected at most half of the free memory ({free:,}); "
            "write it again in smaller parts, or use a machine with more"
        )


def check_text(where: str, letters: int) -> None:
    """Refuse labels and ids that are no names but documents.

    Raises:
        InputError: A text of more than 4,096 letters.
    """
    if letters > LONGEST_TEXT:
        raise InputError(f"{where}: text of {letters:,} characters, expected at most {LONGEST_TEXT:,}; shorten it")
