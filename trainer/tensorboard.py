"""TensorBoard's curves, on request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from ..core.errors import InputError
from .scores import EpochScores

Log = Callable[[list[EpochScores]], None]


@contextmanager
def epoch_log(folder: str | Path | None) -> Iterator[Log | None]:
    """Write the scores of epochs to a folder that TensorBoard shows.

    Args:
        folder: The folder, or None for none.

    Yields:
        A function that takes the scores of an epoch, one for each head.

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

        def log(epochs: list[EpochScores]) -> None:
            for one in epochs:
                val = {} if one.val is None else asdict(one.val)
                found = {f"val/{name}": value for name, value in val.items() if name != "n"}
                for name, value in {"train/loss": one.loss, **found}.items():
                    if value is not None:
                        writer.add_scalar(name, value, one.epoch)

        yield log
