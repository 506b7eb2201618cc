"""Names in sentences."""

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names, comma-separated, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
