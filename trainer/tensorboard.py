"""TensorBoard's curves, on request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.errors import InputError

Log = Callable[[list[dict[str, Any]]], None]


@contextmanager
def board(folder: str | Path | None) -> Iterator[Log | None]:
    """Write the rows of epochs to a folder that TensorBoard shows.

    Args:
        folder: The folder, or None for none.

    Yields:
        A function that takes the rows of an epoch, one for each head.

    Raises:
        InputError: TensorBoard is not installed.
    """
    if folder is None:
        yield None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError("--tensorboard: the package is missing; install it with: pip install tensorboard") from None
    with SummaryWriter(str(folder)) as writer:

        def log(rows: list[dict[str, Any]]) -> None:
            for row in rows:
                for name, value in {"train/loss": row["loss"], **_flat("val", row.get("val") or {})}.items():
                    writer.add_scalar(name, value, row["epoch"])

        yield log


def _flat(split: str, scores: dict[str, Any]) -> dict[str, float]:
    return {f"{split}/{name}": value for name, value in scores.items() if name != "n" and value is not None}
